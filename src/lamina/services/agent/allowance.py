"""
How much of something may be done: so much at once, and so much more in every hour.

What a reader offers is written for ever and for everybody. Whoever has taken over a reader could offer without end, and
the publisher could not tell; so there is an end.
"""


class Allowance:
    """Counts down, and slowly up again; told the time by whoever asks."""

    def __init__(self, at_once: int, per_hour: float) -> None:
        """Begin with *at_once*, which is also the most there ever is."""
        self._most, self._per_second = float(at_once), per_hour / 3600
        self._left = self._most
        self._since: float | None = None

    def enough(self, now: float) -> bool:
        """Whether there is one left."""
        if self._since is not None:
            self._left = min(self._left + (now - self._since) * self._per_second, self._most)
        self._since = now
        return self._left >= 1

    def take(self) -> None:
        """Use one."""
        self._left -= 1
