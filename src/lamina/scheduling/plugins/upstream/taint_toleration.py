"""TaintToleration: refuses nodes with untolerated taints, and prefers nodes with few untolerated soft taints."""

from collections.abc import Hashable
from typing import ClassVar, Final

import numpy as np

from lamina.model.decision import Refusal
from lamina.model.pod import Pod
from lamina.model.taints import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, tolerates, untolerated
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.normalize import normalized
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.points import Reads, Verdicts
from lamina.scheduling.state.cluster_changes import ChangeKind
from lamina.scheduling.state.columns import Bools, Ints
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeRow, NodeView

NAME: Final = "TaintToleration"
REASON_TAINTED: Final = "node(s) had untolerated taint(s)"
HARD: Final = (NO_SCHEDULE, NO_EXECUTE)


class TaintToleration:
    """Evaluates each distinct taint set once, then maps the results to nodes."""

    name: ClassVar = NAME
    reads: ClassVar = Reads(rows=frozenset({Facet.TAINTS}))
    retry_on: ClassVar = frozenset({ChangeKind.NODE_ADDED, ChangeKind.NODE_TAINTS})

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        """Need no context or arguments."""

    def sign(self, pod: Pod) -> Hashable:
        """Return the pod's tolerations."""
        return pod.tolerations

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
        """Refuse nodes with an untolerated hard taint."""
        if not nodes.any_taints:
            return None
        refused = nodes.judged(lambda taints: untolerated(taints, pod.tolerations, HARD) is not None) != 0
        return Verdicts(refused, lambda code: Refusal(NAME, (REASON_TAINTED,), final=True)) if refused.any() else None

    def filter_node(self, state: CycleState, pod: Pod, node: NodeRow) -> int:
        """Return the code that `filter` returns for this node."""
        taints = () if node.node is None else node.node.taints
        return int(bool(taints) and untolerated(taints, pod.tolerations, HARD) is not None)

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Return the number of untolerated soft taints."""
        if not nodes.any_taints:
            return np.zeros(len(nodes), dtype=np.int64)
        soft = tuple(one for one in pod.tolerations if one.effect in ("", PREFER_NO_SCHEDULE))
        return nodes.judged(
            lambda taints: sum(one.effect == PREFER_NO_SCHEDULE and not tolerates(soft, one) for one in taints)
        )

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, feasible: Bools) -> Ints:
        """Give 100 to nodes without such taints, 0 to nodes with the most."""
        return normalized(scores, feasible, reverse=True)
