"""
ImagePresence: nodes that have the pod's images as a whole, or will have them, get everything; the others get nothing.

Undamped and without a cap, unlike ImageLocality. For clusters with a metered or slow registry and room to spare: beside
LayerLocality it makes a pod wait for an image that is on its way rather than have it pulled a second time.
"""

from collections.abc import Hashable
from typing import ClassVar, Final

import numpy as np

from lamina.layers.layer_set import LayerSet
from lamina.layers.not_held import update_rows
from lamina.model.pod import Pod
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.points import MAX_SCORE, Reads
from lamina.scheduling.contract.status import SKIP, Status
from lamina.scheduling.state.columns import Bools, Ints
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView

NAME: Final = "ImagePresence"


class ImagePresence:
    """Ranks by whole images, there or on their way."""

    name: ClassVar = NAME
    reads: ClassVar = Reads(rows=frozenset({Facet.LAYERS, Facet.PULLS}), whole=frozenset({Facet.CATALOG}))

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        """Look at the context's inventory."""
        self._inventory = context.inventory

    def sign(self, pod: Pod) -> Hashable:
        """Tell pods apart by their images."""
        return pod.images

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | None:
        """Have nothing to say about images that are not known."""
        return SKIP if self._inventory.wants.readiness(pod.images) is None else None

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Give all or nothing, going by what the images are on each node's platform."""
        ready = self._inventory.wants.readiness(pod.images)
        assert ready is not None, "asked for pods with known images only"
        if ready.everywhere is not None:
            return np.multiply(self._complete(ready.everywhere, nodes), MAX_SCORE, dtype=np.int64)
        scores: Ints = np.zeros(len(nodes), dtype=np.int64)
        platforms = np.array([self._inventory.wants.platform(nodes.row(one)) for one in range(len(nodes))])
        for wanted in ready.distinct:
            there = np.isin(platforms, [platform for platform, one in ready.variants if one is wanted])
            scores[there & self._complete(wanted, nodes)] = MAX_SCORE
        return scores

    def _complete(self, wanted: LayerSet, nodes: NodeView) -> Bools:
        update_rows(self._inventory.index, wanted, nodes.height)
        return wanted.complete[: nodes.height][nodes.rows]
