"""
How evenly the requested cpu lies on the nodes, averaged over time.

    heating    time average of: largest share / mean share                 1 when no node is hotter than the others
    balance    time average of: standard deviation of shares / mean share  0 when all nodes are alike
    requested  cpu-seconds asked for / cpu-seconds there were

A node's share is the cpu that its pods ask for, divided by what the node can give; a pod counts from its binding until
it ends. All nodes that are in the cluster count, empty, cordoned and failed ones too; a node without cpu has no share.

The window goes from the first arrival of the scenario to the last one before its end. It belongs to the scenario and
not to the run, so every profile is judged over the same time: how a cluster looks while it drains says more about how
long the pods run than about where they were placed. Where all pods come at once the window is that instant, as it looks
when everything that happens in it has happened. The creation of a controller, and a change to it, count as arrivals; if
nothing else arrives, the window goes on to the end the scenario sets. For heating and balance, time during which
nothing was asked of any node does not count.

Told records by the run. Keeps whole numbers, so the same run gives the same figures however many changes it had, and
a change costs the same on a hundred nodes and on ten thousand.
"""

import math
from typing import Final

import msgspec

from lamina.model.resources import CPU
from lamina.simulator.run.run_counters import RecordHandlers
from lamina.simulator.workloads import Scenario
from lamina.trace.trace_records import (
    NodeJoined,
    NodeLeft,
    PodArrived,
    PodBound,
    PodEvicted,
    PodFailed,
    PodFinished,
    PodRejected,
    PodRemoved,
    TraceRecord,
)

WHOLE: Final = 2**48
"""What a share of 1 is counted as. Sums of whole numbers do not drift as sums of fractions would."""


PodEnding = PodEvicted | PodFailed | PodFinished | PodRejected | PodRemoved


def arrival_window(scenario: Scenario) -> tuple[float, float]:
    """Say when a scenario's first and last pod arrive, as far as it runs."""
    until = math.inf if scenario.until is None else scenario.until
    times = [arrival.at for arrival in scenario.arrivals if arrival.at <= until]
    times += [one.at for one in scenario.controllers if one.at <= until]
    if not times:
        return 0.0, 0.0
    times += [one.at for one in scenario.events if one.kind in ("scale", "update") and one.at <= until]
    first, last = min(times), max(times)
    return first, until if first == last and scenario.controllers and until < math.inf else last


class LoadAverages(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured over the window."""

    heating: float | None
    balance: float | None
    """None when nothing was asked of any node; so is heating."""
    requested: float
    """Cpu-seconds, in thousandths of a cpu, that were asked for..."""
    capacity: float
    """...and that there were."""


class ImbalanceMeter:
    """Watches one run."""

    def __init__(self, first: float, last: float) -> None:
        """Average from *first* to *last*."""
        self._first, self._last = first, last
        self._since = -math.inf
        self._busy = self._heating = self._spread = 0.0
        self._requested_seconds = self._capacity_seconds = 0.0
        self._all_asked = self._all_capacity = 0
        self._capacity: dict[str, int] = {}
        self._asked: dict[str, int] = {}
        self._asks: dict[str, int] = {}
        self._share: dict[str, int] = {}
        # The shares of all nodes: how many nodes have each, their sum, the sum of their squares and the largest.
        self._shares: dict[int, int] = {}
        self._sum = self._squares = self._largest = 0
        self.concerns: RecordHandlers = {
            NodeJoined: self._joined,
            NodeLeft: self._left,
            PodArrived: self._arrived,
            PodBound: self._bound,
            PodEvicted: self._ended,
            PodFailed: self._ended,
            PodFinished: self._ended,
            PodRejected: self._ended,
            PodRemoved: self._ended,
        }

    def see(self, record: TraceRecord) -> None:
        """Take note of what happened; records come in the order of their times."""
        concern = self.concerns.get(type(record))
        if concern is not None:
            concern(record)

    def averages(self) -> LoadAverages:
        """Return the figures of a run that is over."""
        self._pass(math.inf)
        return LoadAverages(
            heating=self._heating / self._busy if self._busy else None,
            balance=self._spread / self._busy if self._busy else None,
            requested=self._requested_seconds,
            capacity=self._capacity_seconds,
        )

    # -- what happens ------------------------------------------------------------------------------------------------

    def _joined(self, record: NodeJoined) -> None:
        capacity = record.allocatable.get(CPU, 0)
        if capacity > 0:
            self._pass(record.at)
            node = record.node
            self._capacity[node], self._asked[node], self._share[node] = capacity, 0, 0
            self._all_capacity += capacity
            self._shares[0] = self._shares.get(0, 0) + 1

    def _left(self, record: NodeLeft) -> None:
        node = record.node
        if node in self._capacity:
            self._pass(record.at)
            self._all_capacity -= self._capacity.pop(node)
            self._all_asked -= self._asked.pop(node)
            share = self._share.pop(node)
            self._sum -= share
            self._squares -= share * share
            self._take_out(share)

    def _arrived(self, record: PodArrived) -> None:
        self._asks[record.pod] = record.requests.get(CPU, 0)

    def _bound(self, record: PodBound) -> None:
        self._ask(record.at, record.node, self._asks[record.pod])

    def _ended(self, record: PodEnding) -> None:
        asks = self._asks.pop(record.pod, 0)
        # Without a node it was never bound.
        if record.node:
            self._ask(record.at, record.node, -asks)

    def _ask(self, at: float, node: str, more: int) -> None:
        """Count more, or less, on a node: twice for every pod, so that all of it stands here."""
        capacity = self._capacity.get(node)
        if not more or capacity is None:
            return
        if at != self._since:
            self._pass(at)
        self._all_asked += more
        self._asked[node] = asked = self._asked[node] + more
        share, shares = self._share, self._shares
        before, after = share[node], asked * WHOLE // capacity
        share[node] = after
        self._sum += after - before
        self._squares += after * after - before * before
        shares[after] = shares.get(after, 0) + 1
        self._take_out(before)
        if after > self._largest:  # noqa: PLR1730 - a call of max costs more than the comparison
            self._largest = after

    def _take_out(self, share: int) -> None:
        """Count one node less with this share."""
        if left := self._shares[share] - 1:
            self._shares[share] = left
        else:
            # Otherwise every share that ever was would stay in the table.
            del self._shares[share]

    # -- time --------------------------------------------------------------------------------------------------------

    def _pass(self, now: float) -> None:
        """Count the time until *now*, during which everything stayed as it was."""
        if now == self._since:
            return
        if self._first == self._last:
            length = 1.0 if self._since <= self._first < now else 0.0
        else:
            length = min(now, self._last) - max(self._since, self._first)
        self._since = now
        if length <= 0.0:
            return
        self._capacity_seconds += length * self._all_capacity
        self._requested_seconds += length * self._all_asked
        if not self._sum:
            return
        if self._largest not in self._shares:
            self._largest = max(self._shares)
        nodes, total = len(self._capacity), self._sum
        self._busy += length
        self._heating += length * (self._largest * nodes / total)
        # Variance over the square of the mean; never negative, because nothing was rounded on the way.
        self._spread += length * math.sqrt((nodes * self._squares - total * total) / (total * total))
