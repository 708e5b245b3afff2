"""
HotEdge: dependency scheduling combined with load, after Fu, Mittal, Zhang and Ratnasamy (HotEdge 2020).

    score = 100 · (share · free part of the node + (1 - share) · locality)
    locality = bytes of the pod's layers on the node, between 23 MB and 1 GB, mapped to 0..1

This is the formula of the authors' simulator, with both bounds in the same unit. It differs in the free part: cpu or
memory, whichever is scarcer, instead of slots. Only layers that are on the node are included.
"""

from collections.abc import Hashable
from typing import Annotated, ClassVar, Final

import msgspec
import numpy as np

from lamina.layers.not_held import held_bytes
from lamina.model.pod import Pod
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import PluginArgs
from lamina.scheduling.contract.points import MAX_SCORE, Reads
from lamina.scheduling.state.columns import Ints
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView

NAME: Final = "HotEdge"
FLOOR: Final = 23e6
CEILING: Final = 1e9


class HotEdgeArgs(PluginArgs, frozen=True, kw_only=True, rename="camel"):
    """Arguments of HotEdge."""

    load_share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.2
    """Weight of the load in the score."""


class HotEdge:
    """Scores nodes by layer bytes and free resources."""

    name: ClassVar = NAME
    Args: ClassVar = HotEdgeArgs
    reads: ClassVar = Reads(rows=frozenset({Facet.LAYERS, Facet.RESOURCES}), whole=frozenset({Facet.CATALOG}))

    def __init__(self, context: PluginContext, args: HotEdgeArgs) -> None:
        """Use the context's inventory and load."""
        self._inventory = context.inventory
        self._load = context.load
        self._share = args.load_share

    def sign(self, pod: Pod) -> Hashable:
        """Return the pod's images and requests."""
        return (pod.images, pod.scoring_requests)

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Combine locality and free resources; locality is 0 for unknown images."""
        free = np.clip(1.0 - self._load.of(nodes, pod), 0.0, 1.0)
        locality = np.zeros(len(nodes))
        wanted = self._inventory.readiness_cache.first_known(pod.images)
        if wanted is not None:
            held = held_bytes(self._inventory.index, wanted, nodes.height)[nodes.rows]
            locality = (np.clip(held, FLOOR, CEILING) - FLOOR) / (CEILING - FLOOR)
        scores: Ints = (MAX_SCORE * (self._share * free + (1.0 - self._share) * locality)).astype(np.int64)
        return scores
