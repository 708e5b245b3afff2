"""
What is watched, and which events it becomes.

Pods that have ended count nowhere, so the API server is asked to leave them out. It then reports a pod that ends as deleted,
with the pod's previous version, and how the pod ended is not known. Where plugins follow the life cycles of pods,
`pods(endings=True)` watches all of them: a pod that has ended is seen once more, with its outcome, and not held.

A pod is known by its uid: one that was deleted and made again under the same name is another pod, also when both happened
between two looks.
"""

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Raw

from lamina.clients.kube.reflector import ReflectedResource
from lamina.model.events import (
    Event,
    ImagesLearned,
    LayersReported,
    LayersWithdrawn,
    NamespaceGone,
    NamespaceSeen,
    NodeGone,
    NodeSeen,
    PodGone,
    PodSeen,
)
from lamina.model.image import Image
from lamina.model.layer_report import LayerReport
from lamina.model.node import Node
from lamina.model.pod import Pod
from lamina.wire.custom_resources.image_layers import decode_image_layers
from lamina.wire.custom_resources.node_layers import decode_node_layers
from lamina.wire.kube.codec import decode_node, decode_pod
from lamina.wire.kube.namespace import Namespace, decode_namespace

T = TypeVar("T")

LAMINA_API: Final = "/apis/lamina.dev/v1alpha1"
UNFINISHED: Final = "status.phase!=Succeeded,status.phase!=Failed"


class WatchedResource(msgspec.Struct, Generic[T], frozen=True):
    """One kind of object."""

    resource: ReflectedResource
    decode: Callable[[bytes | Raw], T]
    key: Callable[[T], str]
    seen: Callable[[T], Event]
    gone: Callable[[T], Event | None]
    required: bool = True
    """Whether nothing may be decided before all of them were seen; layers are welcome, not needed."""
    ended: Callable[[T], bool] | None = None
    """Which objects have ended and need not be held; None where none ends."""


def pods(*, endings: bool = False) -> WatchedResource[Pod]:
    """
    Return how pods are watched; with *endings*, also how they ended.

    Endings cost the reading of every pod that has ended and still exists, at the first look and at every list.
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
    # What an image consists of stays true when nobody writes it down any more.
    lambda image: None,
    required=False,
)

ALL_RESOURCES: Final[tuple[WatchedResource[Any], ...]] = (NODES, PODS, NAMESPACES, NODE_LAYERS, IMAGE_LAYERS)
