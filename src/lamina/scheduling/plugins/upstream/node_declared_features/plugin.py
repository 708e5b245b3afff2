"""
NodeDeclaredFeatures: refuses nodes that do not declare a feature which the pod requires.

A kubelet declares in ``status.declaredFeatures`` which of Kubernetes' newer features it has. The decoder of pods infers
what a pod requires (`lamina.wire.kube.pod_requirements`).
"""

from collections.abc import Hashable
from typing import ClassVar, Final

from lamina.model.decision import Refusal
from lamina.model.pod import Pod
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.points import Reads, Verdicts
from lamina.scheduling.contract.status import SKIP, Status
from lamina.scheduling.plugins.upstream.node_declared_features.declared_features import DeclaredFeatures
from lamina.scheduling.state.cluster_changes import ChangeKind
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView

NAME: Final = "NodeDeclaredFeatures"
REASON: Final = "node(s) didn't match Pod's required features"
REFUSAL: Final = Refusal(NAME, (REASON,), final=True)


class NodeDeclaredFeatures:
    """Refuses nodes without a required feature; evicting pods would not help."""

    name: ClassVar = NAME
    retry_on: ClassVar = frozenset({ChangeKind.NODE_ADDED, ChangeKind.NODE_FEATURES, ChangeKind.POD_UPDATED})

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        """Register the node fact of declared features."""
        self._declared = context.register(DeclaredFeatures())
        self.reads = Reads(rows=frozenset({self._declared.facet}))

    def sign(self, pod: Pod) -> Hashable:
        """Return the required features."""
        return pod.required_features

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | None:
        """Skip pods without requirements, which is the usual case."""
        return None if pod.required_features else SKIP

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
        """Refuse nodes that do not declare all required features."""
        lacking = ~nodes.fact(self._declared).declare(pod.required_features, nodes.height)[nodes.rows]
        return Verdicts(lacking, lambda code: REFUSAL) if lacking.any() else None

    def unsure(self, pod: Pod, nodes: NodeView) -> list[int]:
        """Return no row: evictions change nothing here."""
        return []
