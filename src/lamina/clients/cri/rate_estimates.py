"""
How fast pulls were seen to go.

    Rate           bytes per second over the last few observations
    DownloadMeter  turns progress of downloads, seen now and then, into observations

Bytes and seconds are added up before they are divided: three layers that arrive together after nine seconds were
downloaded at the speed of all three.
"""

from collections import deque
from collections.abc import Mapping
from typing import Final

KEPT: Final = 10
SMALLEST: Final = 1024 * 1024
"""What is smaller tells about round trips, not about speed."""


class RateEstimate:
    """Bytes per second over the last observations."""

    def __init__(self, kept: int = KEPT) -> None:
        self._seen: deque[tuple[int, float]] = deque(maxlen=kept)

    def add(self, size: int, seconds: float) -> None:
        """Take over an observation; what is too small or took no time says nothing."""
        if size >= SMALLEST and seconds > 0:
            self._seen.append((size, seconds))

    @property
    def value(self) -> float:
        """0: nothing was seen yet."""
        seconds = sum(seconds for _, seconds in self._seen)
        return sum(size for size, _ in self._seen) / seconds if seconds else 0.0


class DownloadMeter:
    """
    Watches how far downloads have come.

    It runs from the moment the first download begins until none is left; while it runs, what arrived since the last
    observation was downloaded in the time since then, however many downloads there were at once. When one is gone and
    nobody said that it was complete, what arrived in that time is not known, and it does not count.
    """

    def __init__(self, rate: RateEstimate) -> None:
        self._rate = rate
        self._offsets: dict[str, int] = {}
        self._gone: set[str] = set()
        self._since: float | None = None
        self._bytes = 0

    def begin(self, now: float) -> None:
        """Something starts to be downloaded."""
        if self._since is None:
            self._since, self._bytes = now, 0
            self._gone.clear()

    def seen(self, offsets: Mapping[str, int], now: float) -> None:
        """Downloads have come so far; those that are not named are at an end, one way or the other."""
        running = self._since is not None
        self.begin(now)
        for name, offset in offsets.items():
            # What was there before we watched came in a time that we do not know.
            before = self._offsets.get(name, 0 if running else offset)
            self._bytes += max(offset - before, 0)
        gone = self._offsets.keys() - offsets.keys()
        self._offsets = dict(offsets)
        if gone:
            self._gone |= gone
            self._since, self._bytes = now, 0
        self._observe(now)
        if not offsets:
            self._since = None

    def finished(self, name: str, size: int, now: float) -> None:
        """One download of *size* bytes is complete."""
        if self._since is None or name in self._gone:
            return
        self._bytes += max(size - self._offsets.pop(name, 0), 0)
        self._observe(now)

    def _observe(self, now: float) -> None:
        if self._since is not None and self._bytes >= SMALLEST and now > self._since:
            self._rate.add(self._bytes, now - self._since)
            self._since, self._bytes = now, 0
