"""
Clock that the services pass to the decision loop.

It starts at the machine's seconds since 1970 and then advances with the monotonic clock. Setting the machine's clock
therefore neither ends nor prolongs a back-off.
"""

import time


class SteadyClock:
    """Clock that never goes back."""

    def __init__(self) -> None:
        """Start from the machine's current time."""
        self._ahead = time.time() - time.monotonic()

    def now(self) -> float:
        """Return seconds since 1970 at the start plus the monotonic time since; not affected by clock changes."""
        return self._ahead + time.monotonic()

    def wall(self) -> float:
        """Return the machine's current seconds since 1970; compare timestamps of other machines with this one."""
        return time.time()
