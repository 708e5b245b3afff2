"""
Whether the disks of nodes have room for the images that pods need.

A pod whose image does not fit on a disk at all is pulled for, refused and pulled for again, for ever. That is told
before the run. Images that do not fit beside each other are not looked at: that is what collectors are for.
"""

import math
from collections.abc import Iterable

from lamina.model import quantity
from lamina.model.image import Image
from lamina.model.plain import shown
from lamina.model.pod import Pod
from lamina.model.resources import Amounts
from lamina.model.taints import NO_EXECUTE, NO_SCHEDULE, Taint, untolerated
from lamina.simulator.cluster import VirtualNodeSpec
from lamina.simulator.pulls.runtime_image import runtime_image_of
from lamina.simulator.pulls.runtime_spec import DiskSpec, RuntimeSpec


class DiskCapacityCheck:
    """The disks of a scenario, one of each kind."""

    def __init__(self, nodes: Iterable[VirtualNodeSpec]) -> None:
        """Look at these nodes."""
        kinds: dict[tuple[DiskSpec, RuntimeSpec, tuple[Taint, ...], Amounts], VirtualNodeSpec] = {}
        for node in nodes:
            if node.disk is not None:
                kinds.setdefault((node.disk, node.runtime, node.taints, node.allocatable), node)
        # The smallest first, so that the worst case is what is told.
        self._kinds = sorted(kinds.values(), key=lambda node: node.disk.capacity if node.disk is not None else math.inf)

    def too_small(self, pod: Pod, image: Image) -> str:
        """Say which disk a pod may come to is too small for its image; empty when none is."""
        for node in self._kinds:
            if self._may_come(pod, node) and (told := _too_small_message(image, node)):
                return told
        return ""

    def _may_come(self, pod: Pod, node: VirtualNodeSpec) -> bool:
        has = dict(node.allocatable)
        fits = all(amount <= has.get(name, 0) for name, amount in pod.requests)
        return fits and untolerated(node.taints, pod.tolerations, (NO_SCHEDULE, NO_EXECUTE)) is None


def needed(image: Image, runtime: RuntimeSpec) -> int:
    """Return the bytes that pulling an image takes at its most: until it is unpacked, it is there twice."""
    recipe = runtime_image_of(image, runtime.ratio if runtime.lazy is None else None)
    return recipe.size + sum(recipe.unpacked)


def _too_small_message(image: Image, node: VirtualNodeSpec) -> str:
    bytes_ = needed(image, node.runtime)
    if node.disk is None or bytes_ <= node.disk.capacity:
        return ""
    name = shown(image.names[0]) if image.names else image.digest
    needs, has = quantity.human_bytes(bytes_), quantity.human_bytes(node.disk.capacity)
    return f"the image {name} needs {needs} packed and unpacked, the disk of node {node.name} has {has}"
