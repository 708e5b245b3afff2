"""
How evenly the requested cpu lies on the nodes, averaged over time.

    heating    time average of: largest share / mean share                 1 when no node is hotter than the others
    balance    time average of: standard deviation of shares / mean share  0 when all nodes are alike

A node's share is the cpu that its pods ask for, divided by what the node can give; a pod counts from its binding until
it ends. All nodes that are in the cluster count, empty and cordoned ones too; a node without cpu has no share.

The window goes from the first arrival of the scenario to the last one before its end. It belongs to the scenario and
not to the run, so every profile is judged over the same time: how a cluster looks while it drains says more about how
long the pods run than about where they were placed. Where all pods come at once the window is that instant, as it looks
when everything that happens in it has happened. Time during which nothing was asked of any node does not count.

Told records by the run. Keeps whole numbers, so the same run gives the same figures however many changes it had, and
a change costs the same on a hundred nodes and on ten thousand.
"""

import math
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from lamina.model.resources import CPU
from lamina.simulator.workloads import Scenario
from lamina.trace.records import (
    NodeJoined,
    NodeLeft,
    PodArrived,
    PodBound,
    PodFinished,
    PodRejected,
    PodRemoved,
    Record,
)

WHOLE: Final = 2**48
"""What a share of 1 is counted as. Sums of whole numbers do not drift as sums of fractions would."""


def window(scenario: Scenario) -> tuple[float, float]:
    """Say when a scenario's first and last pod arrive, as far as it runs."""
    times = [arrival.at for arrival in scenario.arrivals if scenario.until is None or arrival.at <= scenario.until]
    return (min(times), max(times)) if times else (0.0, 0.0)


class BalanceMeter:
    """Watches one run."""

    def __init__(self, first: float, last: float) -> None:
        """Average from *first* to *last*."""
        self._first, self._last = first, last
        self._since = -math.inf
        self._busy = self._heating = self._spread = 0.0
        self._capacity: dict[str, int] = {}
        self._asked: dict[str, int] = {}
        self._asks: dict[str, int] = {}
        self._placed: dict[str, tuple[str, int]] = {}
        # The shares of all nodes: how many nodes have each, their sum, the sum of their squares and the largest.
        self._shares: Counter[int] = Counter()
        self._sum = self._squares = self._largest = 0
        # By kind, because most records are of no concern here, and a look-up is the quickest way to know.
        self._concerns: dict[type[Record], Callable[[Any], None]] = {
            NodeJoined: self._joined,
            NodeLeft: self._left,
            PodArrived: self._arrived,
            PodBound: self._bound,
            PodFinished: self._ended,
            PodRejected: self._ended,
            PodRemoved: self._ended,
        }

    def see(self, record: Record) -> None:
        """Take note of what happened; records come in the order of their times."""
        concern = self._concerns.get(type(record))
        if concern is not None:
            concern(record)

    def averages(self) -> tuple[float | None, float | None]:
        """Return heating and balance of a run that is over; None when nothing was asked of any node."""
        self._pass(math.inf)
        return (self._heating / self._busy, self._spread / self._busy) if self._busy else (None, None)

    # -- what happens ------------------------------------------------------------------------------------------------

    def _joined(self, record: NodeJoined) -> None:
        capacity = record.allocatable.get(CPU, 0)
        if capacity > 0:
            self._pass(record.at)
            self._capacity[record.node], self._asked[record.node] = capacity, 0
            self._add(0, 1)

    def _left(self, record: NodeLeft) -> None:
        if record.node in self._capacity:
            self._pass(record.at)
            self._add(self._share(record.node), -1)
            del self._capacity[record.node], self._asked[record.node]

    def _arrived(self, record: PodArrived) -> None:
        self._asks[record.pod] = record.requests.get(CPU, 0)

    def _bound(self, record: PodBound) -> None:
        asks = self._asks.pop(record.pod)
        self._placed[record.pod] = record.node, asks
        self._ask(record.at, record.node, asks)

    def _ended(self, record: PodFinished | PodRejected | PodRemoved) -> None:
        self._asks.pop(record.pod, None)
        node, asks = self._placed.pop(record.pod, ("", 0))
        self._ask(record.at, node, -asks)

    def _ask(self, at: float, node: str, more: int) -> None:
        if more and node in self._capacity:
            self._pass(at)
            self._add(self._share(node), -1)
            self._asked[node] += more
            self._add(self._share(node), 1)

    # -- shares ------------------------------------------------------------------------------------------------------

    def _share(self, node: str) -> int:
        return self._asked[node] * WHOLE // self._capacity[node]

    def _add(self, share: int, nodes: int) -> None:
        """Count one node with this share in (1) or out (-1)."""
        self._sum += nodes * share
        self._squares += nodes * share * share
        self._shares[share] += nodes
        if nodes > 0:
            self._largest = max(self._largest, share)
        elif not self._shares[share]:
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
        if length <= 0.0 or not self._sum:
            return
        if self._largest not in self._shares:
            self._largest = max(self._shares)
        nodes, total = len(self._capacity), self._sum
        self._busy += length
        self._heating += length * (self._largest * nodes / total)
        # Variance over the square of the mean; never negative, because nothing was rounded on the way.
        self._spread += length * math.sqrt((nodes * self._squares - total * total) / (total * total))
