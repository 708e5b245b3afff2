"""
The time the decision core is told.

Seconds since 1970 at the start, and from there on as many more as really passed: somebody who sets the machine's clock
ends no back-off and makes nobody wait.
"""

import time


class SteadyClock:
    """Tells the time, which never goes back."""

    def __init__(self) -> None:
        """Start from what the machine believes now."""
        self._ahead = time.time() - time.monotonic()

    def now(self) -> float:
        """Seconds since 1970, by a clock nobody sets."""
        return self._ahead + time.monotonic()

    def wall(self) -> float:
        """Seconds since 1970, as the machine believes right now: what times of others are compared with."""
        return time.time()
