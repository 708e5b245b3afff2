"""
The formulas: QoS, QoS metric (time to violation) and preemption overhead, from four times.

docs/qos.md explains them. `lamina.qos.order_table` computes the same metric for many controllers at once.
"""

import math
from typing import Final

import msgspec

from lamina.qos.promise import Promise, QosApproach

ASSUMED_OVERHEAD: Final = 2.4
"""Seconds that a binding is assumed to take before one was measured; the original plugin's number."""
MICROSECOND: Final = 1e-6
"""Times that differ by less count as equal: sums of many times are not exact."""


class QosTimes(msgspec.Struct, frozen=True):
    """Four sums of time in seconds."""

    effective: float = 0.0
    discarded: float = 0.0
    waiting: float = 0.0
    binding: float = 0.0

    @property
    def total(self) -> float:
        """The whole lifetime."""
        return self.effective + self.discarded + self.waiting + self.binding

    @property
    def amounts(self) -> list[float]:
        """The four sums, in the order of the kinds of time."""
        return [self.effective, self.discarded, self.waiting, self.binding]

    @property
    def qos(self) -> float:
        """Availability, from 0 to 1; 0 before any time has passed."""
        total = self.total
        return min(self.effective / total, 1.0) if total > 0 else 0.0

    def slack(self, slo: float) -> float:
        """Return how long the pods may still not run until the QoS is the SLO; negative if it is below."""
        return over(self.effective, slo) - self.total


class ReplicaCounts(msgspec.Struct, frozen=True):
    """Replicas of a controller, without the pods that are terminating."""

    running: int
    pending: int
    needed: int
    """Replicas that should run."""


class Standing(msgspec.Struct, frozen=True):
    """How a controller, or one of its pods, keeps its promise at one moment."""

    times: QosTimes
    promise: Promise
    metric: float
    """Time to violation in seconds; negative: the promise is broken."""
    overhead: float
    """Expected seconds of one more binding."""
    preemption_overhead: float
    """Share of the time since placement that preemptions have cost, from 0 to 1."""
    counts: ReplicaCounts

    @property
    def qos(self) -> float:
        """Availability, from 0 to 1."""
        return self.times.qos


def over(amount: float, slo: float) -> float:
    """Return ``amount / slo``; an SLO of 0 gives 0 or infinity."""
    if slo > 0:
        return amount / slo
    return math.inf if amount > MICROSECOND else 0.0


def overhead_estimate(binding: float, incarnations: int) -> float:
    """Return the mean seconds of a binding; the assumed ones if nothing was measured."""
    return binding / incarnations if binding > MICROSECOND and incarnations else ASSUMED_OVERHEAD


def preemption_overhead(approach: QosApproach, times: QosTimes) -> float:
    """Return the share of the time since placement that preemptions have cost."""
    placed = times.binding + times.effective + times.discarded
    lost = times.binding + (times.discarded if approach is QosApproach.AGGREGATE else 0.0)
    return min(max(lost / placed, 0.0), 1.0) if placed > MICROSECOND else 0.0


def qos_metric(promise: Promise, times: QosTimes, overhead: float, counts: ReplicaCounts, *, running: bool) -> float:
    """
    Return the QoS metric in seconds.

    *running* says whether the pod that is evaluated runs: then the metric answers what happens without that pod.
    """
    slo = promise.slo
    if promise.approach is QosApproach.INDEPENDENT:
        return over(times.effective, slo) - (times.total + overhead if slo > 0 else 0.0)
    gap = times.effective - slo * times.total
    if gap < -MICROSECOND or (times.total <= MICROSECOND and slo > 0):
        return over(times.effective, slo) - times.total - overhead
    if promise.approach is QosApproach.CONCURRENT:
        return (over(times.effective, slo) - (times.total if slo > 0 else 0.0)) / counts.needed
    if gap <= MICROSECOND:
        return 0.0
    others = max(counts.running - 1, 0) if running else counts.running
    loss = (counts.running + counts.pending) * slo - others
    # With the other replicas alone, the QoS never falls to the SLO.
    return gap / loss - overhead if loss > 0 else math.inf
