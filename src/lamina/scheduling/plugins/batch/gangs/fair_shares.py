"""
Fair shares: what each queue deserves, and the order in which jobs are placed.

    deserved    weighted max-min: the resources are divided by weight; what a queue does not request, or must not have,
                is divided among the others, until nothing is left
    share       of a queue: the largest fraction of what it deserves that it has, over the resources
                of a job: the largest fraction of the cluster that it has (dominant resource fairness)
"""

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np

from lamina.model.resources import Amounts
from lamina.scheduling.state.columns import Floats


class QueueDemand(msgspec.Struct, frozen=True, eq=False):
    """A queue's weight, what it has and requests together, and its limits; an amount per resource."""

    weight: int
    request: Floats
    deserved: Floats | None = None
    """Its share as written; NaN where it follows from the weights."""
    capability: Floats | None = None
    """The most it may have; infinite where there is no limit."""


def deserved_shares(total: Floats, queues: Sequence[QueueDemand]) -> list[Floats]:
    """Divide *total* among the queues."""
    if not queues:
        return []
    weights = np.array([queue.weight for queue in queues], dtype=np.float64)
    limits = np.stack([np.minimum(one.request, np.inf if one.capability is None else one.capability) for one in queues])
    shares = np.zeros_like(limits)
    for line in range(len(total)):
        written = np.array([np.nan if one.deserved is None else one.deserved[line] for one in queues])
        shares[:, line] = _divided(float(total[line]), weights, limits[:, line], written)
    return list(shares)


def _divided(total: float, weights: Floats, limits: Floats, written: Floats) -> Floats:
    """Divide one resource: first what queues deserve in writing, then the rest by weight up to their limits."""
    shares = np.where(np.isnan(written), 0.0, np.minimum(written, limits))
    if shares.sum() > total:
        shares *= total / shares.sum()
    remaining = total - shares.sum()
    unmet = shares < limits
    while remaining > 1e-9 * max(total, 1.0) and unmet.any():
        part = np.where(unmet, weights, 0.0)
        given = np.minimum(remaining * part / part.sum(), limits - shares)
        shares += given
        remaining -= given.sum()
        still = unmet & (shares < limits * (1 - 1e-12))
        if np.array_equal(still, unmet):
            # No queue reached its limit, so everything was given away.
            break
        unmet = still
    return shares


def share_of(has: Floats, of: Floats) -> float:
    """Return the largest fraction over the resources; 0 of nothing is 0, and something of nothing is infinite."""
    fractions = np.divide(has, of, out=np.where(has > 0, np.inf, 0.0), where=of > 0)
    return float(fractions.max(initial=0.0))


class Vectors:
    """Converts amounts to vectors over the resources of the cluster."""

    def __init__(self, total: Mapping[str, int]) -> None:
        """Use the resources in *total*, which is what the nodes offer together."""
        self._line = {name: line for line, name in enumerate(total)}
        self.total: Floats = np.array(list(total.values()), dtype=np.float64)

    def of(self, amounts: Amounts, missing: float = 0.0) -> Floats:
        """Return the vector of some amounts; other resources than those of the cluster are left out."""
        vector = np.full(len(self.total), missing)
        for name, amount in amounts:
            if name in self._line:
                vector[self._line[name]] = amount
        return vector


class FairJob(msgspec.Struct, eq=False):
    """Units of one job that wait, in queue order, and what the job has."""

    name: str
    queue: str
    has: Floats
    units: deque[int]
    """Numbers of the units."""


class FairOrder:
    """Hands out units: in the poorest queue, those of the job with the smallest dominant share first."""

    def __init__(
        self, jobs: Iterable[FairJob], total: Floats, queue_share: Callable[[str], float], has: dict[str, Floats]
    ) -> None:
        """Order *jobs*; *queue_share* returns a queue's share, which follows *has* as units are placed."""
        self._total = total
        self._queue_share = queue_share
        self._has = has
        self._heaps: dict[str, list[tuple[float, int, int, FairJob]]] = {}
        self._serial = 0
        self._current: FairJob | None = None
        for job in jobs:
            self._push(job)

    def __iter__(self) -> Iterator[int]:
        """Iterate over the units; call `placed` before the next one if a unit was placed."""
        while self._heaps:
            queue = min(self._heaps, key=lambda name: (self._queue_share(name), self._heaps[name][0][:3]))
            heap = self._heaps[queue]
            job = heapq.heappop(heap)[3]
            if not heap:
                del self._heaps[queue]
            self._current = job
            yield job.units.popleft()
            if job.units:
                self._push(job)

    def placed(self, amount: Floats) -> None:
        """Note that the last unit was placed and takes *amount*."""
        assert self._current is not None, "a unit was handed out"
        self._current.has += amount
        self._has[self._current.queue] = self._has[self._current.queue] + amount

    def _push(self, job: FairJob) -> None:
        self._serial += 1
        entry = (share_of(job.has, self._total), job.units[0], self._serial, job)
        heapq.heappush(self._heaps.setdefault(job.queue, []), entry)
