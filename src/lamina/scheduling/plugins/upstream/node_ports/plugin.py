"""NodePorts: refuses nodes where a host port that the pod requests is in use."""

from collections.abc import Hashable, Sequence
from typing import ClassVar, Final

import numpy as np

from lamina.model.decision import Refusal
from lamina.model.pod import Pod
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.points import Reads, Verdicts
from lamina.scheduling.contract.status import SKIP, Status
from lamina.scheduling.plugins.upstream.node_ports.host_ports import HostPorts, in_conflict
from lamina.scheduling.state.cluster_changes import ChangeKind, ClusterChange
from lamina.scheduling.state.columns import Bools, Ints
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeRow, NodeView

NAME: Final = "NodePorts"
REASON_TAKEN: Final = "node(s) didn't have free ports for the requested pod ports"


class NodePorts:
    """Refuses nodes where another pod uses one of the ports; evicting that pod would help."""

    name: ClassVar = NAME
    retry_on: ClassVar = frozenset({ChangeKind.NODE_ADDED, ChangeKind.POD_REMOVED})

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        """Register the node fact of ports in use."""
        self._ports = context.register(HostPorts())
        self.reads = Reads(rows=frozenset({self._ports.facet}))

    def sign(self, pod: Pod) -> Hashable:
        """Return the pod's host ports."""
        return pod.host_ports

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | None:
        """Skip pods without host ports."""
        return None if pod.host_ports else SKIP

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
        """Refuse nodes where a port is in use."""
        flags = np.zeros(nodes.height, dtype=np.bool_)
        flags[nodes.fact(self._ports).taken(pod.host_ports)] = True
        taken = flags[nodes.rows]
        return Verdicts(taken, lambda code: Refusal(NAME, (REASON_TAKEN,))) if taken.any() else None

    def filter_node(self, state: CycleState, pod: Pod, node: NodeRow) -> int:
        """Return the code that `filter` returns for this node."""
        return int(node.fact(self._ports).taken_on(node.row, pod.host_ports))

    def evictions(self, pod: Pod, nodes: NodeView, there: Sequence[Pod]) -> "PortEvictions":
        """Count the ports in use that the pod requests."""
        return PortEvictions(nodes.fact(self._ports).conflicts(pod.host_ports, nodes.height), pod)

    def worth_retrying(self, pod: Pod, change: ClusterChange) -> bool:
        """Return whether a removed pod used one of the ports, or a node was added."""
        if change.pod is None:
            return True
        return any(in_conflict(wanted, held) for wanted in pod.host_ports for held in change.pod.host_ports)


class PortEvictions:
    """Counts the ports that keep a pod away and that leave with evicted pods."""

    width: ClassVar = 1

    def __init__(self, conflicts: Ints, pod: Pod) -> None:
        """Count for *pod*; *conflicts* are the ports in use on each row that it cannot share."""
        self._conflicts = conflicts
        self._ports = pod.host_ports
        self.counting: Bools = conflicts > 0

    def counts(self, pod: Pod) -> list[int]:
        """Return the number of conflicts with a placed pod."""
        return [sum(in_conflict(wanted, held) for wanted in self._ports for held in pod.host_ports)]

    def codes(self, rows: Ints, gone: Ints) -> Ints:
        """Return the codes of the filter if the pods of *gone* conflicts had left each row."""
        codes: Ints = (self._conflicts[rows] > gone[0]).astype(np.int64)
        return codes
