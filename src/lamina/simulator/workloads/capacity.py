"""
Checks whether nodes have room for pods: resources, and disk space for images.

A pod whose image is larger than a disk would be pulled, rejected and pulled again without end, so it is reported before
the run. Images that only together exceed a disk are not checked: the node's image garbage collection handles them.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Final

from lamina.model import quantity, resources
from lamina.model.errors import Mistake
from lamina.model.image import Image
from lamina.model.plain import shown
from lamina.model.pod import Pod
from lamina.model.resources import CPU, MEMORY, PODS, Amounts
from lamina.model.taints import NO_EXECUTE, NO_SCHEDULE, Taint, untolerated
from lamina.simulator.cluster import VirtualNodeSpec
from lamina.simulator.pulls.runtime_image import runtime_image_of
from lamina.simulator.pulls.runtime_spec import DiskSpec, RuntimeSpec
from lamina.simulator.workloads.scenario_files import ScenarioEntry

OWN_FIELDS: Final = (CPU, MEMORY, PODS)
"""Resources that have their own field in an entry; all others stand under ``resources``."""


def misplaced_resources(entry: ScenarioEntry, names: Iterable[str]) -> Iterator[Mistake]:
    """Yield a mistake for each of the *names* under ``resources`` that has its own field."""
    for name in names:
        if name in OWN_FIELDS:
            yield entry.mistake(f"{name} is a field of its own; move it out of resources", "resources", name)


class NodeCapacityCheck:
    """Checks whether any node of a scenario, when empty, has the resources that a pod requests."""

    def __init__(self, nodes: Iterable[VirtualNodeSpec]) -> None:
        """Group *nodes* by their allocatable resources."""
        # Many nodes are equal; one of each kind is enough.
        self._kinds: dict[Amounts, str] = {}
        self._largest: dict[str, tuple[int, str]] = {}
        for node in nodes:
            if node.allocatable not in self._kinds:
                self._kinds[node.allocatable] = node.name
                for name, amount in node.allocatable:
                    if amount > self._largest.get(name, (0, ""))[0]:
                        self._largest[name] = (amount, node.name)

    def missing_resources(self, asked: Amounts) -> Iterator[tuple[str, str]]:
        """Yield resource and message for each amount that no node has; an empty resource means the combination."""
        alone = True
        for name, amount in asked:
            most, node = self._largest.get(name, (0, ""))
            if amount > most:
                alone = False
                has = f"the largest node, {node}, has {format_amount(name, most)}" if node else "no node has any"
                yield name, f"the pod asks for {format_amount(name, amount)} {name}, but {has}"
        needed = resources.add(asked, ((PODS, 1),))
        if alone and not any(_covers(dict(kind), needed) for kind in self._kinds):
            mix = " and ".join(f"{name} {format_amount(name, amount)}" for name, amount in needed if amount)
            yield "", f"the pod fits on no node: none has {mix} together"


def _covers(has: dict[str, int], needed: Amounts) -> bool:
    return all(amount <= has.get(name, 0) for name, amount in needed)


def format_amount(resource: str, amount: int) -> str:
    """Return an amount in Kubernetes notation."""
    if resource == CPU:
        return quantity.format_milli(amount)
    return quantity.format_bytes(amount) if resource == MEMORY else str(amount)


class DiskCapacityCheck:
    """Checks whether the disks of a scenario, one of each kind, have room for an image."""

    def __init__(self, nodes: Iterable[VirtualNodeSpec]) -> None:
        """Group *nodes* that have a disk by disk, runtime, taints and resources."""
        kinds: dict[tuple[DiskSpec, RuntimeSpec, tuple[Taint, ...], Amounts], VirtualNodeSpec] = {}
        for node in nodes:
            if node.disk is not None:
                kinds.setdefault((node.disk, node.runtime, node.taints, node.allocatable), node)
        # The smallest first, so that the message names the worst case.
        self._kinds = sorted(kinds.values(), key=lambda node: node.disk.capacity if node.disk is not None else math.inf)

    def too_small(self, pod: Pod, image: Image) -> str:
        """Return a message about the smallest disk that is too small for a pod's image; empty if there is none."""
        for node in self._kinds:
            if self._can_run(pod, node) and (problem := _too_small_message(image, node)):
                return problem
        return ""

    def _can_run(self, pod: Pod, node: VirtualNodeSpec) -> bool:
        has = dict(node.allocatable)
        fits = all(amount <= has.get(name, 0) for name, amount in pod.requests)
        return fits and untolerated(node.taints, pod.tolerations, (NO_SCHEDULE, NO_EXECUTE)) is None


def bytes_needed(image: Image, runtime: RuntimeSpec) -> int:
    """Return the largest number of bytes that a pull of an image occupies: packed and unpacked copy together."""
    recipe = runtime_image_of(image, runtime.ratio if runtime.lazy is None else None)
    return recipe.size + sum(recipe.unpacked)


def _too_small_message(image: Image, node: VirtualNodeSpec) -> str:
    bytes_ = bytes_needed(image, node.runtime)
    if node.disk is None or bytes_ <= node.disk.capacity:
        return ""
    name = shown(image.names[0]) if image.names else image.digest
    needs, has = quantity.human_bytes(bytes_), quantity.human_bytes(node.disk.capacity)
    return f"the image {name} needs {needs} packed and unpacked, the disk of node {node.name} has {has}"
