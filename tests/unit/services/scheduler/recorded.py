"""A small recorded life of a scheduler, for tests of rings, recordings and replays."""

import random
from collections.abc import Iterator
from typing import Any

import msgspec

from lamina.model import events
from lamina.scheduling.config.loader import Configuration
from lamina.scheduling.config.named_profiles import named
from lamina.scheduling.contract.commands import Bind
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.loop.loop_snapshot import what_is_lost
from lamina.scheduling.loop.loop_state import LoopSettings
from lamina.scheduling.plugins.in_tree import registry
from lamina.services.scheduler.event_ring import EventRing, RingLimits, Segment, TiePicks
from lamina.services.scheduler.recordings import RecordingWriter
from lamina.testing import a_node, a_pod, an_image, held
from lamina.trace.recording import RecordingRecord
from lamina.trace.recording_reader import read_recording

REGISTRY = registry(entry_points=False)
IMAGES = [an_image(f"app-{number}:1", {"base": 50_000_000, f"app-{number}": 90_000_000}) for number in range(3)]


class Life:
    """A loop that is fed through a ring: nodes, layers, pods that fit, wait and go."""

    def __init__(self, limits: RingLimits | None = None, configuration: Configuration | None = None) -> None:
        self.configuration = configuration or named("lamina-balanced", REGISTRY).called("default-scheduler")
        self.now = 0.0
        picks = TiePicks(random.Random(5).randrange)
        self.loop = Loop(self.configuration.profiles, picks, LoopSettings(self.configuration.backoff, "savings"))
        self.full: list[Segment] = []
        self.ring = EventRing(self.loop, picks, lambda: 1000.0 + self.now, limits, self.full.append)
        self.writer = RecordingWriter(self.configuration, "savings", what_is_lost(self.loop.profiles))
        self.serial = 0
        self.bound: list[str] = []
        self.ring.take(events.ImagesLearned(tuple(IMAGES)))
        for number in range(4):
            node = a_node(f"n{number}", cpu=4, uid=f"n{number}")
            self.ring.take(events.NodeSeen(node), events.LayersReported(held(f"n{number}", *IMAGES[: number % 3])))

    def step(self, **more: Any) -> None:
        """A pod comes; every fourth finds no room, and now and then one goes."""
        self.serial += 1
        self.now += 0.7
        self.ring.take(events.TimePassed(self.now))
        cpu = 9 if self.serial % 4 == 0 else 1
        pod = a_pod(f"p{self.serial}", cpu=cpu, image=f"app-{self.serial % 3}:1")
        self.ring.take(events.PodSeen(msgspec.structs.replace(pod, **more)))
        for command in self.decide():
            if isinstance(command, Bind):
                self.bound.append(command.pod.uid)
                placed = msgspec.structs.replace(command.pod, node_name=command.node, started=self.serial % 2 == 0)
                self.ring.take(events.BindDone(command.pod.uid), events.PodSeen(placed))
        if len(self.bound) > 8:
            self.ring.take(events.PodGone(self.bound.pop(0)))

    def decide(self) -> Iterator[Any]:
        """Decide one pod after the other, as the host does."""
        while True:
            commands = self.ring.decide(1)
            yield from commands
            if not commands and not self.ring.unfinished:
                return

    def live(self, steps: int, **more: Any) -> "Life":
        for _ in range(steps):
            self.step(**more)
        return self


def records_of(data: bytes, folder: Any) -> list[RecordingRecord]:
    """Read a recording, by way of a file."""
    path = folder / "events.lamrec"
    path.write_bytes(data)
    return list(read_recording(path))
