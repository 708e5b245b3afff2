"""
DefaultPreemption: if a pod fits on no node, evict pods of lower priority where that helps and costs least.

Eligibility, victims, costs and messages are upstream's (1.36: default_preemption.go, preemption.go). The loop performs
the result: it nominates the node and evicts the victims.
"""

from typing import ClassVar, Final

from lamina.model.decision import pending_message
from lamina.model.disruption_budget import PodDisruptionBudget
from lamina.model.pod import Pod
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.points import PostFilterResult
from lamina.scheduling.contract.status import Status, unschedulable
from lamina.scheduling.plugins.upstream.default_preemption.args import PreemptionArgs
from lamina.scheduling.plugins.upstream.default_preemption.candidates import CandidateSearch
from lamina.scheduling.runtime.disruption_budgets import DisruptionBudgets
from lamina.scheduling.runtime.dry_run import DRY_RUN, DryRun
from lamina.scheduling.state.columns import Bools
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView

NAME: Final = "DefaultPreemption"
PREFIX: Final = "preemption: "
NEVER: Final = "not eligible due to preemptionPolicy=Never."
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
        dry_run = state[DRY_RUN]
        reason = _ineligible(dry_run, pod, resolvable)
        if reason:
            return unschedulable(PREFIX + reason)
        search = CandidateSearch(dry_run, resolvable, self._placed, self._budgets)
        found = search.run(self._args.enough(int(resolvable.sum())))
        node = None if found.best is None else nodes.node(found.best.row)
        if found.best is None or node is None:
            return unschedulable(PREFIX + pending_message(nodes.total, found.refusals))
        return PostFilterResult(node.name, found.best.victims)


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
