"""
Clients of the façade benchmark, in a process of their own: a scripted binder, or many watchers.

    bind URL WATCHES CONNECTIONS     bind all pending pods to the nodes in turn, with watches open beside
    watch URL WATCHES RATE SECONDS   write objects, and count the events that each watch delivers

Each prints one line of JSON. Plain asyncio streams: the client must cost less than the server.
"""

import asyncio
import json
import sys
import time
from urllib.parse import urlsplit

EVENT_END = b"}\n"
"""End of a watch event. JSON of the server has no line breaks, and a line of the chunked coding ends with CR LF."""


class WatchConnection(asyncio.Protocol):
    """One watch, of which only the number of events is kept, however its bytes are divided into reads."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._last = b""
        self.count = 0
        self.ended = False
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the request."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Count the events that end in *data*."""
        self.count += data.count(EVENT_END)
        if self._last == EVENT_END[:1] and data[:1] == EVENT_END[1:]:
            self.count += 1
        self._last = data[-1:]

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that no event will follow."""
        self.ended = True


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


class Watchers:
    """Many watches of one path."""

    def __init__(self) -> None:
        self._watches: list[WatchConnection] = []

    async def open(self, url: str, path: str, count: int) -> None:
        """Open *count* watches that begin with all present objects."""
        parts, loop = urlsplit(url), asyncio.get_running_loop()
        request = f"GET {path}?watch=true&resourceVersion=0 HTTP/1.1\r\nHost: {parts.hostname}\r\n\r\n".encode()
        host, port = parts.hostname or "", parts.port or 80
        for _ in range(count):
            _, watch = await loop.create_connection(lambda: WatchConnection(request), host, port)
            self._watches.append(watch)

    @property
    def least(self) -> int:
        """The number of events of the watch that has received fewest."""
        return min(one.count for one in self._watches)

    @property
    def total(self) -> int:
        """The number of events of all watches."""
        return sum(one.count for one in self._watches)

    async def receive(self, events: int, seconds: float) -> None:
        """Wait until every watch has received *events* events, or *seconds* have passed. Raises if a watch ended."""
        deadline = time.perf_counter() + seconds
        while self.least < events and time.perf_counter() < deadline:
            if any(one.ended for one in self._watches):
                raise EOFError(f"the server ended a watch; the slowest has received {self.least} of {events} events")
            await asyncio.sleep(0.02)

    def close(self) -> None:
        """Stop all watches."""
        for one in self._watches:
            one.transport.abort()


async def bind(url: str, watches: int, connections: int) -> dict[str, object]:
    """Bind all pending pods; return the rate."""
    client = await Client(url).open()
    client.send("GET", "/api/v1/nodes")
    nodes = [one["metadata"]["name"] for one in json.loads((await client.answer())[1])["items"]]
    client.send("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3D")
    pods = [one["metadata"]["name"] for one in json.loads((await client.answer())[1])["items"]]
    watchers = Watchers()
    await watchers.open(url, "/api/v1/pods", watches)
    began = time.perf_counter()
    await watchers.receive(len(pods), 120.0)
    initial = time.perf_counter() - began
    assert watchers.least == len(pods), f"{watchers.least} of {len(pods)} initial events"
    clients = [await Client(url).open() for _ in range(connections)]
    began = time.perf_counter()
    statuses = await asyncio.gather(
        *(_bind_some(one, pods[number::connections], nodes, number) for number, one in enumerate(clients))
    )
    seconds = time.perf_counter() - began
    await watchers.receive(2 * len(pods), 60.0)
    watchers.close()
    return {
        "bound": sum(one.count(201) for one in statuses),
        "of": len(pods),
        "seconds": seconds,
        "initial_seconds": initial,
        "events": watchers.total,
        "least": watchers.least,
    }


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
    watchers = Watchers()
    await watchers.open(url, "/api/v1/namespaces/default/configmaps", watches)
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
    await watchers.receive(total, 120.0)
    took = time.perf_counter() - began
    watchers.close()
    return {
        "written": total,
        "write_seconds": written,
        "seconds": took,
        "delivered": watchers.total,
        "least": watchers.least,
    }


if __name__ == "__main__":
    kind, address, *numbers = sys.argv[1:]
    counts = [int(number) for number in numbers]
    print(json.dumps(asyncio.run(bind(address, *counts) if kind == "bind" else watch(address, *counts))))
