"""
How loaded the cluster is, and how large a usual pod is: what a placement has to be judged against.

A node's load is the requested share of cpu or of memory, whichever is larger, counted as rankings count requests. The
cluster's is the mean over the nodes that take pods.
"""

import math
from typing import Final

import numpy as np

from lamina.model.pod import Pod
from lamina.model.resources import CPU, MEMORY
from lamina.scheduling.framework.columns import Bools, Floats, NodeColumns
from lamina.scheduling.framework.rowlog import Facet
from lamina.scheduling.framework.view import NodeView

# Pods whose sizes say what is usual.
RECENT: Final = 500
LARGE: Final = 0.9


class ClusterLoad:
    """Loads and sizes, worked out when asked and something has changed since."""

    def __init__(self, columns: NodeColumns) -> None:
        """Look at these columns."""
        self._columns = columns
        self._recent: Floats = np.zeros((2, RECENT))
        """Cpu and memory of the last pods, the oldest overwritten."""
        self._noted = 0
        self._known = -1
        self._position = -1
        self._taking: Floats = np.zeros(0)
        """1 for nodes that take pods, else 0."""
        self._mean = 0.0
        self._count = 0
        self._capacity = (0.0, 0.0)
        self._large_version = (-1, -1)
        self._large = 0.0

    def note(self, pod: Pod) -> None:
        """Remember the size of a pod that was placed."""
        asked = dict(pod.scoring_requests)
        self._recent[:, self._noted % RECENT] = (asked.get(CPU, 0), asked.get(MEMORY, 0))
        self._noted += 1

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
        return max(mean, (float(np.dot(loads, among)) + (own if share is None else share)) / count)

    def large(self, pod: Pod) -> float:
        """Return the share of a mean node that nine of ten recent pods do not exceed; of *pod*, if it is larger."""
        self._look()
        return max(self._usual(), self.share(pod))

    def _usual(self) -> float:
        version = (self._known, self._noted)
        if version != self._large_version:
            self._large_version = version
            count = min(self._noted, RECENT)
            rank = math.ceil(LARGE * count) - 1
            cpu, memory = (1 / most if most > 0 else 0.0 for most in self._capacity)
            shares = np.maximum(self._recent[0, :count] * cpu, self._recent[1, :count] * memory)
            self._large = float(np.partition(shares, rank)[rank]) if count else 0.0
        return self._large

    def of(self, nodes: NodeView, pod: Pod | None = None) -> Floats:
        """Return the load of each node; with a pod, the one it would have with that on it."""
        asked = {} if pod is None else dict(pod.scoring_requests)
        left = nodes.headroom_with(CPU, asked.get(CPU, 0))
        np.minimum(left, nodes.headroom_with(MEMORY, asked.get(MEMORY, 0)), out=left)
        left *= -0.01
        left += 1.0
        return left

    def share(self, pod: Pod) -> float:
        """Return the share of a mean node that a pod takes."""
        self._look()
        asked = dict(pod.scoring_requests)
        amounts = (asked.get(CPU, 0), asked.get(MEMORY, 0))
        return max((one / most for one, most in zip(amounts, self._capacity, strict=True) if most > 0), default=0.0)

    def _look(self) -> None:
        columns, size = self._columns, self._columns.size
        if columns.capacity != self._known:
            self._known = columns.capacity
            taking = columns.alive[:size] & ~columns.unschedulable[:size] & (columns.unit[:, :size].min(axis=0) > 0)
            self._taking = taking.astype(np.float64)
            self._count = int(np.count_nonzero(taking))
            cpu, memory = (np.dot(columns.allocatable[:2, :size], self._taking) / max(self._count, 1)).tolist()
            self._capacity = (cpu, memory)
            self._position = -1
        position = columns.logs[Facet.RESOURCES].position
        if position != self._position:
            self._position = position
            left = np.dot(np.minimum(columns.headroom[0, :size], columns.headroom[1, :size]), self._taking)
            self._mean = 1.0 - float(left) / max(self._count, 1) / 100 if self._count else 0.0
