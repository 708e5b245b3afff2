"""
InterPodAffinity, in part: required anti-affinity of placed pods keeps other pods away.

This part restricts every pod, so it cannot wait for the rest. Pods with required terms of their own are refused
(`UnmetDemands`). Preferred terms, of the pod or of placed pods, have no effect yet. Messages are upstream's.
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
    """Arguments of InterPodAffinity; both concern scoring and have no effect yet."""

    hard_pod_affinity_weight: Annotated[int, msgspec.Meta(ge=0, le=100)] = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class InterPodAffinity:
    """Refuses nodes in domains that anti-affinity closes for a pod; evicting the pods with the rule would help."""

    name: ClassVar = NAME
    Args: ClassVar = InterPodAffinityArgs
    reads: ClassVar = Reads(others=frozenset({Facet.ANTI_AFFINITY, Facet.LABELS}))
    retry_on: ClassVar = frozenset(
        {ChangeKind.POD_REMOVED, ChangeKind.NODE_ADDED, ChangeKind.NODE_REMOVED, ChangeKind.NODE_LABELS}
    )

    def __init__(self, context: PluginContext, args: InterPodAffinityArgs) -> None:
        """Use the anti-affinity index of *context*."""
        self._anti_affinity = context.anti_affinity

    @property
    def edition(self) -> int:
        """Increases as rules come and go, because a pod's signature lists the rules that apply to it."""
        return self._anti_affinity.edition

    def sign(self, pod: Pod) -> tuple[int, ...]:
        """Return the numbers of the rules that apply to the pod."""
        return self._anti_affinity.sign(pod)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | None:
        """Find the domains that are closed to the pod; skip the pod if there are none, which is the usual case."""
        closed = nodes.closed(pod)
        if closed is None:
            return SKIP
        state[CLOSED] = closed
        return None

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
        """Refuse nodes in a closed domain."""
        closed = state[CLOSED][nodes.rows]
        return Verdicts(closed.copy(), lambda code: Refusal(NAME, (REASON_KEPT_AWAY,))) if closed.any() else None

    def worth_retrying(self, pod: Pod, change: ClusterChange) -> bool:
        """Return whether a pod with a rule about this pod left, or domains changed."""
        return change.pod is None or self._anti_affinity.between(change.pod, pod)
