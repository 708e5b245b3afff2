"""
How loaded the cluster is, and how large a usual pod is: what a placement has to be judged against.

A node's load is the requested share of cpu or of memory, whichever is larger, counted as rankings count requests. The
cluster's is the mean over the nodes that take pods.
"""

import bisect
import math
from collections import deque
from typing import Final

import numpy as np

from lamina.model.pod import Pod
from lamina.model.resources import CPU, MEMORY, Amounts
from lamina.scheduling.state.columns import MEMO, NUDGE, WIDE, Bools, Floats, NodeColumns
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.view import NodeView

# Pods whose sizes say what is usual.
RECENT: Final = 500
LARGE: Final = 0.9


class ClusterLoad:
    """Loads and sizes, worked out when asked and something has changed since."""

    def __init__(self, columns: NodeColumns) -> None:
        """Look at these columns."""
        self._columns = columns
        self._recent: deque[Amounts] = deque(maxlen=RECENT)
        """What the last pods asked for, of a wide one cpu and memory only."""
        self._unsorted = 0
        """How many of them came since their sizes were sorted."""
        self._sizes: deque[float] = deque()
        """The shares of a mean node that the others take, in their order."""
        self._sorted: list[float] = []
        """The same, smallest first: a pod comes and a pod goes, and the rest stays where it is."""
        self._known_sizes: dict[Amounts, float] = {}
        self._shares: dict[Amounts, float] = {}
        self._known = -1
        self._position = -1
        self._taking: Floats = np.zeros(0)
        """1 for nodes that take pods, else 0."""
        self._mean = 0.0
        self._count = 0
        self._capacity = (0.0, 0.0)
        self._left: Floats = np.zeros(0)
        """The headroom of each node, of cpu or memory, whichever is smaller."""

    def note(self, pod: Pod) -> None:
        """Remember the size of a pod that was placed."""
        self._recent.append(_ranked(pod.scoring_requests))
        self._unsorted += 1

    def snapshot(self) -> tuple[Amounts, ...]:
        """Return what the last pods asked for; the rest follows from it and from the columns."""
        return tuple(self._recent)

    def restore(self, recent: tuple[Amounts, ...]) -> None:
        """Take over what the last pods asked for."""
        self._recent = deque(recent, maxlen=RECENT)
        self._unsorted = len(self._recent)

    def mean(self) -> float:
        """Return the mean load of the nodes that take pods."""
        self._look()
        return self._mean

    def mean_with(self, pod: Pod, loads: Floats, among: Bools, share: float | None = None) -> float:
        """
        Return the mean load with one more pod, whichever of the nodes *among* all it goes to.

        *loads* are the nodes' loads without it, *share* what it adds to one of them on average. Nodes that cannot have the
        pod do not make those that can look crowded: the mean over *among* counts if it is the higher one.
        """
        self._look()
        own = self.share(pod)
        mean = self._mean + own / max(self._count, 1)
        count = int(np.count_nonzero(among))
        if not count:
            return mean
        return max(mean, (float(loads.dot(among)) + (own if share is None else share)) / count)

    def large(self, pod: Pod) -> float:
        """Return the share of a mean node that nine of ten recent pods do not exceed; of *pod*, if it is larger."""
        self._look()
        return max(self._usual(), self.share(pod))

    def _usual(self) -> float:
        if self._unsorted >= len(self._recent):
            self._sizes = deque(map(self._size, self._recent))
            self._sorted = sorted(self._sizes)
        else:
            for asked in [self._recent[place] for place in range(-self._unsorted, 0)]:
                if len(self._sizes) == RECENT:
                    del self._sorted[bisect.bisect_left(self._sorted, self._sizes.popleft())]
                self._sizes.append(self._size(asked))
                bisect.insort(self._sorted, self._sizes[-1])
        self._unsorted = 0
        return self._sorted[math.ceil(LARGE * len(self._sorted)) - 1] if self._sorted else 0.0

    def _size(self, asked: Amounts) -> float:
        known = self._known_sizes.get(asked)
        if known is None:
            amounts = dict(asked)
            cpu, memory = (1 / most if most > 0 else 0.0 for most in self._capacity)
            known = max(amounts.get(CPU, 0) * cpu, amounts.get(MEMORY, 0) * memory)
            if len(self._known_sizes) >= MEMO:
                self._known_sizes.clear()
            self._known_sizes[asked] = known
        return known

    def of(self, nodes: NodeView, pod: Pod | None = None) -> Floats:
        """Return the load of each node; with a pod, the one it would have with that on it."""
        columns, rows = self._columns, nodes.rows
        if nodes.changed:
            asked = {} if pod is None else dict(pod.scoring_requests)
            left = np.minimum(*(nodes.headroom_with(name, asked.get(name, 0)) for name in (CPU, MEMORY)))
        elif pod is None:
            self._look()
            left = self._left[rows] + NUDGE
        else:
            asked = dict(pod.scoring_requests)
            # As `NodeView.headroom_with` has it; what is added to both is added to the smaller one.
            left = columns.unit[0, rows] * -float(asked.get(CPU, 0))
            left += columns.headroom[0, rows]
            other = columns.unit[1, rows] * -float(asked.get(MEMORY, 0))
            other += columns.headroom[1, rows]
            np.minimum(left, other, out=left)
            left += NUDGE
        left *= -0.01
        left += 1.0
        return left

    def share(self, pod: Pod) -> float:
        """Return the share of a mean node that a pod takes."""
        self._look()
        known = self._shares.get(pod.scoring_requests)
        if known is None:
            asked = dict(pod.scoring_requests)
            amounts = (asked.get(CPU, 0), asked.get(MEMORY, 0))
            known = max(
                (one / most for one, most in zip(amounts, self._capacity, strict=True) if most > 0), default=0.0
            )
            if len(self._shares) >= MEMO:
                self._shares.clear()
            if len(pod.scoring_requests) <= WIDE:
                self._shares[pod.scoring_requests] = known
        return known

    def _look(self) -> None:
        columns, size = self._columns, self._columns.size
        if columns.capacity != self._known:
            self._known = columns.capacity
            taking = columns.alive[:size] & ~columns.unschedulable[:size] & (columns.unit[:, :size].min(axis=0) > 0)
            self._taking = taking.astype(np.float64)
            self._count = int(np.count_nonzero(taking))
            cpu, memory = (np.dot(columns.allocatable[:2, :size], self._taking) / max(self._count, 1)).tolist()
            self._capacity = (cpu, memory)
            self._unsorted = RECENT
            self._known_sizes.clear()
            self._shares.clear()
            self._position = -1
        position = columns.logs[Facet.RESOURCES].position
        if position != self._position:
            self._position = position
            self._left = np.minimum(columns.headroom[0, :size], columns.headroom[1, :size])
            left = float(self._left.dot(self._taking))
            self._mean = 1.0 - left / max(self._count, 1) / 100 if self._count else 0.0


def _ranked(asked: Amounts) -> Amounts:
    return asked if len(asked) <= WIDE else tuple(one for one in asked if one[0] in (CPU, MEMORY))
