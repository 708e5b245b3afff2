"""
Running time of a group that is useful only while all its replicas run.

A sweep over the moments at which a replica starts or ends: an interval counts as effective while at least as many
replicas run as are needed, and as discarded otherwise. Moments that become known late are sorted in, as long as at most
`LATE` later moments are known; after that, they count from the oldest moment that is still open.
"""

from bisect import insort
from typing import Final

import msgspec

from lamina.qos.time_sums import Line
from lamina.qos.window_checkpoints import WindowCheckpoints, WindowCheckpointsSnapshot

LATE: Final = 32


class Switch(msgspec.Struct, frozen=True, order=True):
    """A moment at which a replica starts (+1) or ends (-1), or at which another number is needed."""

    at: float
    serial: int
    """Keeps moments with equal times in the order of arrival."""
    change: int
    needed: int | None = None


class ConcurrentSweepSnapshot(msgspec.Struct, frozen=True):
    """Serializable form of `ConcurrentSweep`."""

    since: float
    running: int
    needed: int
    latest_needed: int
    sums: tuple[float, float]
    switches: tuple[Switch, ...]
    serial: int
    window: WindowCheckpointsSnapshot | None


class ConcurrentSweep:
    """Effective and discarded running time of one controller, summed over its replicas."""

    def __init__(self, needed: int, window: float, now: float, since: float = float("-inf")) -> None:
        """Start with no running replica; what happened before *since* is not counted."""
        self._since = since
        """The sums are settled until here."""
        self._running = 0
        self._needed = needed
        self.needed = needed
        """The number of replicas that are needed now."""
        self._sums = (0.0, 0.0)
        self._switches: list[Switch] = []
        self._serial = 0
        self._line_pair: tuple[Line, Line] | None = None
        self._window = WindowCheckpoints(window, 2, now) if window else None

    def advance(self, now: float) -> None:
        """Let the window follow the time."""
        if self._window is not None:
            self._window.advance(now, self.at)

    def change(self, at: float, change: int) -> None:
        """Let a replica start (+1) or end (-1)."""
        self._insert(Switch(max(at, self._since), self._serial, change))

    def resize(self, at: float, needed: int) -> None:
        """Change the number of replicas that are needed from *at*."""
        self.needed = needed
        self._insert(Switch(max(at, self._since), self._serial, 0, needed))

    def add_past(self, effective: float, discarded: float) -> None:
        """Add time that was swept before."""
        self._sums = (self._sums[0] + effective, self._sums[1] + discarded)
        self._line_pair = None

    def at(self, t: float) -> tuple[float, float]:
        """Return effective and discarded time at *t*, which must not be before the settled time."""
        sums, since, running, _ = self._swept(t)
        return sums if since == t or not running else self._until(sums, since, t)

    def lines(self, now: float) -> tuple[Line, Line]:
        """Return effective and discarded time within the window as functions of time, valid from *now*."""
        if self._line_pair is None:
            (effective, discarded), since, running, needed = self._swept(float("inf"))
            slopes = (running, 0) if running >= needed else (0, running)
            start = since if running else 0.0
            self._line_pair = (
                Line(slopes[0], effective - slopes[0] * start),
                Line(slopes[1], discarded - slopes[1] * start),
            )
        if self._window is None:
            return self._line_pair
        base = self._window.base(now)
        first, second = self._line_pair
        return Line(first.slope, first.offset - base[0]), Line(second.slope, second.offset - base[1])

    def snapshot(self) -> ConcurrentSweepSnapshot:
        """Return the state as data."""
        window = None if self._window is None else self._window.snapshot()
        return ConcurrentSweepSnapshot(
            self._since,
            self._running,
            self._needed,
            self.needed,
            self._sums,
            tuple(self._switches),
            self._serial,
            window,
        )

    def restore(self, snapshot: ConcurrentSweepSnapshot) -> None:
        """Restore a snapshot of a sweep with the same window."""
        self._since, self._running = snapshot.since, snapshot.running
        self._needed, self.needed = snapshot.needed, snapshot.latest_needed
        self._sums, self._switches, self._serial = snapshot.sums, list(snapshot.switches), snapshot.serial
        self._line_pair = None
        if self._window is not None and snapshot.window is not None:
            self._window.restore(snapshot.window)

    def _insert(self, switch: Switch) -> None:
        self._serial += 1
        self._line_pair = None
        insort(self._switches, switch)
        if self._window is not None:
            self._window.refresh(switch.at, self.at)
        while len(self._switches) > LATE:
            self._settle()

    def _settle(self) -> None:
        """Fold the oldest moment into the sums."""
        oldest = self._switches.pop(0)
        self._sums = self._added(self._sums, self._since, oldest.at, self._running, self._needed)
        self._since = oldest.at
        self._running += oldest.change
        self._needed = self._needed if oldest.needed is None else oldest.needed

    def _swept(self, t: float) -> tuple[tuple[float, float], float, int, int]:
        """Return the sums at the last moment until *t*, the time of that moment, and the numbers running and needed."""
        sums, since, running, needed = self._sums, self._since, self._running, self._needed
        for switch in self._switches:
            if switch.at > t:
                break
            sums = self._added(sums, since, switch.at, running, needed)
            since, running = switch.at, running + switch.change
            needed = needed if switch.needed is None else switch.needed
        return sums, since, running, needed

    def _until(self, sums: tuple[float, float], since: float, t: float) -> tuple[float, float]:
        _, _, running, needed = self._swept(t)
        return self._added(sums, since, t, running, needed)

    @staticmethod
    def _added(sums: tuple[float, float], start: float, end: float, running: int, needed: int) -> tuple[float, float]:
        """Return the sums after an interval in which nothing changed."""
        if not running:
            return sums
        spent = (end - start) * running
        return (sums[0] + spent, sums[1]) if running >= needed else (sums[0], sums[1] + spent)
