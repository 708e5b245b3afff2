"""
NodeAffinity: requires nodes that match the pod's node selector and required affinity, and scores preferred nodes.

The nodes that a term matches are kept as an array and updated as labels change (`Topology`). Pods with the same
affinity share the array. Numbers and messages are upstream's.
"""

from collections.abc import Hashable
from typing import ClassVar, Final

import numpy as np

from lamina.model.decision import Refusal
from lamina.model.node import Node
from lamina.model.pod import Pod, PreferredNodes
from lamina.model.selectors import NodeSelector
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.normalize import normalized
from lamina.scheduling.contract.points import PreFilterResult, Reads, Verdicts
from lamina.scheduling.contract.status import SKIP, Status, failed, unresolvable
from lamina.scheduling.plugins.upstream.node_affinity.args import NodeAffinityArgs
from lamina.scheduling.state.cluster_changes import ChangeKind, ClusterChange
from lamina.scheduling.state.columns import Bools, Ints
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.topology import named_nodes, selects
from lamina.scheduling.state.view import NodeView

NAME: Final = "NodeAffinity"
REASON_POD: Final = "node(s) didn't match Pod's node affinity/selector"
REASON_ENFORCED: Final = "node(s) didn't match scheduler-enforced node affinity"
REASON_CONFLICT: Final = "pod affinity terms conflict"
REFUSALS: Final = {
    1: Refusal(NAME, (REASON_ENFORCED,), final=True),
    2: Refusal(NAME, (REASON_POD,), final=True),
}
ENFORCED, OWN = REFUSALS


class NodeAffinity:
    """Filters by required affinity and scores by preferred affinity."""

    name: ClassVar = NAME
    Args: ClassVar = NodeAffinityArgs
    reads: ClassVar = Reads(rows=frozenset({Facet.LABELS}))
    retry_on: ClassVar = frozenset({ChangeKind.NODE_ADDED, ChangeKind.NODE_LABELS})

    def __init__(self, context: PluginContext, args: NodeAffinityArgs) -> None:
        """Add the affinity of *args* to every pod."""
        self._context = context
        self._required = args.required
        self._preferred = args.preferred

    def sign(self, pod: Pod) -> Hashable:
        """Return the pod's node selector and node affinity."""
        return (pod.node_selector, pod.required_nodes, pod.preferred_nodes)

    # -- required affinity -------------------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | PreFilterResult | None:
        """Restrict the evaluation to the nodes that the pod names, if it names any."""
        if not pod.node_selector and pod.required_nodes is None and self._required is None:
            return SKIP
        names = named_nodes(pod.required_nodes)
        if names is None:
            return None
        return PreFilterResult(names) if names else unresolvable(REASON_CONFLICT)

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
        """Refuse nodes that the configuration's affinity excludes, then those that the pod's own excludes."""
        codes = np.zeros(len(nodes), dtype=np.int64)
        if pod.node_selector or pod.required_nodes is not None:
            codes[~nodes.selected((pod.node_selector, pod.required_nodes))] = OWN
        if self._required is not None:
            codes[~nodes.selected(((), self._required))] = ENFORCED
        return Verdicts(codes, REFUSALS.__getitem__) if codes.any() else None

    # -- preferred affinity ------------------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | None:
        """Skip pods without preferences; fail for an invalid preference, as upstream does."""
        if not pod.preferred_nodes and not self._preferred:
            return SKIP
        for one in pod.preferred_nodes:
            wrong = one.term.malformed() if one.weight else None
            if wrong is not None:
                return failed(
                    f"preferred node affinity has an invalid requirement: {wrong.key!r:.80} {wrong.operator!r:.80}"
                )
        return None

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Return the sum of the weights of matching terms."""
        total = np.zeros(len(nodes), dtype=np.int64)
        for one in (*self._preferred, *pod.preferred_nodes):
            total += _worth(one, nodes)
        return total

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, feasible: Bools) -> Ints:
        """Scale scores so that the most preferred feasible node gets 100."""
        return normalized(scores, feasible)

    # -- retries -----------------------------------------------------------------------------------------------------

    def worth_retrying(self, pod: Pod, change: ClusterChange) -> bool:
        """Return whether the changed node matches now and did not match before."""
        node = self._context.node(change.row).node
        if node is None:
            return True
        return self._takes(node, pod) and (change.before is None or not self._takes(change.before, pod))

    def _takes(self, node: Node, pod: Pod) -> bool:
        return selects(((), self._required), node) and selects((pod.node_selector, pod.required_nodes), node)


def _worth(one: PreferredNodes, nodes: NodeView) -> Ints:
    return nodes.selected(((), NodeSelector((one.term,)))) * np.int64(one.weight)
