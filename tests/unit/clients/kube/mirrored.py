"""What the tests of the reflector hand it: a clock that jumps, a decoder, and a sink that keeps everything."""

import asyncio
import random
from collections.abc import Callable
from typing import Any

import msgspec

from lamina.clients.kube.backoff import TimeSource
from lamina.clients.kube.reflector import ReflectedResource, Reflector, WatchClient
from tests.unit.clients.kube.model_cluster import PATH

PODS = ReflectedResource(path=PATH, kind="Pod")


class Hands:
    """A clock whose hands are moved by whoever waits."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waits: list[float] = []

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    def timing(self, seed: int = 1) -> TimeSource:
        return TimeSource(self.clock, self.sleep, random.Random(seed))


class Meta(msgspec.Struct):
    name: str
    namespace: str = ""


class Thing(msgspec.Struct):
    """An object of the model cluster."""

    metadata: Meta
    value: Any = None

    @property
    def key(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"


def decode(data: bytes) -> Thing:
    thing = msgspec.json.decode(data, type=Thing)
    if thing.value == "unreadable":
        raise ValueError("a value that nobody can read")
    return thing


class Keeper:
    """A sink that keeps what it is told, and a log of it."""

    def __init__(self) -> None:
        self.things: dict[str, object] = {}
        self.log: list[str] = []
        self.full = asyncio.Event()

    def put(self, item: Thing) -> None:
        self.things[item.key] = item.value
        self.log.append(f"put {item.key}={item.value}")

    def remove(self, key: str, last: Thing) -> None:
        assert last.key == key
        del self.things[key]
        self.log.append(f"remove {key}")

    def synced(self) -> None:
        self.log.append("synced")
        self.full.set()


def reflector(client: WatchClient, keeper: Keeper, timing: TimeSource | None = None) -> Reflector[Thing]:
    return Reflector(client, PODS, decode, lambda thing: thing.key, keeper, timing=timing)


async def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait for something that happens on the event loop."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.001)


async def stop(task: asyncio.Task[None]) -> None:
    """Cancel a reflector that must still be running."""
    assert not task.done(), task
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
