"""
Waits for a token: how many requests a second a server or a runtime gets, whatever else happens.

No request is refused; some wait, in the order in which they came. Clients and services use this.
"""

import asyncio
from collections.abc import Awaitable, Callable

from lamina.model.token_bucket import TokenBucket


def _loop_time() -> float:
    return asyncio.get_running_loop().time()


class RateLimit:
    """At most *per_second* turns a second, of which *burst* may come at once after a rest."""

    def __init__(
        self,
        per_second: float,
        burst: int = 1,
        *,
        clock: Callable[[], float] = _loop_time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Start rested. At a rate of 0 or less there is no limit."""
        self._bucket = TokenBucket(per_second, max(burst, 1))
        self._clock, self._sleep = clock, sleep

    async def turn(self) -> None:
        """Wait for the next turn; turns are given in the order in which they are asked for."""
        wait = self._bucket.reserve(self._clock())
        if wait > 0:
            await self._sleep(wait)
