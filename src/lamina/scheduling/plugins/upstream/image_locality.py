"""
ImageLocality: prefer nodes that list the pod's images, damped by how few nodes do.

Upstream's formula to the bit, as a baseline. For each image use the node lists, the size times the share of nodes that
list it; the sum is clamped between 23 MiB and 1000 MiB per container and mapped to 0..100. An image below the floor
therefore scores 0 everywhere, and so does a large one that only few of many nodes have.
"""

from collections.abc import Hashable
from typing import ClassVar, Final

import numpy as np

from lamina.model.pod import Pod
from lamina.model.reference import locality_name
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.points import MAX_SCORE, Reads
from lamina.scheduling.state.columns import Ints
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView

NAME: Final = "ImageLocality"
MIB: Final = 1024 * 1024
FLOOR: Final = 23 * MIB
CEILING_PER_CONTAINER: Final = 1000 * MIB


class ImageLocality:
    """Ranks by whole images, by name."""

    name: ClassVar = NAME
    # How many nodes list an image enters every node's score. What others said does not depend on it.
    reads: ClassVar = Reads(others=frozenset({Facet.IMAGES}))

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        """Need nothing."""

    def sign(self, pod: Pod) -> Hashable:
        """Tell pods apart by their images and by how many containers they have (Kubernetes 1.36 counts only those)."""
        return (pod.images, _containers(pod))

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Sum what is there and scale it."""
        containers = _containers(pod)
        known = [entry for image in pod.images if (entry := nodes.images.get(locality_name(image))) is not None]
        if not known or containers == 0:
            return np.zeros(len(nodes), dtype=np.int64)
        worth = [int(float(entry.size) * (len(entry.rows) / nodes.total)) for entry in known]
        ceiling = CEILING_PER_CONTAINER * containers
        if len(known) == 1:
            # The common case: every node that lists the image gets the same score, so it is computed once.
            listed = known[0].mask(nodes.height)[nodes.rows]
            return np.multiply(listed, _scaled(worth[0], ceiling), dtype=np.int64)
        total = np.zeros(len(nodes), dtype=np.int64)
        for entry, one in zip(known, worth, strict=True):
            total += np.multiply(entry.mask(nodes.height)[nodes.rows], one, dtype=np.int64)
        scaled: Ints = MAX_SCORE * (np.clip(total, FLOOR, ceiling) - FLOOR) // (ceiling - FLOOR)
        return scaled

    def facts(self, state: CycleState, pod: Pod, nodes: NodeView) -> list[dict[str, int]]:
        """Tell how many of the pod's images each node lists, and how many bytes those have."""
        count = np.zeros(len(nodes), dtype=np.int64)
        size = np.zeros(len(nodes), dtype=np.int64)
        for image in pod.images:
            known = nodes.images.get(locality_name(image))
            if known is not None:
                listed = known.mask(nodes.height)[nodes.rows]
                count += listed
                size += known.size * listed
        return [{"images": int(n), "bytes": int(b)} for n, b in zip(count, size, strict=True)]


def _scaled(total: int, ceiling: int) -> int:
    return MAX_SCORE * (min(max(total, FLOOR), ceiling) - FLOOR) // (ceiling - FLOOR)


def _containers(pod: Pod) -> int:
    return len(pod.init_containers) + len(pod.containers)
