"""
Objects that decisions depend on besides pods, nodes and namespaces: budgets, volumes, controllers, gangs, queues.

Each class is named like its Kubernetes kind. An object is identified by kind, namespace and name.
"""

import msgspec

from lamina.model.disruption_budget import PodDisruptionBudget
from lamina.model.pod_groups import PodGroup, Queue, Workload
from lamina.model.selecting_objects import ReplicaSet, ReplicationController, Service, StatefulSet
from lamina.model.volumes import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)

ClusterObject = (
    PodDisruptionBudget
    | Service
    | ReplicationController
    | ReplicaSet
    | StatefulSet
    | PersistentVolumeClaim
    | PersistentVolume
    | StorageClass
    | CSINode
    | CSIDriver
    | CSIStorageCapacity
    | VolumeAttachment
    | PodGroup
    | Workload
    | Queue
)
"""One of these objects. Recordings name the kind in the field ``kind``."""


class ObjectKey(msgspec.Struct, frozen=True, order=True, gc=False):
    """Identifies an object; *namespace* is empty for cluster-scoped kinds."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """Return ``Kind namespace/name``."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


def key_of(found: ClusterObject) -> ObjectKey:
    """Return the key of an object."""
    return ObjectKey(type(found).__name__, found.namespace, found.name)
