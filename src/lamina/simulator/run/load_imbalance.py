"""
Peak load and imbalance: how evenly the requested cpu is distributed over the nodes, averaged over time.

    peak load    time average of: largest share / mean share                 1 when all nodes have the same load
    imbalance    time average of: standard deviation of shares / mean share  0 when all nodes have the same load
    requested    requested cpu-seconds / allocatable cpu-seconds

A node's share is the cpu requested by its pods divided by its allocatable cpu. A pod counts from its binding until its
end. All nodes of the cluster count, including empty, cordoned and failed ones. A node without cpu has no share.

The window goes from the first arrival of the scenario to the last arrival before its end. It depends only on the
scenario, so every profile is measured over the same time. The time after it is left out, because a draining cluster
shows how long pods run rather than where they were placed. If all pods arrive at once, the window is that time, after
all its events. The creation and the changes of a controller are arrivals; if there is nothing else, the window ends
with the scenario. Peak load and imbalance exclude time without any requests.

The run passes trace records to the meter. Sums are integers, so rounding does not depend on the number of changes. The
cost of a change does not depend on the number of nodes.
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
"""Integer value of a share of 1. Sums of integers do not drift as sums of floats do."""


PodEnding = PodEvicted | PodFailed | PodFinished | PodRejected | PodRemoved


def arrival_window(scenario: Scenario) -> tuple[float, float]:
    """Return the times of the scenario's first and last arrival before its end."""
    until = math.inf if scenario.until is None else scenario.until
    times = [arrival.at for arrival in scenario.arrivals if arrival.at <= until]
    times += [one.at for one in scenario.controllers if one.at <= until]
    if not times:
        return 0.0, 0.0
    times += [one.at for one in scenario.events if one.kind in ("scale", "update") and one.at <= until]
    first, last = min(times), max(times)
    return first, until if first == last and scenario.controllers and until < math.inf else last


class LoadAverages(msgspec.Struct, frozen=True, kw_only=True):
    """Averages over the window."""

    peak_load: float | None
    imbalance: float | None
    """Both are None if no pod requested cpu."""
    requested: float
    """Requested cpu, in thousandths of a cpu times seconds."""
    capacity: float
    """Allocatable cpu, in the same unit."""


class ImbalanceMeter:
    """Computes the averages of one run from its trace records."""

    def __init__(self, first: float, last: float) -> None:
        """Average from *first* to *last*."""
        self._first, self._last = first, last
        self._since = -math.inf
        self._busy = self._peak_load = self._spread = 0.0
        self._requested_seconds = self._capacity_seconds = 0.0
        self._all_asked = self._all_capacity = 0
        self._capacity: dict[str, int] = {}
        self._asked: dict[str, int] = {}
        self._asks: dict[str, int] = {}
        self._share: dict[str, int] = {}
        # Shares of all nodes: number of nodes per share, sum, sum of squares and largest.
        self._shares: dict[int, int] = {}
        self._sum = self._squares = self._largest = 0
        self.handlers: RecordHandlers = {
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

    def add(self, record: TraceRecord) -> None:
        """Process a record; records must come in order of time."""
        handler = self.handlers.get(type(record))
        if handler is not None:
            handler(record)

    def averages(self) -> LoadAverages:
        """Return the averages after the end of the run."""
        self._pass(math.inf)
        return LoadAverages(
            peak_load=self._peak_load / self._busy if self._busy else None,
            imbalance=self._spread / self._busy if self._busy else None,
            requested=self._requested_seconds,
            capacity=self._capacity_seconds,
        )

    # -- records -----------------------------------------------------------------------------------------------------

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
        # A pod without a node was never bound.
        if record.node:
            self._ask(record.at, record.node, -asks)

    def _ask(self, at: float, node: str, more: int) -> None:
        """Change the requests on a node by *more*. It runs twice per pod, so it is inlined for speed."""
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
        """Decrement the number of nodes with this share."""
        if left := self._shares[share] - 1:
            self._shares[share] = left
        else:
            # Keeps the dictionary bounded by the number of nodes.
            del self._shares[share]

    # -- time --------------------------------------------------------------------------------------------------------

    def _pass(self, now: float) -> None:
        """Add the time until *now*, during which no share changed, to the averages."""
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
        self._peak_load += length * (self._largest * nodes / total)
        # Variance / mean²; never negative, because integer sums are exact.
        self._spread += length * math.sqrt((nodes * self._squares - total * total) / (total * total))
