"""
A client of the model cluster that has no network and all its faults.

Every connection is scripted: what changes in the cluster before and while it stands, and how it ends. When the script
is over, connections stand for good, and `settled` is set as soon as everything has been sent.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

from lamina.clients.kube.errors import SilenceError, UnreachableError, from_status, read_status
from tests.unit.clients.kube.mirrored import Hands
from tests.unit.clients.kube.model_cluster import Cluster, bookmark, line, status

ANYWHERE = frozenset({"cut", "silence", "truncated"})
"""Faults that may come in the middle of a line."""
WITH_A_LIST = frozenset({"expired event", "expired answer", "bare expired", "silent close", "garbage", "truncated"})
"""Faults after which a list is needed, or may be when they come twice."""
FAULTS = sorted(
    WITH_A_LIST
    | {"cut", "silence", "close", "error event", "error answer", "overloaded", "unavailable", "no connection"}
)

CODES = {"expired answer": 410, "overloaded": 429, "unavailable": 503, "error answer": 500}

Deed = tuple[str, str, int]
"""put, delete or compact; which object; its value."""


@dataclass
class Connection:
    """What happens to one connection."""

    fault: str
    cut: int = 0
    """Bytes that get through before the fault, of those that are sent at once."""
    before: list[Deed] = field(default_factory=list)
    during: list[Deed] = field(default_factory=list)


class ModelClient:
    """Asks the model."""

    def __init__(self, cluster: Cluster, script: list[Connection], hands: Hands, *, streams: bool = True) -> None:
        self.cluster = cluster
        self.script = list(script)
        self.streams = streams
        self.hands = hands
        self.settled = asyncio.Event()
        self.opened_at: list[float] = []
        self.lists: list[str] = []
        """One for each list that was begun: streamed or paged."""
        self.read_timeouts: list[float] = []

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        timeout: float = 30.0,
        limit: int = 0,
    ) -> bytes:
        assert (method, query is not None) == ("GET", True)
        token = query.get("continue", "")
        if not token:
            self.opened_at.append(self.hands.now)
        if query["limit"] != "1" and not token:
            self.lists.append("paged")
        # Seven objects a page, so that small clusters have several.
        return self._checked(json.dumps(self.cluster.page(min(int(query["limit"]), 7), token)).encode())

    def stream(
        self, path: str, *, query: Mapping[str, str] | None = None, read_timeout: float
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._stream(query or {}, read_timeout)

    def _checked(self, body: bytes) -> bytes:
        if (said := read_status(body)) is not None:
            raise from_status("GET", said)
        return body

    @asynccontextmanager
    async def _stream(self, query: Mapping[str, str], read_timeout: float) -> AsyncIterator[AsyncIterator[bytes]]:
        self.opened_at.append(self.hands.now)
        self.read_timeouts.append(read_timeout)
        whole = query.get("sendInitialEvents") == "true"
        if whole and not self.streams:
            self._checked(json.dumps(status(422, "Invalid")).encode())
        connection = self.script.pop(0) if self.script else None
        if connection is not None:
            self._do(connection.before)
            if connection.fault == "no connection":
                raise UnreachableError("watch", "no connection")
            # Nobody is told that what he asked for without a version has expired.
            if connection.fault in CODES and not (whole and connection.fault == "expired answer"):
                self._checked(json.dumps(status(CODES[connection.fault])).encode())
        if whole:
            self.lists.append("streamed")
        yield self._lines("" if whole else query["resourceVersion"], connection)

    def _do(self, deeds: list[Deed]) -> None:
        for deed, name, value in deeds:
            match deed:
                case "put":
                    self.cluster.put(name, value)
                case "delete":
                    self.cluster.delete(name)
                case "compact":
                    self.cluster.compact()

    async def _lines(self, version: str, connection: Connection | None) -> AsyncIterator[bytes]:
        cluster = self.cluster
        if version and int(version) < cluster.compacted:
            yield line("ERROR", status(410, "Expired", "too old resource version"))
            return
        data = self._since(int(version)) if version else cluster.initial()
        if connection is None:
            yield data + bookmark(cluster.version)
            self.settled.set()
            await asyncio.Event().wait()
            return
        position = cluster.version
        self._do(connection.during)
        data += self._since(position)
        if connection.fault not in ("silent close", "expired answer"):
            yield data[: connection.cut % (len(data) + 1)] if connection.fault in ANYWHERE else data
        for rest in self._fault(connection.fault):
            yield rest

    def _since(self, version: int) -> bytes:
        return b"".join(line(change.type, change.item) for change in self.cluster.since(version))

    def _fault(self, fault: str) -> Iterator[bytes]:
        match fault:
            case "close":
                self.hands.now += 3.0  # a watch that ends at once has another meaning
            case "expired event":
                yield line("ERROR", status(410, "Expired"))
            case "bare expired":
                yield json.dumps(status(410, "Expired")).encode()
            case "error event":
                yield line("ERROR", status(500, "InternalError"))
            case "garbage":
                yield b"<html>\n"
            case "cut":
                raise UnreachableError("watch", "the connection broke")
            case "silence":
                raise SilenceError("watch", "nothing came")
