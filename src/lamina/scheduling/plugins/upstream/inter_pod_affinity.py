"""
InterPodAffinity, one half: pods that have a node keep others away, as their required anti-affinity says.

That binds a pod whatever it asks for itself, so it cannot wait for the other half. Pods with required terms of their own
are held back (`UnmetDemands`), and preferred terms, of the pod or of others, are not ranked by. Words are upstream's.
"""

from typing import Annotated, ClassVar, Final

import msgspec

from lamina.model.decision import Refusal
from lamina.model.pod import Pod
from lamina.scheduling.contract.cycle_state import CycleState, StateKey
from lamina.scheduling.contract.plugin_registry import PluginArgs
from lamina.scheduling.contract.points import Reads, Verdicts
from lamina.scheduling.contract.status import SKIP, Status
from lamina.scheduling.state.cluster_changes import ChangeKind, ClusterChange
from lamina.scheduling.state.columns import Bools
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView

NAME: Final = "InterPodAffinity"
REASON_KEPT_AWAY: Final = "node(s) didn't satisfy existing pods anti-affinity rules"

CLOSED: Final[StateKey[Bools]] = StateKey("inter-pod-affinity/closed")


class InterPodAffinityArgs(PluginArgs, frozen=True, kw_only=True, rename="camel"):
    """Arguments of InterPodAffinity; both are about ranking, and have no effect yet."""

    hard_pod_affinity_weight: Annotated[int, msgspec.Meta(ge=0, le=100)] = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class InterPodAffinity:
    """Refuses domains from which a pod is kept away; evicting who does would help."""

    name: ClassVar = NAME
    Args: ClassVar = InterPodAffinityArgs
    reads: ClassVar = Reads(others=frozenset({Facet.REPULSION, Facet.LABELS}))
    retry_on: ClassVar = frozenset(
        {ChangeKind.POD_REMOVED, ChangeKind.NODE_ADDED, ChangeKind.NODE_REMOVED, ChangeKind.NODE_LABELS}
    )

    def __init__(self, context: PluginContext, args: InterPodAffinityArgs) -> None:
        """Look up who keeps whom away in *context*."""
        self._repulsion = context.repulsion

    @property
    def edition(self) -> int:
        """Grows as rules come and go: which of them are about a pod is its signature."""
        return self._repulsion.edition

    def sign(self, pod: Pod) -> tuple[int, ...]:
        """Tell pods apart by the rules that are about them."""
        return self._repulsion.sign(pod)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | None:
        """Find the domains that are closed to the pod; for most pods there are none, and nothing has to be looked at."""
        closed = nodes.closed(pod)
        if closed is None:
            return SKIP
        state[CLOSED] = closed
        return None

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
        """Refuse nodes in such a domain."""
        closed = state[CLOSED][nodes.rows]
        return Verdicts(closed.copy(), lambda code: Refusal(NAME, (REASON_KEPT_AWAY,))) if closed.any() else None

    def worth_retrying(self, pod: Pod, change: ClusterChange) -> bool:
        """Say whether a pod left that kept this one away, or the domains changed."""
        return change.pod is None or self._repulsion.between(change.pod, pod)
