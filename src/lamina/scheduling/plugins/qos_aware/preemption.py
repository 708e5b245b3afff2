"""
Preemption by promises: finds a node and the pods that leave it for a waiting pod.

    eligible? ──> pods that may go (victim_rules) ──> dry run on all nodes ──> the node whose victims lose least
"""

from typing import Final

import numpy as np

from lamina.model.decision import pending_message
from lamina.model.pod import Pod, PodUid
from lamina.qos.engine import QosEngine
from lamina.scheduling.contract.points import PostFilterResult
from lamina.scheduling.contract.status import Status, unschedulable
from lamina.scheduling.plugins.qos_aware.victim_rules import PlacedVictims, Preemptor, ReserveCosts, preemptor
from lamina.scheduling.runtime.candidate_search import CandidateSearch, SearchRules
from lamina.scheduling.runtime.disruption_budgets import DisruptionBudgets
from lamina.scheduling.runtime.dry_run import DryRun
from lamina.scheduling.state.columns import Bools
from lamina.scheduling.state.placed_pods import PlacedPods

PREFIX: Final = "preemption: "
NEVER: Final = "not eligible due to preemptionPolicy=Never."
SACRIFICED: Final = (
    "its controller is {:.0f} s below its promise and the promises together exceed the capacity, so it is served after "
    "the others of its importance."
)
FLUSH: Final = 10.0
"""In the original mode, a refused pod is tried again after this time, as in the newest version of the original."""
LONGEST: Final = 120.0
"""A refused pod is tried again after this time at the latest: metrics can bend before."""
TERMINATING: Final = "not eligible due to a terminating pod on the nominated node."


class QosPreemption:
    """Makes room by the original plugin's rules."""

    def __init__(
        self, placed: PlacedPods, budgets: DisruptionBudgets, minimum_running_time: float, cycle: float | None
    ) -> None:
        """Read placed pods and disruption budgets; without a *cycle* by the original rules."""
        self._cycle = cycle
        self.retry: tuple[PodUid, float] | None = None
        """The pod that was refused last, and when to try it again."""
        self._placed = placed
        self._budgets = budgets
        self._minimum = minimum_running_time

    def make_room(
        self, engine: QosEngine, dry_run: DryRun, pod: Pod, resolvable: Bools, now: float
    ) -> Status | PostFilterResult:
        """Return a node and its victims, or why there are none."""
        self.retry = None
        waiting = preemptor(engine, pod, now)
        victims = PlacedVictims(engine, self._placed, self._placed.entries(), now)
        reason = _ineligible(dry_run, waiting, victims, resolvable)
        if reason:
            return unschedulable(PREFIX + reason)
        if self._cycle is None:
            allowed = victims.allowed(waiting, self._minimum)
        else:
            allowed = victims.worth_it(waiting, self._minimum, self._cycle)
        allowed &= resolvable[victims.entries.row]
        chosen = victims.only(allowed)
        costs = ReserveCosts(chosen, protect=self._cycle is not None)
        uids = frozenset(chosen.uids)
        rules = SearchRules(chosen.entries, lambda victim: victim.uid in uids, costs.spared, costs.of_rows, costs.price)
        found = CandidateSearch(dry_run, resolvable, self._placed, self._budgets, rules).run(int(resolvable.sum()))
        if found.best is None:
            self.retry = (pod.uid, now + self._delay(victims, waiting))
            if waiting.hopeless:
                return unschedulable(PREFIX + SACRIFICED.format(-waiting.metric))
            return unschedulable(PREFIX + pending_message(dry_run.nodes.total, found.refusals))
        node = dry_run.nodes.node(found.best.row)
        assert node is not None, "only rows with a node are candidates"
        return PostFilterResult(node.name, found.best.victims)

    def _delay(self, victims: PlacedVictims, waiting: Preemptor) -> float:
        """Return in how many seconds an attempt can succeed."""
        if self._cycle is None:
            return FLUSH
        return min(victims.soonest(waiting, self._minimum, self._cycle), LONGEST)


def _ineligible(dry_run: DryRun, waiting: Preemptor, victims: PlacedVictims, resolvable: Bools) -> str:
    """Return why a pod must not preempt now; empty if it may."""
    if not waiting.pod.preempts:
        return NEVER
    row = dry_run.nominated_row
    # On an unresolvable node the victims leave in vain, so another node is searched for.
    if row >= 0 and resolvable[row]:
        leaving = frozenset(one.uid for one in dry_run.pods_on(row) if dry_run.leaves(one))
        preceded = victims.preceded_by(waiting)
        if any(victims.uids[place] in leaving for place in np.flatnonzero(preceded).tolist()):
            return TERMINATING
    return ""
