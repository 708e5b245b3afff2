"""
The model cluster behind a real socket, with one fault at a time.

    server = FaultServer(cluster, hands)
    server.faults = ["410 event"]         what the next watches meet, one each; afterwards it behaves
    server.always = "reset"               what every watch meets, for ever
    server.listing = "422"                what a streamed list is answered with, while pages are served
    server.hang_up("close")               end the watch that stands, properly or by "reset"

Time is the hands' time: the server notes when it was asked by the clock that the reflector waits by.
"""

import asyncio
import json
from dataclasses import replace
from typing import Self

from lamina.clients.kube.transport import KubeClient
from tests.unit.clients.kube.loopback import Answer, Asked, Loopback, Stub
from tests.unit.clients.kube.mirrored import Hands, Keeper, reflector, stop
from tests.unit.clients.kube.model_cluster import Cluster, bookmark, line, status

PAGE = 700
"""Objects that the server puts into a page at most."""
TOO_LARGE = status(
    504, "Timeout", "Too large resource version: 999, current: 5", causes=[{"reason": "ResourceVersionTooLarge"}]
)
NO_PROGRESS = status(500, "", "a watch stream was requested by the client but the required storage feature is disabled")

SAYINGS = {
    "410 event": line("ERROR", status(410, "Expired")),
    "410 bare": json.dumps(status(410, "Expired")).encode() + b"\n",
    "504 event": line("ERROR", TOO_LARGE),
    "no progress": line("ERROR", NO_PROGRESS),
    "silent close": b"",
    "garbage": b"<html>\n",
    "truncated": b'{"type":"ADDED","object":{"metadata":',
}
"""What a watch says before it is closed properly."""


class FaultServer:
    """Serves the cluster, or a fault."""

    def __init__(self, cluster: Cluster, hands: Hands) -> None:
        self.cluster = cluster
        self.hands = hands
        self.faults: list[str] = []
        self.always = ""
        self.listing = ""
        self.ending = ""
        self.asked_at: list[float] = []
        self.changed = asyncio.Event()
        self.loopback = Loopback(self.answer)

    @property
    def queries(self) -> list[dict[str, str]]:
        return [asked.query for asked in self.loopback.asked]

    @property
    def lists(self) -> int:
        """How many lists were begun."""
        return sum(
            asked.streams_list or (not asked.watches and asked.query["limit"] != "1" and "continue" not in asked.query)
            for asked in self.loopback.asked
        )

    def change(self) -> None:
        """Tell watches that there is news."""
        self.changed.set()
        self.changed = asyncio.Event()

    def hang_up(self, how: str) -> None:
        """End the watch that stands."""
        self.ending = how
        self.change()

    async def answer(self, asked: Asked, reply: Answer) -> None:
        self.asked_at.append(self.hands.now)
        if not asked.watches:
            limit, token = min(int(asked.query["limit"]), PAGE), asked.query.get("continue", "")
            page = self.cluster.page(limit, token)
            await reply.reply(json.dumps(page).encode(), "410 Gone" if page["kind"] == "Status" else "200 OK")
            return
        if asked.streams_list and self.listing:
            await self.fail(self.listing, reply, b"")
            return
        version = int(asked.query.get("resourceVersion", 0))
        fault = self.always or (self.faults[0] if self.faults else "")
        if self.always in ONLY_WATCHES and asked.streams_list:
            await self.say(reply, self.cluster.initial())
        elif fault and not (asked.streams_list and fault in ONLY_WATCHES):
            self.faults = self.faults[1:]
            await self.fail(fault, reply, self.now(asked, version))
        elif version and version < self.cluster.compacted:
            await reply.reply(json.dumps(status(410, "Expired")).encode(), "410 Gone")
        else:
            await self.serve(asked, reply, version)

    def now(self, asked: Asked, version: int) -> bytes:
        if asked.streams_list:
            return self.cluster.initial()
        return b"".join(line(change.type, change.item) for change in self.cluster.since(version))

    async def serve(self, asked: Asked, reply: Answer, version: int) -> None:
        await reply.begin()
        while True:
            changed = self.changed
            data, version = self.now(asked, version), self.cluster.version
            asked = replace(asked, query={})  # what follows a list are events
            await reply.chunk(data + bookmark(version))
            await changed.wait()
            if self.ending:
                break
        how, self.ending = self.ending, ""
        if how == "close":
            await reply.finish()
        else:
            reply.reset()

    async def fail(self, fault: str, reply: Answer, data: bytes) -> None:
        if fault in SAYINGS:
            await self.say(reply, SAYINGS[fault])
            return
        match fault.split():
            case [code, *more] if code.isdigit():
                headers = {"Retry-After": more[1]} if more[:1] == ["retry"] else {}
                said = TOO_LARGE if more == ["answer"] else status(int(code), "Because")
                await reply.reply(json.dumps(said).encode(), f"{code} Because", headers)
            case ["plain", "bookmark"]:
                await reply.begin()
                await reply.chunk(bookmark(5))
                await asyncio.sleep(60)
            case ["close"]:
                await self.say(reply, data or bookmark(self.cluster.version))
            case ["silence"]:
                await reply.begin()
                await asyncio.sleep(60)
            case ["reset"]:
                reply.reset()
            case ["cut", where]:
                await reply.begin()
                await reply.chunk(data[: int(where)])
                # What was written is sent before the connection is closed, and no end of the answer.
            case _:
                raise AssertionError(fault)

    async def say(self, reply: Answer, data: bytes) -> None:
        await reply.begin()
        await reply.chunk(data)
        await reply.finish()


ONLY_WATCHES = frozenset({"410", "410 event", "410 bare", "silent close", "504 answer", "504 event"})
"""Faults that only a watch with a version meets."""


class Stage:
    """A cluster, its server, and a reflector that follows it."""

    def __init__(self, objects: int = 5) -> None:
        self.hands = Hands()
        self.cluster = Cluster()
        for number in range(objects):
            self.cluster.put(f"p{number}", number)
        self.server = FaultServer(self.cluster, self.hands)
        self.keeper = Keeper()

    async def __aenter__(self) -> Self:
        await self.server.loopback.__aenter__()
        self.client = KubeClient(Stub(self.server.loopback.url))
        self.reflector = reflector(self.client, self.keeper, self.hands.timing())
        self.task: asyncio.Task[None] | None = None
        return self

    def start(self) -> None:
        self.task = asyncio.create_task(self.reflector.run())

    async def __aexit__(self, *_: object) -> None:
        if self.task is not None:
            await stop(self.task)
        await self.client.close()
        await self.server.loopback.__aexit__()

    @property
    def true(self) -> bool:
        """Whether the sink has what is true."""
        return self.keeper.things == self.cluster.truth

    @property
    def most_in_ten_seconds(self) -> int:
        """The most requests that any ten seconds saw."""
        asked = self.server.asked_at
        return max((sum(start <= later < start + 10 - 1e-6 for later in asked) for start in asked), default=0)
