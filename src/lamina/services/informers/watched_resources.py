"""
Watched resources, and the events that their objects become.

Ended pods use no resources, so the API server is asked to leave them out. It then reports a pod that ends as deleted,
with the pod's previous version, so the outcome is unknown. `pods(endings=True)` watches all pods, for plugins that
follow pod life cycles: an ended pod is reported once more, with its outcome, and is not kept.

A pod is identified by its uid: a pod that is deleted and recreated under the same name is another pod, also when both
happen between two lists.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Raw

from lamina.clients.kube.reflector import ReflectedResource
from lamina.model.cluster_objects import ClusterObject, key_of
from lamina.model.disruption_budget import PodDisruptionBudget
from lamina.model.events import (
    Event,
    ImagesLearned,
    LayersReported,
    LayersWithdrawn,
    NamespaceGone,
    NamespaceSeen,
    NodeGone,
    NodeSeen,
    ObjectGone,
    ObjectSeen,
    PodGone,
    PodSeen,
)
from lamina.model.image import Image
from lamina.model.layer_report import LayerReport
from lamina.model.node import Node
from lamina.model.pod import Pod
from lamina.model.pod_controllers import CronJob, Deployment, Job
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
from lamina.wire.custom_resources.image_layers import decode_image_layers
from lamina.wire.custom_resources.node_layers import decode_node_layers
from lamina.wire.kube.codec import decode_node, decode_pod
from lamina.wire.kube.disruption_budget import decode_disruption_budget
from lamina.wire.kube.namespace import Namespace, decode_namespace
from lamina.wire.kube.pod_controllers import decode_cron_job, decode_deployment, decode_job
from lamina.wire.kube.pod_groups import decode_pod_group, decode_queue, decode_workload
from lamina.wire.kube.selecting_objects import (
    decode_replica_set,
    decode_replication_controller,
    decode_service,
    decode_stateful_set,
)
from lamina.wire.kube.storage_classes import (
    decode_csi_driver,
    decode_csi_node,
    decode_storage_capacity,
    decode_storage_class,
    decode_volume_attachment,
)
from lamina.wire.kube.storage_objects import decode_claim, decode_volume

T = TypeVar("T")

LAMINA_API: Final = "/apis/lamina.dev/v1alpha1"
STORAGE_API: Final = "/apis/storage.k8s.io/v1"
UNFINISHED: Final = "status.phase!=Succeeded,status.phase!=Failed"


class WatchedResource(msgspec.Struct, Generic[T], frozen=True):
    """One watched resource, and how its objects become events."""

    resource: ReflectedResource
    decode: Callable[[bytes | Raw], T]
    key: Callable[[T], str]
    seen: Callable[[T], Event]
    gone: Callable[[T], Event | None]
    required: bool = True
    """Whether decisions wait until the resource is synced; layer data is optional."""
    ended: Callable[[T], bool] | None = None
    """Returns whether an object has ended and need not be kept; None if objects of this resource never end."""


def pods(*, endings: bool = False) -> WatchedResource[Pod]:
    """
    Return how pods are watched; with *endings*, also their outcome.

    With *endings*, every list reads all ended pods that still exist.
    """
    return WatchedResource[Pod](
        ReflectedResource(path="/api/v1/pods", kind="Pod", field_selector="" if endings else UNFINISHED),
        decode_pod,
        lambda pod: pod.uid,
        PodSeen,
        lambda pod: PodGone(pod.uid),
        ended=(lambda pod: pod.finished) if endings else None,
    )


PODS: Final = pods()
NODES: Final = WatchedResource[Node](
    ReflectedResource(path="/api/v1/nodes", kind="Node"),
    decode_node,
    lambda node: node.name,
    NodeSeen,
    lambda node: NodeGone(node.name),
)
NAMESPACES: Final = WatchedResource[Namespace](
    ReflectedResource(path="/api/v1/namespaces", kind="Namespace"),
    decode_namespace,
    lambda namespace: namespace.name,
    lambda namespace: NamespaceSeen(namespace.name, namespace.annotations, namespace.labels),
    lambda namespace: NamespaceGone(namespace.name),
)
NODE_LAYERS: Final = WatchedResource[LayerReport](
    ReflectedResource(path=f"{LAMINA_API}/nodelayers", kind="NodeLayers"),
    decode_node_layers,
    lambda report: report.node,
    LayersReported,
    lambda report: LayersWithdrawn(report.node),
    required=False,
)
IMAGE_LAYERS: Final = WatchedResource[Image](
    ReflectedResource(path=f"{LAMINA_API}/imagelayers", kind="ImageLayers"),
    decode_image_layers,
    lambda image: image.digest,
    lambda image: ImagesLearned((image,)),
    # The layers of an image stay valid after its ImageLayers object is deleted.
    lambda image: None,
    required=False,
)

ALL_RESOURCES: Final[tuple[WatchedResource[Any], ...]] = (NODES, PODS, NAMESPACES, NODE_LAYERS, IMAGE_LAYERS)


def _object(
    path: str,
    kind: type[ClusterObject],
    decode: Callable[[bytes | Raw], Any],
    group: str = "",
    *,
    optional: bool = False,
) -> WatchedResource[Any]:
    """
    Return how a kind is watched; *group* is the API group of a kind that need not be installed.

    Without an *optional* kind, decisions are worse but right: its role need not be applied.
    """
    return WatchedResource[Any](
        ReflectedResource(path=path, kind=f"{kind.__name__}.{group}" if group else kind.__name__),
        decode,
        lambda found: str(key_of(found)),
        ObjectSeen,
        lambda found: ObjectGone(key_of(found)),
        required=not group and not optional,
    )


OBJECTS: Final[Mapping[type[ClusterObject], WatchedResource[Any]]] = {
    PodDisruptionBudget: _object("/apis/policy/v1/poddisruptionbudgets", PodDisruptionBudget, decode_disruption_budget),
    Service: _object("/api/v1/services", Service, decode_service),
    ReplicationController: _object(
        "/api/v1/replicationcontrollers", ReplicationController, decode_replication_controller
    ),
    ReplicaSet: _object("/apis/apps/v1/replicasets", ReplicaSet, decode_replica_set),
    StatefulSet: _object("/apis/apps/v1/statefulsets", StatefulSet, decode_stateful_set),
    Deployment: _object("/apis/apps/v1/deployments", Deployment, decode_deployment, optional=True),
    Job: _object("/apis/batch/v1/jobs", Job, decode_job, optional=True),
    CronJob: _object("/apis/batch/v1/cronjobs", CronJob, decode_cron_job, optional=True),
    PersistentVolumeClaim: _object("/api/v1/persistentvolumeclaims", PersistentVolumeClaim, decode_claim),
    PersistentVolume: _object("/api/v1/persistentvolumes", PersistentVolume, decode_volume),
    StorageClass: _object(f"{STORAGE_API}/storageclasses", StorageClass, decode_storage_class),
    CSINode: _object(f"{STORAGE_API}/csinodes", CSINode, decode_csi_node),
    CSIDriver: _object(f"{STORAGE_API}/csidrivers", CSIDriver, decode_csi_driver),
    CSIStorageCapacity: _object(f"{STORAGE_API}/csistoragecapacities", CSIStorageCapacity, decode_storage_capacity),
    VolumeAttachment: _object(f"{STORAGE_API}/volumeattachments", VolumeAttachment, decode_volume_attachment),
}
"""How objects of each class are watched; a service watches those that its plugins read."""

_GANGS: Final = (
    ("scheduling.x-k8s.io", "v1alpha1", "podgroups", PodGroup, decode_pod_group),
    ("scheduling.volcano.sh", "v1beta1", "podgroups", PodGroup, decode_pod_group),
    ("scheduling.sigs.dev", "v1alpha2", "podgroups", PodGroup, decode_pod_group),
    ("scheduling.incubator.k8s.io", "v1alpha1", "podgroups", PodGroup, decode_pod_group),
    ("scheduling.k8s.io", "v1alpha2", "podgroups", PodGroup, decode_pod_group),
    ("scheduling.k8s.io", "v1alpha1", "workloads", Workload, decode_workload),
    ("scheduling.volcano.sh", "v1beta1", "queues", Queue, decode_queue),
    ("scheduling.sigs.dev", "v1alpha2", "queues", Queue, decode_queue),
    ("scheduling.incubator.k8s.io", "v1alpha1", "queues", Queue, decode_queue),
)
GANG_OBJECTS: Final = tuple(
    (kind, _object(f"/apis/{group}/{version}/{plural}", kind, decode, group))
    for group, version, plural, kind, decode in _GANGS
)
"""Gangs and queues in each dialect. Most clusters have none or one of them: a resource that is missing is not an error."""


def object_resources(classes: Iterable[type[ClusterObject]]) -> list[WatchedResource[Any]]:
    """Return how objects of these classes are watched, in the order of `OBJECTS`."""
    wanted = frozenset(classes)
    return [resource for kind, resource in (*OBJECTS.items(), *GANG_OBJECTS) if kind in wanted]
