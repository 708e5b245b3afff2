"""The cluster as the loop knows it: nodes and pods for calls of extenders, claims and volumes for binding. Read only."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from lamina.model.node import Node
from lamina.model.pod import Pod
from lamina.model.volumes import PersistentVolume, PersistentVolumeClaim
from lamina.scheduling.loop.loop import Loop


class KnownCluster(Protocol):
    """The nodes and the placed pods of a cluster."""

    def nodes(self) -> Mapping[str, Node]:
        """Return all nodes by name."""

    def pods_on(self, node: str) -> Iterable[Pod]:
        """Return the pods on a node, also those that are about to be bound to it."""


class LoopCluster:
    """The cluster of a loop."""

    def __init__(self, loop: Loop) -> None:
        """Read the loop's cluster state."""
        self._cluster = loop.cluster

    def nodes(self) -> dict[str, Node]:
        """Return all nodes by name."""
        return {node.name: node for node in self._cluster.columns.nodes if node is not None}

    def pods_on(self, node: str) -> tuple[Pod, ...]:
        """Return the pods on a node, also those that are about to be bound to it."""
        return self._cluster.cache.on(node)


class LoopVolumes:
    """Claims and volumes as the loop knows them."""

    def __init__(self, loop: Loop) -> None:
        """Read the loop's cluster state."""
        self._objects = loop.cluster.objects

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        """Return a claim."""
        return self._objects.get(PersistentVolumeClaim, namespace, name)

    def volume(self, name: str) -> PersistentVolume | None:
        """Return a volume."""
        return self._objects.get(PersistentVolume, "", name)
