"""
Estimates of download and unpack rates, from observed pulls.

    RateEstimate   bytes per second over the last observations
    DownloadMeter  converts the progress of downloads to observations

Bytes and seconds are summed before the division: three layers that arrive together after nine seconds were downloaded
at the combined rate of all three.
"""

from collections import deque
from collections.abc import Mapping
from typing import Final

KEPT: Final = 10
SMALLEST: Final = 1024 * 1024
"""Bytes. Smaller transfers measure round trips, not the rate."""


class RateEstimate:
    """Bytes per second over the last observations."""

    def __init__(self, kept: int = KEPT) -> None:
        self._seen: deque[tuple[int, float]] = deque(maxlen=kept)

    def add(self, size: int, seconds: float) -> None:
        """Add an observation; ones that are too small or took no time are ignored."""
        if size >= SMALLEST and seconds > 0:
            self._seen.append((size, seconds))

    @property
    def value(self) -> float:
        """Bytes per second; 0 before the first observation."""
        seconds = sum(seconds for _, seconds in self._seen)
        return sum(size for size, _ in self._seen) / seconds if seconds else 0.0


class DownloadMeter:
    """
    Measures the download rate of a node from the offsets of its downloads.

    The meter runs from the start of the first download until none is left. While it runs, all bytes that arrived since
    the last observation count for the time since then, however many downloads ran at once. If a download disappears
    without a completion event, the bytes of that interval are unknown, and the interval is dropped.
    """

    def __init__(self, rate: RateEstimate) -> None:
        self._rate = rate
        self._offsets: dict[str, int] = {}
        self._gone: set[str] = set()
        self._since: float | None = None
        self._bytes = 0

    def begin(self, now: float) -> None:
        """Start the meter, unless it runs."""
        if self._since is None:
            self._since, self._bytes = now, 0
            self._gone.clear()

    def seen(self, offsets: Mapping[str, int], now: float) -> None:
        """Record the offsets of all downloads; those not in *offsets* have ended."""
        running = self._since is not None
        self.begin(now)
        for name, offset in offsets.items():
            # Bytes that arrived before the meter ran belong to an unknown time.
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
        """Record that a download of *size* bytes is complete."""
        if self._since is None or name in self._gone:
            return
        self._bytes += max(size - self._offsets.pop(name, 0), 0)
        self._observe(now)

    def _observe(self, now: float) -> None:
        if self._since is not None and self._bytes >= SMALLEST and now > self._since:
            self._rate.add(self._bytes, now - self._since)
            self._since, self._bytes = now, 0
