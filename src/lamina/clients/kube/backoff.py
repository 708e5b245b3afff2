"""
When to try again.

`RetryBackoff` says how long to wait after a failure, `AttemptRateLimit` how long before any attempt at all: whatever happens, and
however well, a server that cannot keep a connection open sees ten attempts in ten seconds and no more.

The figures of the back-off are client-go's for its reflector (tools/cache/reflector.go).
"""

import asyncio
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

FIRST: Final = 0.8
"""Seconds the first wait may last."""
LONGEST: Final = 30.0
"""Seconds the longest may last."""
FACTOR: Final = 2.0
HEALTHY: Final = 120.0
"""Seconds without a failure after which the next one counts as the first."""
LONGEST_ASKED: Final = 60.0
"""Seconds that a server's Retry-After is honoured for; a server that asks for an hour is asked again sooner."""
WINDOW: Final = 10.0
ATTEMPTS: Final = 10
"""Attempts in any `WINDOW` seconds."""


class TimeSource:
    """Where time and luck come from."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        rng: random.Random | None = None,
    ) -> None:
        """Read *clock*, which never goes back, wait by *sleep* and throw *rng*'s dice."""
        self.clock = clock
        self.sleep = sleep
        self.rng = rng if rng is not None else random.Random()


class RetryBackoff:
    """Longer waits after every failure, spread by chance from zero to their full length."""

    def __init__(self, timing: TimeSource) -> None:
        self._timing = timing
        self._ceiling = FIRST
        self._failed_at = float("-inf")

    def after_failure(self, asked: float | None = None) -> float:
        """Say how many seconds to wait; *asked* is what the server wants, and the least it gets."""
        now = self._timing.clock()
        if now - self._failed_at >= HEALTHY:
            self._ceiling = FIRST
        self._failed_at = now
        wait = self._timing.rng.uniform(0.0, self._ceiling)
        self._ceiling = min(LONGEST, self._ceiling * FACTOR)
        return max(wait, min(asked or 0.0, LONGEST_ASKED))


class AttemptRateLimit:
    """At most `ATTEMPTS` in any `WINDOW` seconds."""

    def __init__(self, timing: TimeSource) -> None:
        self._timing = timing
        self._begun: deque[float] = deque(maxlen=ATTEMPTS)

    async def attempt(self) -> None:
        """Wait until one more attempt is within the pace, and count it."""
        if len(self._begun) == ATTEMPTS:
            wait = self._begun[0] + WINDOW - self._timing.clock()
            if wait > 0:
                await self._timing.sleep(wait)
        self._begun.append(self._timing.clock())
