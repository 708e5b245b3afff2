"""NodeName: a pod that names its node fits only there."""

from collections.abc import Hashable
from typing import ClassVar, Final

import numpy as np

from lamina.model.decision import Refusal
from lamina.model.pod import Pod
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.points import Reads, Verdicts
from lamina.scheduling.state.cluster_changes import ChangeKind
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView

NAME: Final = "NodeName"
REASON_OTHER_NODE: Final = "node(s) didn't match the requested node name"


class NodeName:
    """Refuses every node but the named one."""

    name: ClassVar = NAME
    reads: ClassVar = Reads(rows=frozenset({Facet.LABELS}))
    retry_on: ClassVar = frozenset({ChangeKind.NODE_ADDED})

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        """Need no context or arguments."""

    def sign(self, pod: Pod) -> Hashable:
        """Return the node that the pod names."""
        return pod.node_name

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
        """Accept the named node only."""
        if not pod.node_name:
            return None
        codes = np.ones(len(nodes), dtype=np.bool_)
        position = nodes.position(pod.node_name)
        if position is not None:
            codes[position] = 0
        return Verdicts(codes, lambda code: Refusal(NAME, (REASON_OTHER_NODE,), final=True))
