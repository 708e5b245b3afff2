"""
DefaultPreemption: if a pod fits on no node, evict pods of lower priority where that helps and costs least.

Eligibility, victims, costs and messages are upstream's (1.36: default_preemption.go, preemption.go). The loop performs
the result: it nominates the node and evicts the victims.
"""

from collections.abc import Sequence
from typing import ClassVar, Final

from lamina.model.decision import pending_message
from lamina.model.disruption_budget import PodDisruptionBudget
from lamina.model.pod import Pod
from lamina.scheduling.contract.commands import ProposedVictims
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.points import PostFilterResult
from lamina.scheduling.contract.status import Status, unschedulable
from lamina.scheduling.plugins.upstream.default_preemption.args import PreemptionArgs
from lamina.scheduling.plugins.upstream.default_preemption.pick_node import cost
from lamina.scheduling.runtime.candidate_search import CandidateSearch, Search, SearchRules
from lamina.scheduling.runtime.disruption_budgets import DisruptionBudgets
from lamina.scheduling.runtime.dry_run import DRY_RUN, Candidate, DryRun
from lamina.scheduling.runtime.freed_room import FreedRoom
from lamina.scheduling.state.columns import Bools
from lamina.scheduling.state.placed_pods import importance
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView

NAME: Final = "DefaultPreemption"
PREFIX: Final = "preemption: "
NEVER: Final = "not eligible due to preemptionPolicy=Never."
NO_CANDIDATE: Final = "no candidate node for preemption"
TERMINATING: Final = "not eligible due to a terminating pod on the nominated node."


class DefaultPreemption:
    """Proposes victims of lower priority."""

    name: ClassVar = NAME
    Args: ClassVar = PreemptionArgs
    objects: ClassVar = frozenset({PodDisruptionBudget})

    def __init__(self, context: PluginContext, args: PreemptionArgs) -> None:
        """Read disruption budgets and placed pods from *context*."""
        self._args = args
        self._budgets = DisruptionBudgets(context.objects)
        self._placed = context.placed_pods()

    def post_filter(self, state: CycleState, pod: Pod, nodes: NodeView, resolvable: Bools) -> Status | PostFilterResult:
        """Return the cheapest node and its victims, or why preemption does not help."""
        found = self._search(state, pod, nodes, resolvable)
        if isinstance(found, Status):
            return found
        assert found.best is not None, "otherwise it is a status"
        return PostFilterResult(_name(nodes, found.best.row), found.best.victims)

    def propose(
        self, state: CycleState, pod: Pod, nodes: NodeView, resolvable: Bools
    ) -> Status | tuple[ProposedVictims, ...]:
        """Return all candidates with their victims, or why preemption does not help."""
        found = self._search(state, pod, nodes, resolvable, several=True)
        if isinstance(found, Status):
            return found
        return tuple([ProposedVictims(_name(nodes, one.row), one.victims, one.violations) for one in found.found])

    def choose(
        self, state: CycleState, pod: Pod, nodes: NodeView, resolvable: Bools, allowed: Sequence[ProposedVictims]
    ) -> Status | PostFilterResult:
        """Return the cheapest of *allowed* where the victims have lower priority and the pod fits without them."""
        dry_run = state[DRY_RUN]
        reason = _ineligible(dry_run, pod, resolvable)
        if reason:
            return unschedulable(PREFIX + reason)
        found: list[Candidate] = []
        for one in allowed:
            row = dry_run.cluster.row(one.node)
            victims = tuple(sorted(one.victims, key=importance))
            lower = victims and all(victim.priority < pod.priority for victim in victims)
            if row >= 0 and resolvable[row] and lower and dry_run.refusal(row, victims) is None:
                found.append(Candidate(row, victims, one.violations))
        if not found:
            return unschedulable(PREFIX + NO_CANDIDATE)
        best = min(found, key=cost)
        return PostFilterResult(_name(nodes, best.row), best.victims)

    def _search(
        self, state: CycleState, pod: Pod, nodes: NodeView, resolvable: Bools, *, several: bool = False
    ) -> Status | Search:
        """Return at least one candidate, or why there is none."""
        dry_run = state[DRY_RUN]
        reason = _ineligible(dry_run, pod, resolvable)
        if reason:
            return unschedulable(PREFIX + reason)
        entries = self._placed.entries()
        rules = SearchRules(
            entries.only(entries.priority < pod.priority),
            lambda victim: victim.priority < pod.priority,
            importance,
            FreedRoom.costs,
            cost,
        )
        search = CandidateSearch(dry_run, resolvable, self._placed, self._budgets, rules)
        found = search.run(self._args.enough(int(resolvable.sum())), several=several)
        if found.best is None:
            return unschedulable(PREFIX + pending_message(nodes.total, found.refusals))
        return found


def _name(nodes: NodeView, row: int) -> str:
    node = nodes.node(row)
    assert node is not None, "only rows with a node are candidates"
    return node.name


def _ineligible(dry_run: DryRun, pod: Pod, resolvable: Bools) -> str:
    """Return why a pod must not preempt now; empty if it may."""
    if not pod.preempts:
        return NEVER
    row = dry_run.nominated_row
    # On an unresolvable node the victims leave in vain, so another node is searched for.
    if row >= 0 and resolvable[row]:
        for one in dry_run.pods_on(row):
            if one.priority < pod.priority and dry_run.leaves(one):
                return TERMINATING
    return ""
