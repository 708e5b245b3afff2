"""
ImagePresence: 100 for nodes that hold or are pulling all of the pod's images, 0 for the others.

Unlike ImageLocality, it is neither damped nor capped. It suits clusters with a metered or slow registry and spare
capacity: beside LayerLocality, a pod waits for an arriving image instead of having it pulled a second time.
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
    """Scores nodes by complete images, held or arriving."""

    name: ClassVar = NAME
    reads: ClassVar = Reads(rows=frozenset({Facet.LAYERS, Facet.PULLS}), whole=frozenset({Facet.CATALOG}))

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        """Use the context's inventory."""
        self._inventory = context.inventory

    def sign(self, pod: Pod) -> Hashable:
        """Return the pod's images."""
        return pod.images

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | None:
        """Skip pods with unknown images."""
        return SKIP if self._inventory.readiness_cache.readiness(pod.images) is None else None

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Return 100 or 0, using the images for each node's platform."""
        ready = self._inventory.readiness_cache.readiness(pod.images)
        assert ready is not None, "pre_score skips pods with unknown images"
        if ready.everywhere is not None:
            return np.multiply(self._complete(ready.everywhere, nodes), MAX_SCORE, dtype=np.int64)
        scores: Ints = np.zeros(len(nodes), dtype=np.int64)
        platforms = np.array([self._inventory.readiness_cache.platform(nodes.row(one)) for one in range(len(nodes))])
        for wanted in ready.distinct:
            there = np.isin(platforms, [platform for platform, one in ready.variants if one is wanted])
            scores[there & self._complete(wanted, nodes)] = MAX_SCORE
        return scores

    def _complete(self, wanted: LayerSet, nodes: NodeView) -> Bools:
        update_rows(self._inventory.index, wanted, nodes.height)
        return wanted.complete[: nodes.height][nodes.rows]
