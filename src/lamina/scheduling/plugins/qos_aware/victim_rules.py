"""
Which pods may be preempted for a pod, in which order they are spared, and what their eviction costs.

These are the original plugin's rules: a pod goes if the waiting pod precedes it, and if its controller has slack, is less
important, or has not lost too much to preemptions. docs/qos.md has them as a table.
"""

import math

import msgspec
import numpy as np

from lamina.model.pod import Pod, PodUid
from lamina.qos.engine import NO_METRIC, QosEngine
from lamina.qos.order_table import Numbers, RunningPods
from lamina.qos.promise import QosApproach
from lamina.scheduling.runtime.dry_run import Candidate
from lamina.scheduling.runtime.freed_room import FreedRoom
from lamina.scheduling.state.columns import Bools, Ints
from lamina.scheduling.state.placed_pods import PlacedArrays, PlacedPods


class Preemptor(msgspec.Struct, frozen=True):
    """The waiting pod."""

    pod: Pod
    metric: float
    importance: float
    """Lower than that of its peers if it is hopeless."""
    hopeless: bool
    siblings: frozenset[PodUid]
    """Pods of its own controller, which it does not preempt."""


def preemptor(engine: QosEngine, pod: Pod, now: float) -> Preemptor:
    """Return what the rules read of a waiting pod."""
    standing = engine.standing(pod.uid, now)
    if standing is None:
        return Preemptor(pod, NO_METRIC, 0.0, hopeless=False, siblings=frozenset())
    siblings = engine.siblings(pod.uid) if standing.promise.approach is not QosApproach.INDEPENDENT else ()
    rank = engine.rank(standing)
    hopeless = rank < standing.promise.importance
    return Preemptor(pod, standing.metric, rank, hopeless=hopeless, siblings=frozenset(siblings))


