"""
Placed pods as arrays: priority, start, requests and labels of every pod on some rows.

Preemption compares thousands of nodes, and most of them have not changed since the last time. A row's arrays are
therefore kept, and made again only if another pod is on the row or one of its pods changed. Within a row the most
important pod comes first, as upstream orders victims: higher priority, then earlier start.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Final, Generic, TypeVar

import msgspec
import numpy as np

from lamina.model.pod import Pod
from lamina.model.resources import PODS, Amounts
from lamina.scheduling.runtime.disruption_budgets import Labels, labels_of
from lamina.scheduling.state.columns import LARGEST, Ints

PRIORITY, START, REQUESTS, LABELS = range(4)
"""Columns of a row's array."""
MOST_KINDS: Final = 65_536
"""Distinct requests or labels; beyond that, all rows are read again."""
UNKNOWN_START: Final = 2**62
"""Start of a pod that has not started: later than all others."""
PARTS: Final = 1_000_000
"""Starts are counted in microseconds."""

K = TypeVar("K", bound=Hashable)


def started(pod: Pod) -> float:
    """
    Return when a pod started, in seconds; infinity if that is unknown.

    The time of its binding stands for the start of a pod that still pulls its images.
    """
    return pod.started_at or pod.bound_at or math.inf


def importance(pod: Pod) -> tuple[float, float]:
    """Return upstream's sort key of victims: more important pods have smaller keys."""
    return -pod.priority, started(pod)


class Numbering(Generic[K]):
    """Numbers for distinct keys, in order of appearance."""

    def __init__(self) -> None:
        """Start without keys."""
        self.keys: list[K] = []
        self._numbers: dict[K, int] = {}

    def of(self, key: K) -> int:
        """Return the number of a key."""
        known = self._numbers.get(key)
        if known is None:
            known = self._numbers[key] = len(self.keys)
            self.keys.append(key)
        return known


class PlacedArrays(msgspec.Struct, frozen=True):
    """Pods of some rows, one entry each, row after row."""

    owner: Ints
    """Position of the row among the rows asked for."""
    place: Ints
    """Position of the pod within its row."""
    priority: Ints
    start: Ints
    requests: Ints
    """Number of its requests, for `PlacedPods.amounts`."""
    labels: Ints
    """Number of its labels, in `PlacedPods.labels`."""

    def only(self, flags: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> "PlacedArrays":
        """Return the entries where a flag is set."""
        return PlacedArrays(*[getattr(self, name)[flags] for name in self.__struct_fields__])


class PlacedPods:
    """Arrays of the pods on each row."""

    def __init__(self) -> None:
        """Start without rows."""
        self.requests: Numbering[Amounts] = Numbering()
        self.labels: Numbering[Labels] = Numbering()
        self._known: dict[int, tuple[tuple[Pod, ...], Ints, tuple[Pod, ...]]] = {}
        """By row: the pods as they were read, their array, and the pods in its order."""

    def arrays(self, rows: Sequence[int], pods_on: Callable[[int], tuple[Pod, ...]]) -> PlacedArrays:
        """Return the pods on some rows; *pods_on* lists the pods of a row."""
        if max(len(self.requests.keys), len(self.labels.keys)) > MOST_KINDS:
            # Most of them belong to pods that are gone.
            self.requests, self.labels = Numbering(), Numbering()
            self._known.clear()
        known, parts = self._known, []
        for row in rows:
            pods = pods_on(row)
            kept = known.get(row)
            # Comparing tuples is fast where the pods are the same objects, which is nearly always.
            if kept is None or kept[0] != pods:
                kept = known[row] = self._read(pods)
            parts.append(kept[1])
        sizes = [len(part) for part in parts]
        found = np.concatenate(parts) if parts else np.zeros((0, 4), dtype=np.int64)
        owner = np.repeat(np.arange(len(parts)), sizes)
        starts = np.cumsum([0, *sizes[:-1]]) if sizes else np.zeros(0, dtype=np.int64)
        place = np.arange(len(found)) - starts[owner] if len(found) else np.zeros(0, dtype=np.int64)
        return PlacedArrays(owner, place, found[:, PRIORITY], found[:, START], found[:, REQUESTS], found[:, LABELS])

    def pod(self, row: int, place: int) -> Pod:
        """Return a pod of a row by its place; the row must have been read before."""
        return self._known[row][2][place]

    def amounts(self, resource: str) -> Ints:
        """Return the amount of a resource by number of requests."""
        if resource == PODS:
            return np.ones(len(self.requests.keys), dtype=np.int64)
        return np.array([_amount(requests, resource) for requests in self.requests.keys], dtype=np.int64)

    def _read(self, pods: tuple[Pod, ...]) -> tuple[tuple[Pod, ...], Ints, tuple[Pod, ...]]:
        ordered = tuple(sorted(pods, key=importance))
        lines = [
            (one.priority, _microseconds(started(one)), self.requests.of(one.requests), self.labels.of(labels_of(one)))
            for one in ordered
        ]
        return pods, np.array(lines, dtype=np.int64).reshape(len(lines), 4), ordered


def _amount(requests: Amounts, resource: str) -> int:
    return next((min(amount, LARGEST) for name, amount in requests if name == resource), 0)


def _microseconds(at: float) -> int:
    return UNKNOWN_START if at == math.inf else int(at * PARTS)
