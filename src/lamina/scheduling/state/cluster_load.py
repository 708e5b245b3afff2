"""
Mean load of the cluster and usual size of a pod, the reference for judging a placement.

A node's load is the requested share of cpu or memory, whichever is larger. Requests are counted as for scoring:
containers without requests count with a default. The cluster's load is the mean over nodes that accept pods.
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

# Number of recently placed pods that define the usual size.
RECENT: Final = 500
LARGE: Final = 0.9


class ClusterLoad:
    """Loads and pod sizes; recomputed on access after a change."""

    def __init__(self, columns: NodeColumns) -> None:
        """Read these columns."""
        self._columns = columns
        self._recent: deque[Amounts] = deque(maxlen=RECENT)
        """Requests of recent pods; only cpu and memory for a pod with many resources."""
        self._unsorted = 0
        """How many of them arrived since the sizes were last sorted."""
        self._sizes: deque[float] = deque()
        """Sizes of the sorted ones as shares of a mean node, in order of arrival."""
        self._sorted: list[float] = []
        """The same sizes in ascending order, updated by insertion and deletion."""
        self._known_sizes: dict[Amounts, float] = {}
        self._shares: dict[Amounts, float] = {}
        self._known = -1
        self._position = -1
        self._taking: Floats = np.zeros(0)
        """1 for nodes that accept pods, else 0."""
        self._mean = 0.0
        self._count = 0
        self._capacity = (0.0, 0.0)
        self._left: Floats = np.zeros(0)
        """Headroom of each node in percent: the smaller of cpu and memory."""

    def note(self, pod: Pod) -> None:
        """Record the size of a placed pod."""
        self._recent.append(_ranked(pod.scoring_requests))
        self._unsorted += 1

    def snapshot(self) -> tuple[Amounts, ...]:
        """Return the requests of recent pods; everything else is derived from them and from the columns."""
        return tuple(self._recent)

    def restore(self, recent: tuple[Amounts, ...]) -> None:
        """Restore the requests of recent pods."""
        self._recent = deque(recent, maxlen=RECENT)
        self._unsorted = len(self._recent)

    def mean(self) -> float:
        """Return the mean load of the nodes that accept pods."""
        self._refresh()
        return self._mean

    def mean_with(self, pod: Pod, loads: Floats, among: Bools, share: float | None = None) -> float:
        """
        Return the mean load with one more pod on any of the nodes *among*.

        *loads* are the nodes' loads without the pod, and *share* is the load it adds to a node on average. The result
        is the larger of the cluster's mean and the mean over *among*. Empty nodes that cannot take the pod thus do not
        make the others look crowded.
        """
        self._refresh()
        own = self.share(pod)
        mean = self._mean + own / max(self._count, 1)
        count = int(np.count_nonzero(among))
        if not count:
            return mean
        return max(mean, (float(loads.dot(among)) + (own if share is None else share)) / count)

    def large(self, pod: Pod) -> float:
        """Return the 90th percentile of recent pod sizes as a share of a mean node, or the size of *pod* if larger."""
        self._refresh()
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
        """Return the load of each node; with *pod*, the load including that pod."""
        columns, rows = self._columns, nodes.rows
        if nodes.changed:
            asked = {} if pod is None else dict(pod.scoring_requests)
            left = np.minimum(*(nodes.headroom_with(name, asked.get(name, 0)) for name in (CPU, MEMORY)))
        elif pod is None:
            self._refresh()
            left = self._left[rows] + NUDGE
        else:
            asked = dict(pod.scoring_requests)
            # Same formula as `NodeView.headroom_with`; the constant is added once, to the smaller of both.
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
        """Return a pod's size as a share of a mean node."""
        self._refresh()
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

    def _refresh(self) -> None:
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
