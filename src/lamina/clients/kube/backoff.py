"""
Delays between attempts to connect.

`RetryBackoff` returns the delay after a failure. `AttemptRateLimit` limits all attempts, successful ones too: a server
that closes every connection sees at most ten attempts in ten seconds.

The back-off values are those of client-go's reflector (tools/cache/reflector.go).
"""

import asyncio
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

FIRST: Final = 0.8
"""Upper bound of the first delay, in seconds."""
LONGEST: Final = 30.0
"""Upper bound of any delay, in seconds."""
FACTOR: Final = 2.0
HEALTHY: Final = 120.0
"""Seconds without a failure after which the delay starts again at `FIRST`."""
LONGEST_ASKED: Final = 60.0
"""Longest Retry-After that is honoured, in seconds."""
WINDOW: Final = 10.0
ATTEMPTS: Final = 10
"""Attempts in any `WINDOW` seconds."""


class TimeSource:
    """Clock, sleep and random numbers, so that tests can replace them."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        rng: random.Random | None = None,
    ) -> None:
        """Use a monotonic *clock*, the matching *sleep*, and *rng* for jitter."""
        self.clock = clock
        self.sleep = sleep
        self.rng = rng if rng is not None else random.Random()


class RetryBackoff:
    """Exponential back-off with full jitter: each delay is drawn between zero and a growing bound."""

    def __init__(self, timing: TimeSource) -> None:
        self._timing = timing
        self._ceiling = FIRST
        self._failed_at = float("-inf")

    def after_failure(self, asked: float | None = None) -> float:
        """Return the seconds to wait; *asked* is the server's Retry-After, used as the minimum."""
        now = self._timing.clock()
        if now - self._failed_at >= HEALTHY:
            self._ceiling = FIRST
        self._failed_at = now
        wait = self._timing.rng.uniform(0.0, self._ceiling)
        self._ceiling = min(LONGEST, self._ceiling * FACTOR)
        return max(wait, min(asked or 0.0, LONGEST_ASKED))


class AttemptRateLimit:
    """At most `ATTEMPTS` attempts in any `WINDOW` seconds."""

    def __init__(self, timing: TimeSource) -> None:
        self._timing = timing
        self._begun: deque[float] = deque(maxlen=ATTEMPTS)

    async def attempt(self) -> None:
        """Wait until another attempt is within the limit, and count it."""
        if len(self._begun) == ATTEMPTS:
            wait = self._begun[0] + WINDOW - self._timing.clock()
            if wait > 0:
                await self._timing.sleep(wait)
        self._begun.append(self._timing.clock())
