"""
LayerLocality: prefer nodes that already hold the pod's layers.

Bytes mode: the share of the pod's bytes a node need not download, each distinct layer counted once over all images of
the pod. Absence of data is never data: with an image nobody can resolve the plugin has nothing to say, and a node that
reported nothing counts as the mean of the feasible ones that did.
"""

from collections.abc import Hashable
from typing import ClassVar, Final, Literal

import numpy as np

from lamina.layers.wanted import WantedLayers
from lamina.model.pod import Pod
from lamina.scheduling.framework.columns import Bools, Ints
from lamina.scheduling.framework.context import Context
from lamina.scheduling.framework.cycle_state import CycleState, StateKey
from lamina.scheduling.framework.points import MAX_SCORE, Reads
from lamina.scheduling.framework.registry import Args
from lamina.scheduling.framework.rowlog import Facet
from lamina.scheduling.framework.status import SKIP, Status
from lamina.scheduling.framework.view import NodeView

NAME: Final = "LayerLocality"
UNKNOWN: Final = -1

WANTED: Final[StateKey[WantedLayers]] = StateKey("layer-locality/wanted")


class LayerLocalityArgs(Args, frozen=True, kw_only=True, rename="camel"):
    """Arguments of LayerLocality."""

    mode: Literal["bytes"] = "bytes"


class LayerLocality:
    """Ranks by layers, by bytes."""

    name: ClassVar = NAME
    Args: ClassVar = LayerLocalityArgs
    reads: ClassVar = Reads(rows=frozenset({Facet.LAYERS}), whole=frozenset({Facet.CATALOG}))

    def __init__(self, context: Context, args: LayerLocalityArgs) -> None:
        """Look layers up in the context's inventory."""
        self._inventory = context.inventory

    def sign(self, pod: Pod) -> Hashable:
        """Tell pods apart by their images."""
        return pod.images

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | None:
        """Resolve the pod's images; abstain when one of them is not known."""
        wanted = self._inventory.wanted(pod.images)
        if wanted is None or wanted.total == 0:
            return SKIP
        state[WANTED] = wanted
        return None

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Return the share of bytes that are there, in percent; -1 where nothing was reported."""
        wanted = state[WANTED]
        present = self._inventory.index.present_bytes(wanted, nodes.height)[nodes.rows]
        # Floor division makes -100 into -1 ("nothing was reported") for any total of at least 100 bytes.
        share: Ints = present * MAX_SCORE // wanted.total
        return share if wanted.total >= MAX_SCORE else np.maximum(share, UNKNOWN)

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, feasible: Bools) -> Ints:
        """Let nodes without a report count as the mean of the feasible ones that have one."""
        if scores.min() >= 0:
            return scores
        known = scores[feasible & (scores >= 0)]
        return np.where(scores < 0, int(known.mean()) if len(known) else 0, scores)

    def facts(self, state: CycleState, pod: Pod, nodes: NodeView) -> list[dict[str, int]]:
        """Tell what is there and what is missing, in bytes."""
        wanted = state[WANTED]
        total = wanted.total
        present = self._inventory.index.present_bytes(wanted, nodes.height)[nodes.rows]
        return [
            {} if one < 0 else {"present": int(one), "missing": total - int(one), "total": total} for one in present
        ]
