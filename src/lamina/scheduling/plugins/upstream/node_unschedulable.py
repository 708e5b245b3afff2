"""NodeUnschedulable: cordoned nodes accept only pods that tolerate the unschedulable taint."""

from typing import ClassVar, Final

from lamina.model.decision import Refusal
from lamina.model.pod import Pod
from lamina.model.taints import UNSCHEDULABLE_TAINT, tolerates
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.points import Reads, Verdicts
from lamina.scheduling.state.cluster_changes import ChangeKind
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView

NAME: Final = "NodeUnschedulable"
REASON_CORDONED: Final = "node(s) were unschedulable"


class NodeUnschedulable:
    """Refuses cordoned nodes."""

    name: ClassVar = NAME
    reads: ClassVar = Reads(rows=frozenset({Facet.TAINTS}))
    retry_on: ClassVar = frozenset({ChangeKind.NODE_ADDED, ChangeKind.NODE_TAINTS})

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        """Need no context or arguments."""

    def sign(self, pod: Pod) -> bool:
        """Return whether the pod tolerates cordoned nodes."""
        return bool(pod.tolerations) and tolerates(pod.tolerations, UNSCHEDULABLE_TAINT)

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
        """Refuse cordoned nodes unless the pod tolerates them."""
        if not nodes.any_unschedulable or self.sign(pod):
            return None
        return Verdicts(nodes.unschedulable.copy(), lambda code: Refusal(NAME, (REASON_CORDONED,), final=True))
