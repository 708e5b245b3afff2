"""
How often a runtime is asked.

A runtime has containers to start; who looks at it waits for a turn. A few questions may follow each other at once, so
that one look is not spread over many seconds, but over time there are no more than the pace allows.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable


class Pace:
    """At most *per_second* turns a second, of which *burst* may come at once after a rest."""

    def __init__(
        self,
        per_second: float,
        burst: int = 1,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._gap = 1.0 / per_second
        self._slack = (burst - 1) * self._gap
        self._clock, self._sleep = clock, sleep
        self._next = clock() - self._slack

    async def turn(self) -> None:
        """Wait until it is our turn; turns are given in the order in which they are asked for."""
        now = self._clock()
        at = max(self._next, now - self._slack)
        # Taken before the wait: whoever asks meanwhile comes after.
        self._next = at + self._gap
        if at > now:
            await self._sleep(at - now)
