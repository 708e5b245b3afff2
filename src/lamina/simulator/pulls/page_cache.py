"""
Page cache of a node: unpacking threads write to memory until it is full, then at the rate of the disk.

    dirty bytes < size: each thread writes at its own rate
    cache full:         all threads together write at the disk's rate

The cache is written back at the disk's rate, also while no thread writes. This is why, with much memory and a slow
disk, the first gigabyte is unpacked several times as fast as the tenth.
"""

from lamina.simulator.engine import Environment, Link, Timer
from lamina.simulator.engine.environment import INFINITY


class PageCache:
    """Sets the rate of the link that models one node's disk."""

    __slots__ = ("_disk", "_environment", "_rate", "_read_at", "_size", "_thread", "_timer", "_waiting", "_writers")

    def __init__(self, environment: Environment, disk: Link, size: float, thread: float) -> None:
        """Cache up to *size* bytes from threads that write *thread* bytes per second each."""
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
        """Change the number of writing threads by *more*, which may be negative."""
        self._read()
        self._writers += more
        self._aim()

    def _read(self) -> None:
        """Update the number of bytes that wait for the disk."""
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
