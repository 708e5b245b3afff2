"""
The order of waiting controllers, as arrays: QoS metrics of all rows at a time, their order, and when it can change.

A row is a controller, or one replica slot if its replicas are independent. Between two facts the sums of a row are
linear in time, so its metric consists of at most two straight lines: one while the promise is broken and one while it
is kept. That is why the next moment at which two rows change places can be computed instead of polled.
"""

import math
from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from lamina.qos.promise import Promise, QosApproach
from lamina.qos.standing import ASSUMED_OVERHEAD, MICROSECOND, ReplicaCounts
from lamina.qos.time_sums import Line
from lamina.rows.growable import grown

Numbers = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]

RESOLUTION: Final = 1e-3
"""Seconds by which a predicted change of the order is late, so that it has happened at that time."""
HOPELESS: Final = 1e-6
"""Importance that a controller loses while it is hopeless: less than what differs between two promises."""
_EQUAL: Final = 1e-9
_APPROACHES: Final = {approach: float(code) for code, approach in enumerate(QosApproach)}
_INDEPENDENT: Final = _APPROACHES[QosApproach.INDEPENDENT]
_CONCURRENT: Final = _APPROACHES[QosApproach.CONCURRENT]

(
    _E_SLOPE,
    _E_OFFSET,
    _T_SLOPE,
    _T_OFFSET,
    _O_SLOPE,
    _O_OFFSET,
    _SLO,
    _IMPORTANCE,
    _LOSS,
    _NEEDED,
    _APPROACH,
    _LOST_SLOPE,
    _LOST_OFFSET,
    _PLACED_SLOPE,
    _PLACED_OFFSET,
    _LIMIT,
) = range(16)
_COLUMNS: Final = 16


class OrderRow(msgspec.Struct, frozen=True):
    """What the order of a row depends on."""

    promise: Promise
    effective: Line
    total: Line
    binding: Line
    """Binding time over the whole lifetime."""
    incarnations: int
    counts: ReplicaCounts
    lost: Line
    """Time that preemptions have cost."""
    placed: Line
    """Time since placement: binding, effective and discarded."""


class RunningPods(msgspec.Struct, frozen=True, eq=False):
    """What preemption compares of pods on nodes: an element for each pod. Times are seconds since the origin."""

    rows: Rows
    """In the order table; -1 for pods that the engine does not know."""
    metrics: Numbers
    slopes: Numbers
    """Change of the metrics in the next second."""
    importances: Numbers
    overheads: Numbers
    """Preemption overheads."""
    limits: Numbers
    """The largest ones at which the pods may be preempted."""
    slos: Numbers
    ran_from: Numbers
    """Since when they run; infinity for those that do not."""
    contributing: npt.NDArray[np.bool_]
    """Whether their running time counts."""


