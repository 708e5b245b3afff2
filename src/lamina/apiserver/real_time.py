"""
Pace of a façade that serves clients live: when its virtual clock moves.

    manual      only when a client asks for it (``POST /lamina/clock``)
    virtual     to the next event, when the clients have been quiet for a while; not exact
    real-time   with the wall clock, times a factor

A pace only decides about times. `LiveClock` moves the simulation.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final, Protocol

from lamina.apiserver.live_clock import LiveClock

QUIET: Final = 0.2
"""Real seconds without a request after which clients count as quiet, unless the user chooses others."""
READS: Final = 10
"""Times the quiet period for which clients that only read can hold the clock: one of them may poll for ever."""
LONGEST_WAIT: Final = 3600.0


class ClockPace(Protocol):
    """Moves a clock while a façade is served."""

    mode: str

    def catch_up(self, clock: LiveClock) -> None:
        """Move the clock before a request is handled."""
        ...

    def skip(self, seconds: float) -> None:
        """Note that a client moved the clock ahead."""
        ...

    async def run(self, clock: LiveClock) -> None:
        """Move the clock until cancelled."""
        ...


class ManualPace:
    """Never moves the clock itself."""

    mode = "manual"

    def catch_up(self, clock: LiveClock) -> None:
        """Do nothing."""

    def skip(self, seconds: float) -> None:
        """Do nothing."""

    async def run(self, clock: LiveClock) -> None:
        """Wait until cancelled."""
        await asyncio.Event().wait()


class QuietPace:
    """
    Moves the clock to the next event when clients have been quiet.

    The clock stands still until the first client writes or opens a watch, so that a scheduler that is started by hand
    misses nothing.
    """

    mode = "virtual"

    def __init__(self, quiet: float = QUIET) -> None:
        """Wait for *quiet* real seconds without a request."""
        self._quiet = quiet

    def catch_up(self, clock: LiveClock) -> None:
        """Do nothing."""

    def skip(self, seconds: float) -> None:
        """Do nothing."""

    async def run(self, clock: LiveClock) -> None:
        """Move the clock until cancelled."""
        while True:
            await clock.started.wait()
            await self._wait_for_quiet(clock)
            if not await clock.pending():
                continue
            clock.jump()
            # Clients get the events before the next jump.
            await asyncio.sleep(0)

    async def _wait_for_quiet(self, clock: LiveClock) -> None:
        while True:
            acted = max(clock.written_at, clock.changed_at)
            busy = max(acted, min(clock.read_at, acted + READS * self._quiet))
            left = busy + self._quiet - time.monotonic()
            if left <= 0.0:
                return
            await asyncio.sleep(left)


class RealTimePace:
    """Moves the clock with the wall clock."""

    mode = "real-time"

    def __init__(self, factor: float = 1.0, wall_clock: Callable[[], float] = time.monotonic) -> None:
        """Let *factor* virtual seconds pass in each real second."""
        self._factor = factor
        self._wall_clock = wall_clock
        self._began = wall_clock()
        self._skipped = 0.0

    @property
    def now(self) -> float:
        """The virtual time that belongs to the current real time."""
        return (self._wall_clock() - self._began) * self._factor + self._skipped

    def catch_up(self, clock: LiveClock) -> None:
        """Move the clock to the current time."""
        clock.run_until(self.now)

    def skip(self, seconds: float) -> None:
        """Stay *seconds* of virtual time ahead from now on."""
        self._skipped += seconds

    async def run(self, clock: LiveClock) -> None:
        """Move the clock until cancelled."""
        while True:
            self.catch_up(clock)
            wait = min((clock.next_at - self.now) / self._factor, LONGEST_WAIT)
            await clock.news(max(wait, 0.0))
