"""
Host of the live loop: feeds it events and passes its commands on.

    informers ──> event queue ──> loop.take ──> loop.decide ──> executor ──> API server
                      ^                                            │
                      +────────── BindDone, BindFailed ────────────+

Everything runs on one event loop. Deciding is done in slices of a few milliseconds, so that watches are read and
bindings are sent in between. It pauses while too many bindings are in flight, because decisions made early use old
data.

After the initial sync, every step decides for a slice, even if events arrive faster than they are processed. Events are
processed in order, so the loop then sees an earlier state of the cluster, not a wrong one.
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
"""Seconds of deciding before other tasks get their turn."""
TAKING: Final = 0.02
"""Seconds of event processing before other tasks get their turn: a thousand node reports would take a second."""
SHARE: Final = 0.25
"""Seconds of deciding for each second of event processing, at least: one event may take longer than a whole slice."""
PORTION: Final = 50
"""Events taken out of the queue at once; learned images are merged within a portion."""
SLEEP_AT_MOST: Final = 30.0
"""Longest time in seconds between two updates of the loop's time."""


class CommandPerformer(Protocol):
    """Performs the commands of the loop."""

    def perform(self, command: Command) -> None:
        """Start to perform a command; outcomes arrive as events."""

    @property
    def busy(self) -> bool:
        """Whether so much is in flight that deciding must wait."""


class AttemptListener(Protocol):
    """Receives the attempts of the loop."""

    def attempted(self, seconds: float, commands: list[Command]) -> None:
        """Record an attempt; *commands* are its outcome."""

    def unchanged(self, seconds: float, profile: str) -> None:
        """Record an attempt that failed with the same message as the last one, and so is not reported."""


class DecisionLoop(Protocol):
    """The part of the loop that the host uses; the event ring implements it too."""

    @property
    def queue(self) -> SchedulingQueue:
        """The waiting pods."""

    @property
    def unfinished(self) -> bool:
        """Whether the last `decide` stopped at its limit."""

    @property
    def tried(self) -> list[str]:
        """The profiles of the pods that the last `decide` attempted."""

    def take(self, *happened: Event) -> None:
        """Process events without deciding."""

    def decide(self, limit: int = 0) -> list[Command]:
        """Decide up to *limit* pods (0: all that are ready); return the commands."""


class SchedulerHost:
    """Connects one loop with the event queue and the executor."""

    def __init__(  # noqa: PLR0913 - its neighbours and its callbacks
        self,
        loop: DecisionLoop,
        event_queue: EventQueue,
        performer: CommandPerformer,
        listener: AttemptListener,
        clock: SteadyClock,
        *,
        allowed: Callable[[], bool],
        synced: Callable[[], bool] = lambda: True,
        stopwatch: Callable[[], float] = time.perf_counter,
    ) -> None:
        """
        Connect these.

        *allowed* returns whether pods may be decided now: the caches are synced, and this instance leads. *synced*
        returns whether the caches are synced; their events may still wait in the queue. *stopwatch* measures the
        slices, in seconds.
        """
        self.loop = loop
        self._queue = event_queue
        self._performer = performer
        self._listener = listener
        self._clock = clock
        self._allowed, self._synced = allowed, synced
        self._stopwatch = stopwatch
        self._wake_at: float | None = None
        self._portion: deque[Event] = deque()
        """Events taken out of the queue and not processed yet."""
        self._size = 0
        """How many queued events the portion came from; some of them are merged."""
        self._initial_events: int | None = None
        """Unprocessed events of the initial sync; None before the caches are synced."""

    @property
    def caught_up(self) -> bool:
        """Whether all events of the initial sync are processed. Later events may wait."""
        return self._initial_events == 0

    @property
    def waiting(self) -> int:
        """The number of unprocessed events."""
        return len(self._queue) + len(self._portion)

    async def run(self) -> None:
        """Feed the loop until cancelled."""
        while True:
            await self._queue.wait(self._wait_time())
            self.step()
            await asyncio.sleep(0)

    def step(self) -> None:
        """Process events for one slice, then decide for another."""
        now = self._clock.now()
        self.loop.take(TimePassed(now))
        if self._initial_events is None and self._synced():
            self._initial_events = len(self._queue) + self._size
        began = self._stopwatch()
        while True:
            self._take_one()
            taken = self._stopwatch() - began
            if not self.waiting or taken >= TAKING:
                break
        if self.caught_up and self._allowed():
            if self._wake_at is not None and self._wake_at <= now:
                self._wake_at = None
            self._decide(max(SLICE, SHARE * taken))
        if self._portion:
            # The queue does not count these events.
            self._queue.wake()

    def _take_one(self) -> None:
        if not self._portion:
            # Take even when empty: `take` clears the wake flag.
            before = len(self._queue)
            self._portion.extend(self._queue.take(PORTION))
            self._size = before - len(self._queue)
        if self._portion:
            self.loop.take(self._portion.popleft())
        if not self._portion:
            if self._initial_events:
                self._initial_events = max(self._initial_events - self._size, 0)
            self._size = 0

    def _decide(self, seconds: float) -> None:
        until = self._stopwatch() + seconds
        while True:
            began = self._stopwatch()
            if began >= until or self._performer.busy:
                break
            # An attempt with an unchanged message has no command, so continue until no pod is ready.
            if not self._decide_one(began) and not self.loop.unfinished:
                break
        self._continue()

    def _decide_one(self, began: float) -> bool:
        commands = self.loop.decide(1)
        attempted = False
        for command in commands:
            if isinstance(command, WakeAt):
                self._wake_at = command.at
            elif not self._outdated(command):
                attempted = True
                self._performer.perform(command)
        if attempted:
            self._listener.attempted(self._stopwatch() - began, commands)
        elif self.loop.tried:
            self._listener.unchanged(self._stopwatch() - began, self.loop.tried[0])
        return attempted

    def _outdated(self, command: Command) -> bool:
        """Return whether a report is outdated: its pod no longer waits. Reports may be old after a leader change."""
        return isinstance(command, ReportUnschedulable) and self.loop.queue.get(command.pod.uid) is None

    def _continue(self) -> None:
        """Continue at once if pods are ready; if the executor is busy, its next answer wakes the host."""
        if self.loop.unfinished and not self._performer.busy:
            self._queue.wake()

    def _wait_time(self) -> float:
        if self._wake_at is None or self._performer.busy or not self._allowed():
            # The change of any of these wakes the host.
            return SLEEP_AT_MOST
        return min(max(self._wake_at - self._clock.now(), 0.0), SLEEP_AT_MOST)