class OrderTable:
    """Rows with linear sums. Times are seconds since the engine's origin."""

    def __init__(self, safety_margin: float, hopeless_after: float = math.inf) -> None:
        """Start without rows."""
        self._margin = safety_margin
        self._hopeless_after = hopeless_after
        self._levels = [one for one in (0.0, safety_margin, -hopeless_after) if math.isfinite(one)]
        """Metrics at which the order can change."""
        self._columns: Numbers = np.zeros((_COLUMNS, 0))
        self._free: list[int] = []
        self._size = 0

    def __len__(self) -> int:
        """Return the number of rows in use."""
        return self._size - len(self._free)

    def add(self) -> int:
        """Return a new row, without values."""
        if self._free:
            return self._free.pop()
        self._size += 1
        self._columns = grown(self._columns, self._size)
        return self._size - 1

    def remove(self, row: int) -> None:
        """Let a row be used again."""
        self._free.append(row)

    def put(self, row: int, values: OrderRow) -> None:
        """Set a row."""
        promise, counts = values.promise, values.counts
        measured = values.binding.offset > MICROSECOND or values.binding.slope > 0
        count = max(values.incarnations, 1)
        if promise.approach is QosApproach.AVERAGE or promise.approach is QosApproach.AGGREGATE:
            loss = (counts.running + counts.pending) * promise.slo - counts.running
        else:
            loss = 0.0
        self._columns[:, row] = (
            values.effective.slope,
            values.effective.offset,
            values.total.slope,
            values.total.offset,
            values.binding.slope / count if measured else 0.0,
            values.binding.offset / count if measured else ASSUMED_OVERHEAD,
            promise.slo,
            promise.importance,
            loss,
            counts.needed,
            _APPROACHES[promise.approach],
            values.lost.slope,
            values.lost.offset,
            values.placed.slope,
            values.placed.offset,
            promise.overhead_limit,
        )

    def metrics(self, rows: Rows, t: float | Numbers) -> Numbers:
        """Return the QoS metrics of waiting pods of these rows; *t* is one time, or one for each row."""
        c = self._columns[:, rows]
        effective = c[_E_SLOPE] * t + c[_E_OFFSET]
        total = c[_T_SLOPE] * t + c[_T_OFFSET]
        overhead = c[_O_SLOPE] * t + c[_O_OFFSET]
        slo, approach = c[_SLO], c[_APPROACH]
        promised = slo > 0
        gap = effective - slo * total
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(promised, effective / slo, np.where(effective > MICROSECOND, np.inf, 0.0))
            slack = reach - np.where(promised, total, 0.0)
            kept = np.where(
                approach == _CONCURRENT,
                slack / c[_NEEDED],
                np.where(gap <= MICROSECOND, 0.0, np.where(c[_LOSS] > 0, gap / c[_LOSS] - overhead, np.inf)),
            )
        broken = (gap < -MICROSECOND) | ((total <= MICROSECOND) & promised) | (approach == _INDEPENDENT)
        metrics: Numbers = np.where(broken, slack - np.where(promised, overhead, 0.0), kept)
        return metrics

    def preemption_overheads(self, rows: Rows, t: float) -> Numbers:
        """Return the share of the time since placement that preemptions have cost."""
        c = self._columns[:, rows]
        lost, placed = c[_LOST_SLOPE] * t + c[_LOST_OFFSET], c[_PLACED_SLOPE] * t + c[_PLACED_OFFSET]
        with np.errstate(divide="ignore", invalid="ignore"):
            shares: Numbers = np.where(placed > MICROSECOND, np.clip(lost / placed, 0.0, 1.0), 0.0)
        return shares

    def ranks(self, rows: Rows, t: float | Numbers, hopeless_after: float) -> Numbers:
        """Return the importances of rows; those of hopeless controllers are lower than those of their peers."""
        found: Numbers = self._columns[_IMPORTANCE, rows]
        if hopeless_after < math.inf:
            found = found - HOPELESS * (self.metrics(rows, t) < -hopeless_after)
        return found

    def slos(self, rows: Rows) -> Numbers:
        """Return the SLOs of rows."""
        found: Numbers = self._columns[_SLO, rows]
        return found

    def overhead_limits(self, rows: Rows) -> Numbers:
        """Return the largest preemption overheads at which pods of rows may be preempted."""
        found: Numbers = self._columns[_LIMIT, rows]
        return found

    @property
    def height(self) -> int:
        """Number of rows, free ones included."""
        return self._size

    def key_parts(self, rows: Rows, t: float) -> tuple[Numbers, Numbers, Numbers]:
        """Return by what rows are ordered: whether they are safe, then importance among those in danger, then metric."""
        metrics = self.metrics(rows, t)
        danger = metrics < self._margin
        rank: Numbers = np.where(danger, -self.ranks(rows, t, self._hopeless_after), 0.0)
        return (~danger).astype(np.float64), rank, metrics

    def order(self, rows: Rows, t: float, arrivals: Sequence[float] | Numbers | None = None) -> Rows:
        """
        Return the positions of *rows* in the order in which their pods go.

        Below the safety margin the higher importance goes first. Otherwise, and among equals, the smaller metric does.
        The rest is decided by *arrivals*, or by the position.
        """
        safe, rank, metrics = self.key_parts(rows, t)
        last = np.arange(len(rows)) if arrivals is None else np.asarray(arrivals)
        return np.lexsort((last, metrics, rank, safe))

    def next_flip(self, rows: Rows, t: float) -> float:
        """
        Return the next time at which *rows*, given in their order at *t*, are in another order; infinity if never.

        It holds as long as no fact arrives and no window moves. The result is late by `RESOLUTION`, so that the order
        is the new one then. A change of the order always starts between two neighbours, so only these are compared.
        """
        first, second = rows[:-1], rows[1:]
        differ = first != second
        first, second = first[differ], second[differ]
        if not len(first):
            return math.inf
        moments = np.sort(self._moments(first, second, t), axis=0)
        # A moment with no later one is followed by one second in which nothing else happens.
        later = np.vstack([moments[1:], np.full((1, len(first)), np.inf)])
        middle = np.where(np.isfinite(later), (moments + np.where(np.isfinite(later), later, 0.0)) / 2, moments + 1.0)
        found = math.inf
        for when, check in zip(moments, middle, strict=True):
            finite = np.isfinite(when)
            if finite.any():
                swapped = self._precedes(second[finite], first[finite], check[finite])
                found = min(found, float(np.min(when[finite][swapped], initial=math.inf)))
        return found + RESOLUTION

    def _precedes(self, rows: Rows, others: Rows, t: Numbers) -> npt.NDArray[np.bool_]:
        """Return for each pair whether the first one clearly goes before the second."""
        metrics, against = self.metrics(rows, t), self.metrics(others, t)
        danger, other_danger = metrics < self._margin, against < self._margin
        one, two = self.ranks(rows, t, self._hopeless_after), self.ranks(others, t, self._hopeless_after)
        more, fewer = one > two, one < two
        both = danger & other_danger
        smaller = metrics < against - _EQUAL
        result: npt.NDArray[np.bool_] = np.where(both & (more | fewer), more, smaller)
        return result

    def _moments(self, first: Rows, second: Rows, t: float) -> Numbers:
        """Return all moments from *t* on at which pairs may change places: a row for each reason."""
        some, others = self._lines(first), self._lines(second)
        moments = [np.full(len(first), t)]
        # A line that is infinite or undefined reaches nothing.
        with np.errstate(divide="ignore", invalid="ignore"):
            for rows, lines in ((first, some), (second, others)):
                c = self._columns[:, rows]
                gap = (c[_E_SLOPE] - c[_SLO] * c[_T_SLOPE], c[_E_OFFSET] - c[_SLO] * c[_T_OFFSET])
                moments.append(_zero(*gap, 0.0))
                for slope, offset in lines:
                    moments += [_zero(slope, offset, level) for level in self._levels]
            for slope, offset in some:
                moments += [_zero(slope - its_slope, offset - its_offset, 0.0) for its_slope, its_offset in others]
            table = np.vstack(moments)
            return np.where(table >= t, table, np.inf)

    def _lines(self, rows: Rows) -> tuple[tuple[Numbers, Numbers], tuple[Numbers, Numbers]]:
        """Return slope and offset of the metric while the promise is broken, and while it is kept."""
        c = self._columns[:, rows]
        slo = c[_SLO]
        with np.errstate(divide="ignore", invalid="ignore"):
            slopes = c[_E_SLOPE] / slo - c[_T_SLOPE]
            offsets = c[_E_OFFSET] / slo - c[_T_OFFSET]
            concurrent = c[_APPROACH] == _CONCURRENT
            kept = (
                np.where(
                    concurrent,
                    slopes / c[_NEEDED],
                    (c[_E_SLOPE] - slo * c[_T_SLOPE]) / c[_LOSS] - c[_O_SLOPE],
                ),
                np.where(
                    concurrent,
                    offsets / c[_NEEDED],
                    (c[_E_OFFSET] - slo * c[_T_OFFSET]) / c[_LOSS] - c[_O_OFFSET],
                ),
            )
        return (slopes - c[_O_SLOPE], offsets - c[_O_OFFSET]), kept


def _zero(slope: Numbers, offset: Numbers, level: float) -> Numbers:
    """Return when lines reach a level; infinity or NaN if they never do."""
    when: Numbers = np.where(slope == 0, np.inf, (level - offset) / slope)
    return when
