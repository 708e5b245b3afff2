"""
Clock of a façade that serves clients live: the simulation's time, moved from outside, and what clients did when.

A pace (`real_time`) decides when the clock moves. Everything runs on one event loop, so a request never meets a
simulation in the middle of an event.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from lamina.simulator.engine import Environment
from lamina.simulator.engine.environment import INFINITY

SLICE: Final = 0.05
"""Real seconds for which events are fired before the event loop continues."""


class LiveClock:
    """The clock of one live façade."""

    def __init__(self, environment: Environment, revision: Callable[[], int]) -> None:
        """Move *environment*; *revision* returns the newest resource version."""
        self._environment = environment
        self._revision = revision
        self._news = asyncio.Event()
        self.started = asyncio.Event()
        """Set when the first client has written or opened a watch."""
        self.read_at = self.written_at = self.changed_at = 0.0
        """Real times of the last request, the last write, and the last event that clients could see."""

    @property
    def now(self) -> float:
        """The current virtual time in seconds."""
        return self._environment.now

    @property
    def next_at(self) -> float:
        """Time of the next event; infinity if nothing is going to happen."""
        return self._environment.peek()

    def note_request(self, *, writes: bool, begins: bool) -> None:
        """Record a request; *begins* starts a clock that waits for its first client."""
        self.read_at = time.monotonic()
        if writes:
            self.written_at = self.read_at
        if begins:
            self.started.set()
        self._news.set()

    def run_until(self, until: float) -> None:
        """Fire everything up to *until*; a time in the past fires what is due now."""
        before = self._revision()
        self._environment.run(max(until, self._environment.now))
        if self._revision() != before:
            self.changed_at = time.monotonic()

    def jump(self) -> None:
        """Move to the next event, and on to the first one that clients can see, for at most `SLICE` real seconds."""
        before, limit = self._revision(), time.monotonic() + SLICE
        while self._revision() == before and self.next_at < INFINITY and time.monotonic() < limit:
            self._environment.run(self.next_at)
        if self._revision() != before:
            self.changed_at = time.monotonic()

    async def pending(self) -> bool:
        """Return True if an event is pending, or False after news that may have brought one."""
        if self.next_at < INFINITY:
            return True
        await self.news(None)
        return False

    async def news(self, seconds: float | None) -> None:
        """Wait for a request, for at most *seconds*."""
        self._news.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return
