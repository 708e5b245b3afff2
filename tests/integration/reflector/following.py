"""A reflector of the config maps of a real API server, and what it did to it."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Self

import msgspec

from lamina.clients.kube.access import load_access
from lamina.clients.kube.reflector import ReflectedResource, Reflector
from lamina.clients.kube.transport import KubeClient
from testbed import Testbed
from tests.unit.clients.kube.mirrored import stop, until

PATH = "/api/v1/namespaces/default/configmaps"
RESOURCE = ReflectedResource(path=PATH, kind="ConfigMap", label_selector="of=reflector")


class Meta(msgspec.Struct):
    name: str


class Note(msgspec.Struct):
    """A config map, as far as it matters here."""

    metadata: Meta
    data: dict[str, str]


def decode(data: bytes) -> Note:
    return msgspec.json.decode(data, type=Note)


class Witness:
    """A client that writes down when it was asked for what."""

    def __init__(self, client: KubeClient) -> None:
        self.client = client
        self.asked: list[tuple[float, dict[str, str]]] = []

    async def request(self, method: str, path: str, *, query: Mapping[str, str] | None = None, **more: Any) -> bytes:
        self.asked.append((time.monotonic(), dict(query or {})))
        return await self.client.request(method, path, query=query, **more)

    @asynccontextmanager
    async def _stream(self, path: str, query: Mapping[str, str], read_timeout: float) -> AsyncIterator[Any]:
        self.asked.append((time.monotonic(), dict(query)))
        async with self.client.stream(path, query=query, read_timeout=read_timeout) as chunks:
            yield chunks

    def stream(
        self, path: str, *, query: Mapping[str, str] | None = None, read_timeout: float
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._stream(path, query or {}, read_timeout)

    @property
    def streamed_lists(self) -> int:
        return sum("sendInitialEvents" in query for _, query in self.asked)

    @property
    def pages(self) -> int:
        return sum(query.get("limit", "1") != "1" for _, query in self.asked)

    @property
    def most_in_ten_seconds(self) -> int:
        times = [at for at, _ in self.asked]
        return max((sum(start <= later < start + 10 for later in times) for start in times), default=0)


class Following:
    """A reflector at work."""

    def __init__(self, bed: Testbed) -> None:
        self.bed = bed
        self.held: dict[str, dict[str, str]] = {}
        self.written: set[str] = set()

    async def __aenter__(self) -> Self:
        self.client = KubeClient(load_access(self.bed.admin))
        self.witness = Witness(self.client)
        self.reflector = Reflector(self.witness, RESOURCE, decode, lambda note: note.metadata.name, self)
        self.task = asyncio.create_task(self.reflector.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        await stop(self.task)
        await self.client.close()

    # What a sink is told.

    def put(self, item: Note) -> None:
        self.held[item.metadata.name] = item.data

    def remove(self, key: str, last: Note) -> None:
        del self.held[key]

    def synced(self) -> None:
        pass

    # What happens in the cluster, without holding the reflector up.

    async def write(self, name: str, value: str) -> None:
        metadata = {"name": name, "labels": {"of": "reflector"}}
        body = {"metadata": metadata, "data": {"value": value}}
        if name in self.written:
            await asyncio.to_thread(self.bed.api, "PUT", f"{PATH}/{name}", body)
        else:
            await asyncio.to_thread(self.bed.api, "POST", PATH, body)
        self.written.add(name)

    async def delete(self, name: str) -> None:
        await asyncio.to_thread(self.bed.api, "DELETE", f"{PATH}/{name}")
        self.written.discard(name)

    async def truth(self) -> dict[str, dict[str, str]]:
        found = await asyncio.to_thread(self.bed.api, "GET", f"{PATH}?labelSelector=of%3Dreflector")
        return {item["metadata"]["name"]: item["data"] for item in found["items"]}

    async def settle(self, seconds: float = 60.0) -> None:
        """Wait until what we hold is what there is."""
        truth = await self.truth()
        await until(lambda: self.held == truth and self.reflector.stale_since is None, seconds)
