"""
The host of the live loop: feeds it what was seen and hands its commands on.

    watches ──> inbox ──> loop.take ──> loop.decide ──> executor ──> API server
                  ^                                        │
                  +──────── BindDone, BindFailed ──────────+

Everything runs on one event loop. Deciding is done in slices of a few milliseconds, so that watches are read and
bindings sent in between; and only as long as not too many bindings are on their way, because what is decided early is
decided on old news.

After the first look, every step decides for a slice, also when events come in faster than they are taken in. Events are
taken in the order they came, so a part of them is an earlier state of the cluster and no wrong one.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from lamina.model.events import Event, TimePassed
from lamina.scheduling.contract.commands import Command, ReportUnschedulable, WakeAt
from lamina.scheduling.loop.scheduling_queue import SchedulingQueue
from lamina.services.informers.clock import SteadyClock
from lamina.services.informers.event_queue import EventQueue

SLICE: Final = 0.005
"""Seconds of deciding before others get their turn."""
TAKING: Final = 0.02
"""Seconds of taking in before others get their turn: a thousand reports of nodes would take a second."""
SHARE: Final = 0.25
"""Seconds of deciding for each second of taking in, at least: one event may take longer than a whole slice."""
PORTION: Final = 50
"""Events taken out of the inbox at once; what was learned about images is joined within a portion."""
SLEEP_AT_MOST: Final = 30.0
"""However little happens, time passes in the loop this often."""


class CommandPerformer(Protocol):
    """Whoever does what the loop asks for."""

    def perform(self, command: Command) -> None:
        """Start doing it; answers come as events."""

    @property
    def busy(self) -> bool:
        """Whether so much is on its way that deciding has to wait."""


class AttemptListener(Protocol):
    """Whoever wants to know how the loop is doing."""

    def attempted(self, seconds: float, commands: list[Command]) -> None:
        """One pod was looked at; *commands* is what came of it."""

    def unchanged(self, seconds: float, profile: str) -> None:
        """One pod was refused in the same words as before, which nobody has to be told."""


class DecisionLoop(Protocol):
    """The loop, as far as its host feeds it; or a recorder that feeds the loop."""

    @property
    def queue(self) -> SchedulingQueue:
        """The pods that wait."""

    @property
    def unfinished(self) -> bool:
        """Whether the last `decide` stopped at its limit."""

    @property
    def tried(self) -> list[str]:
        """The profiles of the pods the last `decide` looked at."""

    def take(self, *happened: Event) -> None:
        """Take events in without deciding anything yet."""

    def decide(self, limit: int = 0) -> list[Command]:
        """Decide up to *limit* pods (0: all that are ready) and return what is to be done."""


class SchedulerHost:
    """Stands between one loop and the world."""

    def __init__(
        self,
        loop: DecisionLoop,
        inbox: EventQueue,
        performer: CommandPerformer,
        watcher: AttemptListener,
        clock: SteadyClock,
        *,
        stopwatch: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Decide nothing until `allowed` says so; *stopwatch* cuts the slices, in seconds."""
        self.loop = loop
        self._inbox = inbox
        self._performer = performer
        self._watcher = watcher
        self._clock = clock
        self._stopwatch = stopwatch
        self._wake_at: float | None = None
        self._portion: deque[Event] = deque()
        """Out of the inbox and not taken in yet."""
        self._size = 0
        """How many events of the inbox the portion was; some of them are joined."""
        self._first_look: int | None = None
        """Events of the first look that are not taken in yet; None before everything was seen."""
        self.synced: Callable[[], bool] = lambda: True
        """Whether everything there is was seen; what was seen may still wait in the inbox."""
        self.allowed: Callable[[], bool] = lambda: False
        """Whether pods may be decided now: everything was seen, and this instance leads."""

    @property
    def caught_up(self) -> bool:
        """Whether the first look is over: all that was seen by then has been taken in. What came later may wait."""
        return self._first_look == 0

    @property
    def waiting(self) -> int:
        """How many events wait to be taken in."""
        return len(self._inbox) + len(self._portion)

    async def run(self) -> None:
        """Feed the loop until cancelled."""
        while True:
            await self._inbox.wait(self._patience())
            self.step()
            await asyncio.sleep(0)

    def step(self) -> None:
        """Take in for one slice what was seen, then decide for another."""
        now = self._clock.now()
        self.loop.take(TimePassed(now))
        if self._first_look is None and self.synced():
            self._first_look = len(self._inbox) + self._size
        began = self._stopwatch()
        while True:
            self._take_one()
            taken = self._stopwatch() - began
            if not self.waiting or taken >= TAKING:
                break
        if self.caught_up and self.allowed():
            if self._wake_at is not None and self._wake_at <= now:
                self._wake_at = None
            self._decide(max(SLICE, SHARE * taken))
        if self._portion:
            # The inbox does not know of these.
            self._inbox.ring()

    def _take_one(self) -> None:
        if not self._portion:
            # Also when the inbox is empty: `take` clears the bell.
            before = len(self._inbox)
            self._portion.extend(self._inbox.take(PORTION))
            self._size = before - len(self._inbox)
        if self._portion:
            self.loop.take(self._portion.popleft())
        if not self._portion:
            if self._first_look:
                self._first_look = max(self._first_look - self._size, 0)
            self._size = 0

    def _decide(self, seconds: float) -> None:
        until = self._stopwatch() + seconds
        while True:
            began = self._stopwatch()
            if began >= until or self._performer.busy:
                break
            # An attempt whose pod was told the same before ends in no command, so this asks until nobody is ready.
            if not self._decide_one(began) and not self.loop.unfinished:
                break
        self._go_on()

    def _decide_one(self, began: float) -> bool:
        commands = self.loop.decide(1)
        attempted = False
        for command in commands:
            if isinstance(command, WakeAt):
                self._wake_at = command.at
            elif not self._overtaken(command):
                attempted = True
                self._performer.perform(command)
        if attempted:
            self._watcher.attempted(self._stopwatch() - began, commands)
        elif self.loop.tried:
            self._watcher.unchanged(self._stopwatch() - began, self.loop.tried[0])
        return attempted

    def _overtaken(self, command: Command) -> bool:
        """Whether a pod that was to be told why it waits does not wait any more: news may be old when leading begins."""
        return isinstance(command, ReportUnschedulable) and self.loop.queue.get(command.pod.uid) is None

    def _go_on(self) -> None:
        """Come back at once when pods are ready; if only the world is busy, its next answer rings the bell."""
        if self.loop.unfinished and not self._performer.busy:
            self._inbox.ring()

    def _patience(self) -> float:
        if self._wake_at is None or self._performer.busy or not self.allowed():
            # Whoever ends that rings the bell.
            return SLEEP_AT_MOST
        return min(max(self._wake_at - self._clock.now(), 0.0), SLEEP_AT_MOST)
