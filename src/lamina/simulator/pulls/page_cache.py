"""
Memory in front of a node's disk: writers run ahead of the disk until it is full.

    bytes waiting for the disk < size: threads write as fast as they can
    full:                              threads together write as fast as the disk

What memory has taken in goes to the disk at the disk's rate, also while nobody writes. This is why a first gigabyte is
unpacked several times as fast as the tenth on machines with much memory and a slow disk.
"""

from lamina.simulator.engine import Environment, Link, Timer
from lamina.simulator.engine.environment import INFINITY


class PageCache:
    """Opens and narrows the link that stands for one node's disk."""

    __slots__ = ("_disk", "_environment", "_rate", "_read_at", "_size", "_thread", "_timer", "_waiting", "_writers")

    def __init__(self, environment: Environment, disk: Link, size: float, thread: float) -> None:
        """Take in up to *size* bytes from threads that write *thread* bytes per second each."""
        self._environment = environment
        self._disk = disk
        self._rate = disk.rate
        self._size = size
        self._thread = thread
        self._writers = 0
        self._waiting = 0.0
        self._read_at = environment.now
        self._timer: Timer | None = None
        disk.set_rate(INFINITY)

    def writers(self, more: int) -> None:
        """So many *more* threads write from now on, or fewer."""
        self._read()
        self._writers += more
        self._aim()

    def _read(self) -> None:
        """Bring up to date what waits for the disk."""
        now = self._environment.now
        grown = (self._writers * self._thread - self._rate) * (now - self._read_at)
        self._waiting = min(self._size, max(0.0, self._waiting + grown))
        self._read_at = now

    def _aim(self) -> None:
        if self._timer is not None:
            self._environment.cancel(self._timer)
            self._timer = None
        ahead = self._writers * self._thread - self._rate
        if ahead <= 0.0:
            self._disk.set_rate(INFINITY)
        elif self._waiting >= self._size:
            self._disk.set_rate(self._rate)
        else:
            self._disk.set_rate(INFINITY)
            self._timer = self._environment.after((self._size - self._waiting) / ahead, self._fill)

    def _fill(self) -> None:
        self._timer = None
        self._read_at = self._environment.now
        self._waiting = self._size
        self._disk.set_rate(self._rate)