class PlacedVictims:
    """Pods on nodes with their standings, in the order in which they are spared; those of a row are adjacent."""

    def __init__(self, engine: QosEngine, placed: PlacedPods, entries: PlacedArrays, now: float) -> None:
        """Read the standings of all *entries*."""
        margin = engine.settings.safety_margin
        uids = [placed.pod(slot).uid for slot in entries.slot.tolist()]
        pods = engine.running_pods(uids, now)
        danger = pods.metrics < margin
        rank = np.where(danger, -pods.importances, 0.0)
        order = np.lexsort((pods.metrics, rank, ~danger, ~pods.contributing, entries.row))
        self.entries = PlacedArrays(*[getattr(entries, name)[order] for name in entries.__struct_fields__])
        self.uids = [uids[place] for place in order.tolist()]
        self.pods = RunningPods(*[getattr(pods, name)[order] for name in pods.__struct_fields__])
        self.danger = danger[order]
        self.margin = margin
        self.now = engine.now
        """Time of the standings, in seconds since the engine's origin."""

    def preceded_by(self, waiting: Preemptor) -> Bools:
        """Return which pods a waiting pod clearly precedes."""
        pods = self.pods
        both = self.danger & (waiting.metric < self.margin) & (pods.importances != waiting.importance)
        found: Bools = np.where(both, waiting.importance > pods.importances, waiting.metric < pods.metrics)
        return found

    def allowed(self, waiting: Preemptor, minimum_running_time: float) -> Bools:
        """Return which pods may be preempted for a waiting pod."""
        pods = self.pods
        ran = self.now - pods.ran_from >= minimum_running_time
        may = ~pods.contributing
        may |= ran & ~self.danger
        may |= waiting.importance > pods.importances
        may |= ran & (pods.overheads <= pods.limits)
        may &= ~pods.contributing | self.preceded_by(waiting)
        may &= pods.rows >= 0
        if waiting.siblings:
            may &= ~np.fromiter((uid in waiting.siblings for uid in self.uids), dtype=np.bool_, count=len(self.uids))
        return may

    def worth_it(self, waiting: Preemptor, minimum_running_time: float, cycle: float) -> Bools:
        """
        Return which pods are worth being preempted for a waiting pod (mode *lamina*).

        A victim must be able to wait for its share of a cycle before its promise is as urgent as that of the waiting pod:
        otherwise it would take its room back at once, and a binding would be lost for nothing. Only an endangered pod
        takes room from less important ones whatever that costs them.
        """
        pods = self.pods
        wait = (1.0 - pods.slos) * cycle
        ran = self.now - pods.ran_from >= minimum_running_time
        endangered = waiting.metric < self.margin
        more = waiting.importance > pods.importances
        # A more important victim comes back as soon as it is in danger, an equal one when it is as urgent.
        until = np.where(pods.importances > waiting.importance, self.margin, waiting.metric)
        spare = ran & (pods.metrics - until >= wait) & (pods.metrics > waiting.metric)
        may: Bools = (spare & endangered) | (more & endangered) | ~pods.contributing
        may &= ~pods.contributing | self.preceded_by(waiting)
        may &= pods.rows >= 0
        if waiting.siblings:
            may &= ~np.fromiter((uid in waiting.siblings for uid in self.uids), dtype=np.bool_, count=len(self.uids))
        return may

    def soonest(self, waiting: Preemptor, minimum_running_time: float, cycle: float) -> float:
        """
        Return in how many seconds the first pod will be worth being preempted, if no fact arrives; infinity if never.

        It extends the metrics as straight lines, of which they consist. An attempt at that time decides.
        """
        pods = self.pods
        endangered = max(waiting.metric - self.margin, 0.0)
        until_ran = minimum_running_time - (self.now - pods.ran_from)
        higher = pods.importances > waiting.importance
        limit = np.where(higher, self.margin, waiting.metric)
        # The limit of an equal pod falls by one second in a second, because the other pod waits.
        closing = pods.slopes + np.where(higher, 0.0, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            short = (1.0 - pods.slos) * cycle - (pods.metrics - limit)
            until_spare = np.where(short <= 0.0, 0.0, np.where(closing > 0.0, short / closing, np.inf))
        moments = np.maximum(np.maximum(until_ran, until_spare), endangered)
        moments = np.where(waiting.importance > pods.importances, endangered, moments)
        later = moments[(pods.rows >= 0) & (moments > 0.0)]
        return float(np.min(later, initial=math.inf))

    @property
    def reserves(self) -> Numbers:
        """What each pod loses: its metric beyond the safety margin; 0 for those that do not contribute."""
        found: Numbers = np.where(self.pods.contributing, self.pods.metrics - self.margin, 0.0)
        return found

    def only(self, flags: Bools) -> "PlacedVictims":
        """Return the pods where a flag is set."""
        twin = object.__new__(PlacedVictims)
        places = np.flatnonzero(flags)
        twin.entries = self.entries.only(flags)
        twin.uids = [self.uids[place] for place in places.tolist()]
        twin.pods = RunningPods(*[getattr(self.pods, name)[places] for name in self.pods.__struct_fields__])
        twin.danger, twin.margin, twin.now = self.danger[places], self.margin, self.now
        return twin


class ReserveCosts:
    """
    Costs by the original's rule: the reserves of endangered victims by importance, the highest first, then of all.

    Reserves are to be large: a small negative sum is better than a large one, and slack is best. With *protect*, violated
    disruption budgets are compared before.
    """

    def __init__(self, victims: PlacedVictims, *, protect: bool) -> None:
        """Compare by the reserves of *victims*, which are all pods of the search."""
        self._victims = victims
        self._reserves = victims.reserves
        self._classes: list[float] = sorted({*victims.pods.importances[victims.danger].tolist()}, reverse=True)
        self._protect = protect
        self._places = {uid: place for place, uid in enumerate(victims.uids)}
        self._table: Numbers = np.zeros((0, 0))

    def of_rows(self, freed: FreedRoom, victims: Bools, violating: Bools) -> "ReserveCosts":
        """Compute the costs of evicting the flagged pods on all rows."""
        rows, height = self._victims.entries.row[victims], len(freed.counts)
        danger, reserves = self._victims.danger[victims], self._reserves[victims]
        importances = self._victims.pods.importances[victims]

        def summed(values: Numbers) -> Numbers:
            sums: Numbers = np.bincount(rows, weights=values, minlength=height).astype(np.float64)
            return sums

        lines = [summed(violating[victims].astype(np.float64)) * self._protect]
        lines += [-summed(np.where(danger & (importances == one), reserves, 0.0)) for one in self._classes]
        lines += [-summed(reserves), summed(np.ones(len(rows)))]
        self._table = np.array(lines)
        return self

    def order(self, rows: Ints) -> Ints:
        """Return *rows* with the cheapest first; equal ones stay in order."""
        found: Ints = rows[np.lexsort(self._table[::-1, rows])]
        return found

    def of(self, row: int) -> tuple[float, ...]:
        """Return what is compared for a row."""
        return tuple(self._table[:, row].tolist())

    def price(self, candidate: Candidate) -> tuple[float, ...]:
        """Return the same for a candidate."""
        places = [self._places[pod.uid] for pod in candidate.victims]
        danger, reserves = self._victims.danger[places], self._reserves[places]
        importances = self._victims.pods.importances[places]
        classes = [-float(reserves[danger & (importances == one)].sum()) for one in self._classes]
        return (
            float(candidate.violations) * self._protect,
            *classes,
            -float(reserves.sum()),
            float(len(places)),
        )

    def spared(self, pod: Pod) -> int:
        """Return the sort key of a pod: smaller ones are spared first."""
        return self._places[pod.uid]
