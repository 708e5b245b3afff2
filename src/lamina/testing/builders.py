"""Builders of domain objects for tests, with defaults for everything that a test does not need."""

import hashlib
from collections.abc import Mapping, Sequence

from lamina.model.digest import Digest
from lamina.model.image import Image, Layer, Platform
from lamina.model.layer_report import HeldImage, LayerReport
from lamina.model.node import Node, NodeImage
from lamina.model.pod import Container, Owner, Pod, PodUid, SpreadConstraint, total_limits, total_requests
from lamina.model.resources import amounts
from lamina.model.taints import Taint, Toleration

MB = 1_000_000


def a_digest(name: str) -> Digest:
    """Return a digest derived from *name*."""
    return Digest("sha256:" + hashlib.sha256(name.encode()).hexdigest())


def a_node(
    name: str = "n1",
    cpu: str | int = 4,
    memory: str = "16Gi",
    pods: int = 110,
    *,
    more: Mapping[str, str | int] | None = None,
    taints: Sequence[Taint] = (),
    images: Mapping[str, int] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    addresses: Sequence[str] = (),
    unschedulable: bool = False,
    uid: str = "",
) -> Node:
    """Build a node; *images* maps names in its status to sizes, *more* adds resources."""
    return Node(
        name=name,
        uid=uid,
        labels=dict(labels or {}),
        annotations=dict(annotations or {}),
        addresses=tuple(addresses),
        taints=tuple(taints),
        unschedulable=unschedulable,
        allocatable=amounts({"cpu": cpu, "memory": memory, "pods": pods, **(more or {})}),
        images=tuple(NodeImage((image,), size) for image, size in (images or {}).items()),
    )


def a_pod(
    name: str = "p1",
    cpu: str | int | None = None,
    memory: str | None = None,
    *,
    image: str = "app:1",
    images: Sequence[str] = (),
    init: Sequence[str] = (),
    more: Mapping[str, str | int] | None = None,
    limits: Mapping[str, str | int] | None = None,
    priority: int = 0,
    tolerations: Sequence[Toleration] = (),
    on: str = "",
    scheduler: str = "default-scheduler",
    owner: Owner | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    namespace: str = "default",
    spread: Sequence[SpreadConstraint] = (),
    started: bool = False,
    started_at: float = 0.0,
    nominated: str = "",
    preempts: bool = True,
    deleting: bool = False,
    preempted: bool = False,
) -> Pod:
    """Build a pod whose uid is its name; the first container has the requests and limits."""
    asked = {key: value for key, value in {"cpu": cpu, "memory": memory, **(more or {})}.items() if value is not None}
    names = tuple(images) or (image,)
    containers = tuple(
        Container(one, amounts(asked), "c0", limits=amounts(limits or {}))
        if index == 0
        else Container(one, name=f"c{index}")
        for index, one in enumerate(names)
    )
    init_containers = tuple(Container(one, name=f"i{index}") for index, one in enumerate(init))
    requests, ranked = total_requests(containers, init_containers)
    return Pod(
        uid=PodUid(name),
        name=name,
        containers=containers,
        init_containers=init_containers,
        requests=requests,
        scoring_requests=ranked,
        limits=total_limits(containers, init_containers) if limits else (),
        priority=priority,
        tolerations=tuple(tolerations),
        node_name=on,
        nominated_node=nominated,
        scheduler_name=scheduler,
        owner=owner,
        labels=dict(labels or {}),
        annotations=dict(annotations or {}),
        namespace=namespace,
        spread=tuple(spread),
        started=started,
        started_at=started_at,
        preempts=preempts,
        deleting=deleting,
        preempted=preempted,
    )


def an_image(name: str, layers: Mapping[str, int], platform: Platform | None = None) -> Image:
    """Build an image from layer names and sizes; equal layer names give equal layers in all images."""
    return Image(
        digest=a_digest(f"manifest of {name}"),
        layers=tuple(Layer(a_digest(layer), size) for layer, size in layers.items()),
        names=(name,),
        platform=platform or Platform(),
    )


def held(node: str, *images: Image, sequence: int = 1, node_uid: str = "") -> LayerReport:
    """Build the report of a node that holds these images."""
    return LayerReport(
        node=node,
        node_uid=node_uid,
        sequence=sequence,
        images=tuple(HeldImage(image.digest, image.size, image.names) for image in images),
    )
