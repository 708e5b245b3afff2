"""
Asynchronous rate limit: a token bucket that makes callers wait instead of rejecting them.

Clients and services use it to limit requests per second to a server or a container runtime. Waiting is FIFO.
"""

import asyncio
from collections.abc import Awaitable, Callable

from lamina.model.token_bucket import TokenBucket


def _loop_time() -> float:
    return asyncio.get_running_loop().time()


class RateLimit:
    """At most *per_second* turns a second, with up to *burst* at once after an idle time."""

    def __init__(
        self,
        per_second: float,
        burst: int = 1,
        *,
        clock: Callable[[], float] = _loop_time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Start with a full bucket. A rate of 0 or less disables the limit."""
        self._bucket = TokenBucket(per_second, max(burst, 1))
        self._clock, self._sleep = clock, sleep

    async def turn(self) -> None:
        """Wait for the next turn; turns are granted in FIFO order."""
        wait = self._bucket.reserve(self._clock())
        if wait > 0:
            await self._sleep(wait)
