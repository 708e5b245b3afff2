"""Decoder of objects of any kind that decisions depend on besides pods, nodes and namespaces."""

from collections.abc import Callable, Mapping
from typing import Final

from lamina.model.cluster_objects import ClusterObject
from lamina.wire.errors import WireError
from lamina.wire.kube import pod_groups, selecting_objects, storage_classes, storage_objects
from lamina.wire.kube.disruption_budget import decode_disruption_budget

DECODERS: Final[Mapping[str, Callable[[bytes], ClusterObject]]] = {
    "PodDisruptionBudget": decode_disruption_budget,
    "Service": selecting_objects.decode_service,
    "ReplicationController": selecting_objects.decode_replication_controller,
    "ReplicaSet": selecting_objects.decode_replica_set,
    "StatefulSet": selecting_objects.decode_stateful_set,
    "PersistentVolumeClaim": storage_objects.decode_claim,
    "PersistentVolume": storage_objects.decode_volume,
    "StorageClass": storage_classes.decode_storage_class,
    "CSINode": storage_classes.decode_csi_node,
    "CSIDriver": storage_classes.decode_csi_driver,
    "CSIStorageCapacity": storage_classes.decode_storage_capacity,
    "VolumeAttachment": storage_classes.decode_volume_attachment,
    "PodGroup": pod_groups.decode_pod_group,
    "Workload": pod_groups.decode_workload,
    "Queue": pod_groups.decode_queue,
}
"""Decoder of each kind."""


def decode_cluster_object(kind: str, data: bytes) -> ClusterObject:
    """Return a decoded object of a *kind*. Raises WireError."""
    decoder = DECODERS.get(kind)
    if decoder is None:
        raise WireError(kind, f"this kind is not read; use {', '.join(DECODERS)}")
    return decoder(data)
