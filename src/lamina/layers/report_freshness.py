"""
Weight of each row's report, from 1 (fresh) to 0 (expired).

A report that promises a renewal within some time has full weight until twice that time has passed. From then on its
weight halves with every missed renewal. After four of them it is 0, and the row's layers are unknown. Reports that
promise no renewal keep full weight until they are replaced.
"""

from typing import Final

import msgspec
import numpy as np

from lamina.layers.layer_set import Floats, Lines

GRACE: Final = 2.0
HALVINGS: Final = 4
# Falling weights mark rows as changed at most once per TICK seconds.
TICK: Final = 30.0


class ReportFreshnessSnapshot(msgspec.Struct, frozen=True):
    """Serializable form of `ReportFreshness`."""

    clock: float
    ends: tuple[tuple[int, float, float], ...]
    """Row, time until which it has full weight, and half-life in seconds."""
    overdue: tuple[int, ...]


class ReportFreshness:
    """The times at which each row's report should have been renewed."""

    def __init__(self) -> None:
        """Start without reports; rows without an entry have full weight."""
        self._ends: dict[int, tuple[float, float]] = {}
        """Row → time until which it has full weight, and half-life in seconds."""
        self.clock = 0.0
        """The last tick. Weights are computed for this time until the next tick."""
        self._overdue: set[int] = set()

    def renew(self, row: int, observed_at: float, renews_within: float, now: float) -> bool:
        """Record a row's report; return whether the row's weight changes."""
        was_overdue = row in self._overdue
        self.forget(row)
        if renews_within > 0:
            # A node whose clock is ahead gains no extra time.
            self._ends[row] = (min(observed_at, now) + GRACE * renews_within, renews_within)
            if self._ends[row][0] < self.clock:
                self._overdue.add(row)
        return was_overdue or row in self._overdue

    def forget(self, row: int) -> None:
        """Remove a row's report."""
        self._ends.pop(row, None)
        self._overdue.discard(row)

    def pass_time(self, now: float) -> list[int]:
        """Set the time; return the rows whose weight fell."""
        if now < self.clock + TICK:
            return []
        self.clock = now
        self._overdue = {row for row, (end, _) in self._ends.items() if end < now}
        return sorted(self._overdue)

    def of(self, rows: slice | Lines, height: int) -> Floats | None:
        """Return the weight of each row, from 1 down to 0; None when all have full weight."""
        if not self._overdue:
            return None
        weights = np.ones(height)
        for row in self._overdue:
            end, half = self._ends[row]
            halvings = (self.clock - end) / half
            if row < height:
                weights[row] = 0.5**halvings if halvings < HALVINGS else 0.0
        return weights[rows]

    def snapshot(self) -> ReportFreshnessSnapshot:
        """Return the state as data."""
        ends = tuple((row, end, half) for row, (end, half) in self._ends.items())
        return ReportFreshnessSnapshot(self.clock, ends, tuple(sorted(self._overdue)))

    def restore(self, snapshot: ReportFreshnessSnapshot) -> None:
        """Restore a snapshot."""
        self.clock = snapshot.clock
        self._ends = {row: (end, half) for row, end, half in snapshot.ends}
        self._overdue = self._ends.keys() & set(snapshot.overdue)
