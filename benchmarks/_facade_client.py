"""
Clients of the façade benchmark, in a process of their own: a scripted binder, or many watchers.

    bind URL WATCHES CONNECTIONS     bind all pending pods to the nodes in turn, with watches open beside
    watch URL WATCHES SECONDS        count the events that each watch delivers

Each prints one line of JSON. Plain asyncio streams and httptools: the client must cost less than the server.
"""

import asyncio
import json
import sys
import time
from urllib.parse import urlsplit


class Client:
    """One keep-alive connection."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def open(self) -> "Client":
        """Connect."""
        self._reader, self._writer = await asyncio.open_connection(self._host, self._port, limit=2**26)
        return self

    def send(self, method: str, path: str, body: bytes = b"") -> None:
        """Send a request."""
        head = f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: application/json\r\n"
        self._writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    async def answer(self) -> tuple[int, bytes]:
        """Return status and body of a response with a length."""
        head = await self._reader.readuntil(b"\r\n\r\n")
        status = int(head.split(b" ", 2)[1])
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        return status, await self._reader.readexactly(length)

    async def lines(self, seen: list[int], number: int) -> None:
        """Count the lines of a stream until it ends."""
        await self._reader.readuntil(b"\r\n\r\n")
        while data := await self._reader.read(2**20):
            seen[number] += data.count(b'{"type":"')


async def bind(url: str, watches: int, connections: int) -> dict[str, object]:
    """Bind all pending pods; return the rate."""
    client = await Client(url).open()
    client.send("GET", "/api/v1/nodes")
    nodes = [one["metadata"]["name"] for one in json.loads((await client.answer())[1])["items"]]
    client.send("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3D")
    pods = [one["metadata"]["name"] for one in json.loads((await client.answer())[1])["items"]]
    seen = [0] * watches
    watchers = []
    for number in range(watches):
        one = await Client(url).open()
        one.send("GET", "/api/v1/pods?watch=true&resourceVersion=0")
        watchers.append(asyncio.create_task(one.lines(seen, number)))
    while min(seen, default=len(pods)) < len(pods):
        await asyncio.sleep(0.05)
    clients = [await Client(url).open() for _ in range(connections)]
    began = time.perf_counter()
    statuses = await asyncio.gather(
        *(_bind_some(one, pods[number::connections], nodes, number) for number, one in enumerate(clients))
    )
    seconds = time.perf_counter() - began
    deadline = time.perf_counter() + 60
    while min(seen, default=2 * len(pods)) < 2 * len(pods) and time.perf_counter() < deadline:
        await asyncio.sleep(0.02)
    for task in watchers:
        task.cancel()
    bound = sum(one.count(201) for one in statuses)
    return {"bound": bound, "of": len(pods), "seconds": seconds, "events": sum(seen), "least": min(seen, default=0)}


async def _bind_some(client: Client, pods: list[str], nodes: list[str], number: int) -> list[int]:
    statuses = []
    for place, pod in enumerate(pods):
        target = {"apiVersion": "v1", "kind": "Node", "name": nodes[(place * 7919 + number) % len(nodes)]}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target}
        client.send("POST", f"/api/v1/namespaces/default/pods/{pod}/binding", json.dumps(binding).encode())
        statuses.append((await client.answer())[0])
    return statuses


async def watch(url: str, watches: int, rate: int, seconds: int) -> dict[str, object]:
    """Write *rate* config maps a second for *seconds*; return what *watches* watchers received."""
    seen = [0] * watches
    tasks = []
    for number in range(watches):
        one = await Client(url).open()
        one.send("GET", "/api/v1/namespaces/default/configmaps?watch=true&resourceVersion=0")
        tasks.append(asyncio.create_task(one.lines(seen, number)))
    writer = await Client(url).open()
    began = time.perf_counter()
    total = rate * seconds
    for number in range(total):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{number}"}, "data": {"n": str(number)}}
        writer.send("POST", "/api/v1/namespaces/default/configmaps", json.dumps(body).encode())
        await writer.answer()
        ahead = number / rate - (time.perf_counter() - began)
        if ahead > 0.01:
            await asyncio.sleep(ahead)
    written = time.perf_counter() - began
    deadline = time.perf_counter() + 120
    while min(seen) < total and time.perf_counter() < deadline:
        await asyncio.sleep(0.02)
    took = time.perf_counter() - began
    for task in tasks:
        task.cancel()
    return {"written": total, "write_seconds": written, "seconds": took, "delivered": sum(seen), "least": min(seen)}


if __name__ == "__main__":
    kind, address, *numbers = sys.argv[1:]
    counts = [int(number) for number in numbers]
    print(json.dumps(asyncio.run(bind(address, *counts) if kind == "bind" else watch(address, *counts))))
