"""
Requested and free resources of nodes: the annotations that the scheduling agent `pigeon` reads.

Every pod that is bound to a node and has not ended is included, whether it runs already or not: a pod that waits for
its images also holds its resources. Only ready nodes get values. CPU is in thousandths of a core, memory and ephemeral
storage in bytes. GPUs of all vendors are added up.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from lamina.clients.kube.time_slice import TimeSlice
from lamina.model.node import Node
from lamina.model.pod import Pod
from lamina.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Amounts
from lamina.services.annotator.node_values import DesiredNumber, DesiredValues

STAMP: Final = "lamina.dev/allocation-observed-at"
GPU: Final = "gpu"
RESOURCES: Final = (CPU, MEMORY, PODS, GPU, EPHEMERAL_STORAGE)
REQUESTED: Final = "requested"
FREE: Final = "free"
KEYS: Final = tuple(f"{what}-{resource}" for what in (REQUESTED, FREE) for resource in RESOURCES)

SHARE: Final = 0.01
"""Share of a node's allocatable amount that must change before a write; one pod or one GPU is always enough."""


class AllocationValues:
    """Adds up the requests of pods."""

    remark = ""

    def __init__(self, pods: Callable[[], Iterable[Pod]], ready: Callable[[], set[str]]) -> None:
        """Add up *pods* on the nodes that are *ready*."""
        self._pods = pods
        self._ready = ready

    async def values(self, nodes: Mapping[str, Node], now: float) -> dict[str, DesiredValues]:
        """Compute the values once."""
        ready = self._ready()
        asked: dict[str, Counter[str]] = {name: Counter() for name in nodes if name in ready}
        time_slice = TimeSlice()
        for pod in list(self._pods()):
            total = asked.get(pod.node_name)
            if total is not None and not pod.finished:
                total.update(counted(pod.requests))
                total[PODS] += 1
            if time_slice.due():
                await time_slice.pause()
        return {name: DesiredValues(_numbers(nodes[name], total), now) for name, total in asked.items()}

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


def counted(amounts: Amounts) -> Counter[str]:
    """Return the annotated resources of *amounts*, with GPUs of all vendors added up."""
    found: Counter[str] = Counter()
    for name, value in amounts:
        if name in RESOURCES and name != GPU:
            found[name] += value
        elif name.endswith("/gpu"):
            found[GPU] += value
    return found


def _numbers(node: Node, asked: Counter[str]) -> dict[str, DesiredNumber]:
    able = counted(node.allocatable)
    numbers = {}
    for resource in RESOURCES:
        if resource not in able and not asked[resource]:
            continue
        step = 1.0 if resource in (PODS, GPU) else max(SHARE * able[resource], 1.0)
        numbers[f"{REQUESTED}-{resource}"] = DesiredNumber(asked[resource], step)
        numbers[f"{FREE}-{resource}"] = DesiredNumber(max(able[resource] - asked[resource], 0), step)
    return numbers
