"""
ImageLocality: prefers nodes that list the pod's images, scaled by the share of nodes that list them.

Exactly upstream's formula, as a baseline. For each image that the node lists: the size times the share of nodes that
list it. The sum is clamped between 23 MiB and 1000 MiB per container and mapped to 0..100. An image below the floor
therefore scores 0 everywhere, and so does a large image that few of many nodes have.
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
    """Scores nodes by complete images, identified by name."""

    name: ClassVar = NAME
    # The number of nodes that list an image affects every node's score, but no other plugin.
    reads: ClassVar = Reads(others=frozenset({Facet.IMAGES}))

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        """Read from *context* which images the nodes list."""
        self._images = context.images

    @property
    def edition(self) -> int:
        """Increases as names are listed first or no longer, because a pod's signature leaves out unlisted ones."""
        return self._images.edition

    def sign(self, pod: Pod) -> Hashable:
        """
        Return the pod's images that some node lists, and its number of containers.

        Kubernetes 1.36 counts init and regular containers. Pods whose images no node lists are all alike.
        """
        names = [name for image in pod.images if (name := locality_name(image)) in self._images]
        return (tuple(names), _containers(pod)) if names else None

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Sum up the listed images and scale the sum."""
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
        """Return how many of the pod's images each node lists, and their bytes."""
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
