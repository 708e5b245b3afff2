"""
LRScheduler: layer sharing weighted by how idle and balanced a node is, after Tang, Peng and others (MSN 2024).

    score = int(int(100 · matched / required / 2) · w)
    w     = 2 if more than 10 MB match, |cpu share - memory share| / 2 < 0.16
              and the cpu share with the pod < 0.6; else 0.5

This is the formula of the published code. It runs with weight 2 beside NodeResourcesBalancedAllocation.
"""

from collections.abc import Hashable
from typing import ClassVar, Final

import numpy as np

from lamina.layers.not_held import held_bytes
from lamina.model.pod import Pod
from lamina.model.resources import CPU, MEMORY
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.points import MAX_SCORE, Reads
from lamina.scheduling.contract.status import SKIP, Status
from lamina.scheduling.state.columns import Floats, Ints
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView

NAME: Final = "LRScheduler"
MATCHED: Final = 10e6
BALANCED: Final = 0.16
IDLE: Final = 0.6
MORE: Final = 2.0
LESS: Final = 0.5


class LRScheduler:
    """Scores nodes by the share of matching layer bytes; idle and balanced nodes get more."""

    name: ClassVar = NAME
    reads: ClassVar = Reads(rows=frozenset({Facet.LAYERS, Facet.RESOURCES}), whole=frozenset({Facet.CATALOG}))

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        """Use the context's inventory."""
        self._inventory = context.inventory

    def sign(self, pod: Pod) -> Hashable:
        """Return the pod's images and requests."""
        return (pod.images, pod.scoring_requests)

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | None:
        """Skip pods with unknown or empty images."""
        wanted = self._inventory.readiness_cache.first_known(pod.images)
        return SKIP if wanted is None or wanted.total == 0 else None

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Return the weighted share of matching bytes."""
        wanted = self._inventory.readiness_cache.first_known(pod.images)
        assert wanted is not None, "pre_score skips pods with unknown images"
        matched = held_bytes(self._inventory.index, wanted, nodes.height)[nodes.rows]
        cpu, memory = (_share(nodes, resource) for resource in (CPU, MEMORY))
        after = _share(nodes, CPU, dict(pod.scoring_requests).get(CPU, 0))
        good = (matched > MATCHED) & (np.abs(cpu - memory) / 2 < BALANCED) & (after < IDLE)
        base = np.floor(MAX_SCORE * matched / wanted.total / 2)
        scores: Ints = (base * np.where(good, MORE, LESS)).astype(np.int64)
        return scores


def _share(nodes: NodeView, resource: str, more: int = 0) -> Floats:
    """Return the used share of a resource with *more* in use; 1 on nodes without the resource."""
    most = nodes.allocatable(resource)
    return np.divide(nodes.ranked(resource) + more, most, out=np.ones(len(nodes)), where=most > 0)
