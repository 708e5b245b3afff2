"""
The host of the live loop: feeds it what was seen and hands its commands on.

    watches ──> inbox ──> loop.take ──> loop.decide ──> executor ──> API server
                  ^                                        │
                  +──────── BindDone, BindFailed ──────────+

Everything runs on one event loop. Deciding is done in slices of a few milliseconds, so that watches are read and
bindings sent in between; and only as long as not too many bindings are on their way, because what is decided early is
decided on old news.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final, Protocol

from lamina.model.events import TimePassed
from lamina.scheduling.framework.commands import Command, TellPending, WakeAt
from lamina.scheduling.loop.loop import Loop
from lamina.services.intake.clock import Clock
from lamina.services.intake.inbox import Inbox

SLICE: Final = 0.005
"""Seconds of deciding before others get their turn."""
TAKING: Final = 0.02
"""Seconds of taking in before others get their turn: a thousand reports of nodes would take a second."""
PORTION: Final = 50
"""Events taken in between two looks at the clock."""
SLEEP_AT_MOST: Final = 30.0
"""However little happens, time passes in the loop this often."""


class Performer(Protocol):
    """Whoever does what the loop asks for."""

    def perform(self, command: Command) -> None:
        """Start doing it; answers come as events."""

    @property
    def busy(self) -> bool:
        """Whether so much is on its way that deciding has to wait."""


class Watcher(Protocol):
    """Whoever wants to know how the loop is doing."""

    def attempted(self, seconds: float, commands: list[Command]) -> None:
        """One pod was looked at; *commands* is what came of it."""

    def unchanged(self, seconds: float, profile: str) -> None:
        """One pod was refused in the same words as before, which nobody has to be told."""


class Host:
    """Stands between one loop and the world."""

    def __init__(self, loop: Loop, inbox: Inbox, performer: Performer, watcher: Watcher, clock: Clock) -> None:
        """Decide nothing until `allowed` says so."""
        self.loop = loop
        self._inbox = inbox
        self._performer = performer
        self._watcher = watcher
        self._clock = clock
        self._wake_at: float | None = None
        self.allowed: Callable[[], bool] = lambda: False
        """Whether pods may be decided now: everything was seen, and this instance leads."""

    @property
    def caught_up(self) -> bool:
        """Whether everything that was seen has been taken in."""
        return len(self._inbox) == 0

    async def run(self) -> None:
        """Feed the loop until cancelled."""
        while True:
            await self._inbox.wait(self._patience())
            self.step()
            await asyncio.sleep(0)

    def step(self) -> None:
        """Take in a portion of what was seen, then decide for one slice."""
        now = self._clock.now()
        self.loop.take(TimePassed(now))
        until = time.perf_counter() + TAKING
        while True:
            self.loop.take(*self._inbox.take(PORTION))
            if self.caught_up or time.perf_counter() >= until:
                break
        if not self.caught_up or not self.allowed():
            return
        if self._wake_at is not None and self._wake_at <= now:
            self._wake_at = None
        until = time.perf_counter() + SLICE
        while True:
            began = time.perf_counter()
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
            self._watcher.attempted(time.perf_counter() - began, commands)
        elif self.loop.tried:
            self._watcher.unchanged(time.perf_counter() - began, self.loop.tried[0])
        return attempted

    def _overtaken(self, command: Command) -> bool:
        """Whether a pod that was to be told why it waits does not wait any more: news may be old when leading begins."""
        return isinstance(command, TellPending) and self.loop.queue.get(command.pod.uid) is None

    def _go_on(self) -> None:
        """Come back at once when pods are ready; if only the world is busy, its next answer rings the bell."""
        if self.loop.unfinished and not self._performer.busy:
            self._inbox.ring()

    def _patience(self) -> float:
        if self._wake_at is None or self._performer.busy or not self.allowed():
            # Whoever ends that rings the bell.
            return SLEEP_AT_MOST
        return min(max(self._wake_at - self._clock.now(), 0.0), SLEEP_AT_MOST)
