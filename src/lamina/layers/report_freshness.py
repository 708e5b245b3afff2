"""
How far each row's report can still be believed.

A report that promises another within some time is believed in full until twice that has passed. From then on its weight
halves every time it should have been renewed, and after four of those it counts for nothing: the row is then one about
which nothing is known. Reports that promise nothing hold until they are replaced.
"""

from typing import Final

import msgspec
import numpy as np

from lamina.layers.layer_set import Floats, Lines

GRACE: Final = 2.0
HALVINGS: Final = 4
# How often growing doubt counts as a change, in seconds.
TICK: Final = 30.0


class ReportFreshnessSnapshot(msgspec.Struct, frozen=True):
    """Everything a `ReportFreshness` knows."""

    clock: float
    ends: tuple[tuple[int, float, float], ...]
    """Row, until when it is believed in full, and in how long belief halves."""
    overdue: tuple[int, ...]


class ReportFreshness:
    """When each row's report should have been renewed."""

    def __init__(self) -> None:
        """Believe everybody."""
        self._ends: dict[int, tuple[float, float]] = {}
        """Row → until when it is believed in full, and in how long belief halves."""
        self.clock = 0.0
        """The last tick: doubt counts from here until the next."""
        self._overdue: set[int] = set()

    def renew(self, row: int, observed_at: float, renews_within: float, now: float) -> bool:
        """A row has reported; say whether that changes how far it is believed."""
        doubted = row in self._overdue
        self.forget(row)
        if renews_within > 0:
            # A node whose clock is ahead is not believed for longer.
            self._ends[row] = (min(observed_at, now) + GRACE * renews_within, renews_within)
            if self._ends[row][0] < self.clock:
                self._overdue.add(row)
        return doubted or row in self._overdue

    def forget(self, row: int) -> None:
        """A row's report is gone."""
        self._ends.pop(row, None)
        self._overdue.discard(row)

    def pass_time(self, now: float) -> list[int]:
        """Move on; return the rows that are believed less than before."""
        if now < self.clock + TICK:
            return []
        self.clock = now
        self._overdue = {row for row, (end, _) in self._ends.items() if end < now}
        return sorted(self._overdue)

    def of(self, rows: slice | Lines, height: int) -> Floats | None:
        """Return how far each row is believed, from 1 down to 0; None when all are believed in full."""
        if not self._overdue:
            return None
        trust = np.ones(height)
        for row in self._overdue:
            end, half = self._ends[row]
            halvings = (self.clock - end) / half
            if row < height:
                trust[row] = 0.5**halvings if halvings < HALVINGS else 0.0
        return trust[rows]

    def snapshot(self) -> ReportFreshnessSnapshot:
        """Return everything there is to know about it, as data."""
        ends = tuple((row, end, half) for row, (end, half) in self._ends.items())
        return ReportFreshnessSnapshot(self.clock, ends, tuple(sorted(self._overdue)))

    def restore(self, snapshot: ReportFreshnessSnapshot) -> None:
        """Become what the snapshot was taken of."""
        self.clock = snapshot.clock
        self._ends = {row: (end, half) for row, end, half in snapshot.ends}
        self._overdue = self._ends.keys() & set(snapshot.overdue)
