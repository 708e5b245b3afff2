"""NodePorts: a pod that wants ports of its node needs one where they are free."""

from collections.abc import Hashable
from typing import ClassVar, Final

import numpy as np

from lamina.model.decision import Refusal
from lamina.model.pod import Pod
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.points import Reads, Verdicts
from lamina.scheduling.contract.status import SKIP, Status
from lamina.scheduling.plugins.upstream.node_ports.host_ports import HostPorts, clash
from lamina.scheduling.state.cluster_changes import ChangeKind, ClusterChange
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeRow, NodeView

NAME: Final = "NodePorts"
REASON_TAKEN: Final = "node(s) didn't have free ports for the requested pod ports"


class NodePorts:
    """Refuses nodes where another pod holds one of the ports; evicting that pod would help."""

    name: ClassVar = NAME
    retry_on: ClassVar = frozenset({ChangeKind.NODE_ADDED, ChangeKind.POD_REMOVED})

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        """Keep books of who holds which port."""
        self._ports = context.register(HostPorts())
        self.reads = Reads(rows=frozenset({self._ports.facet}))

    def sign(self, pod: Pod) -> Hashable:
        """Tell pods apart by the ports they want."""
        return pod.host_ports

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | None:
        """Stay out of it for pods that want none."""
        return None if pod.host_ports else SKIP

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
        """Refuse nodes where a port is taken."""
        flags = np.zeros(nodes.height, dtype=np.bool_)
        flags[nodes.fact(self._ports).taken(pod.host_ports)] = True
        taken = flags[nodes.rows]
        return Verdicts(taken, lambda code: Refusal(NAME, (REASON_TAKEN,))) if taken.any() else None

    def filter_node(self, state: CycleState, pod: Pod, node: NodeRow) -> int:
        """Say the same of one node."""
        return int(node.fact(self._ports).taken_on(node.row, pod.host_ports))

    def worth_retrying(self, pod: Pod, change: ClusterChange) -> bool:
        """Say whether a pod that left held one of the ports, or a node came."""
        if change.pod is None:
            return True
        return any(
            (wanted.port, wanted.protocol) == (held.port, held.protocol) and clash(wanted.ip, held.ip)
            for wanted in pod.host_ports
            for held in change.pod.host_ports
        )
