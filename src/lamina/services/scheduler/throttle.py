"""How many requests a second, as ``clientConnection.qps`` and ``burst`` say; none is refused, some wait."""

import asyncio


class Throttle:
    """A bucket of permissions that fills at a steady rate; at a rate of 0 or less nobody waits."""

    def __init__(self, rate: float, burst: int) -> None:
        """Start full."""
        self._rate = rate
        self._burst = max(burst, 1)
        self._level = float(self._burst)
        self._filled_at = 0.0

    async def pass_by(self) -> None:
        """Take one permission, and wait as long as it takes to come in."""
        if self._rate <= 0:
            return
        now = asyncio.get_running_loop().time()
        if self._filled_at:
            self._level = min(self._level + (now - self._filled_at) * self._rate, float(self._burst))
        self._filled_at = now
        # Below zero: as many stand in line already, each of whom has counted itself in.
        self._level -= 1.0
        if self._level < 0:
            await asyncio.sleep(-self._level / self._rate)
