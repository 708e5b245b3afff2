"""
Decoder of Kubernetes nodes.

The list of images is most of a node's JSON and similar on all nodes, so each distinct entry is decoded once.
"""

from typing import Final

import msgspec
from msgspec import Raw

from lamina.model.image import Platform
from lamina.model.node import Node, NodeImage
from lamina.model.taints import Taint
from lamina.wire.decode_cache import NULL, memoized
from lamina.wire.errors import WireError
from lamina.wire.kube.meta import ObjectMeta
from lamina.wire.kube.pod_resources import read_amounts

OS_LABEL: Final = "kubernetes.io/os"
ARCHITECTURE_LABEL: Final = "kubernetes.io/arch"


class NodeObjectSpec(msgspec.Struct, frozen=True, gc=False):
    """``spec`` of a node."""

    taints: Raw = NULL
    unschedulable: bool | None = None


class NodeInfo(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``status.nodeInfo``."""

    operating_system: str = ""
    architecture: str = ""


class NodeAddress(msgspec.Struct, frozen=True, gc=False):
    """One of ``status.addresses``."""

    address: str = ""


class NodeStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``status`` of a node."""

    allocatable: Raw = NULL
    images: list[Raw] | None = None
    addresses: list[NodeAddress] | None = None
    node_info: NodeInfo | None = None
    declared_features: Raw = NULL


class NodeObject(msgspec.Struct, frozen=True, gc=False):
    """A node."""

    kind: str | None = None
    metadata: ObjectMeta = ObjectMeta()
    spec: NodeObjectSpec | None = None
    status: NodeStatus | None = None


class NodeImageEntry(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One of ``status.images``."""

    names: tuple[str, ...] | None = None
    size_bytes: int | None = None


_IMAGE: Final = msgspec.json.Decoder(NodeImageEntry)
_TAINTS: Final = msgspec.json.Decoder(tuple[Taint, ...] | None)
_FEATURES: Final = msgspec.json.Decoder(tuple[str, ...] | None)

_NO_SPEC: Final = NodeObjectSpec()
_NO_STATUS: Final = NodeStatus()


def node_from(node: NodeObject) -> Node:
    """Return the model of a node. Raises WireError when a part of it is invalid."""
    metadata, spec, status = node.metadata, node.spec or _NO_SPEC, node.status or _NO_STATUS
    labels = metadata.labels or {}
    try:
        return Node(
            name=metadata.name,
            uid=metadata.uid,
            labels=labels,
            annotations=metadata.annotations or {},
            addresses=tuple([one.address for one in status.addresses or () if one.address]),
            taints=_taints(spec.taints),
            unschedulable=bool(spec.unschedulable),
            allocatable=_allocatable(status.allocatable),
            images=tuple([_image(entry) for entry in status.images or ()]),
            platform=_platform(status.node_info, labels),
            declared_features=_features(status.declared_features),
        )
    except (ValueError, RecursionError) as error:
        raise WireError("Node", str(error), metadata.key) from error


def _platform(info: NodeInfo | None, labels: dict[str, str]) -> Platform:
    """Return the platform that the kubelet reported; before its first report, the one in the labels."""
    usual = Platform()
    return Platform(
        (info and info.operating_system) or labels.get(OS_LABEL) or usual.os,
        (info and info.architecture) or labels.get(ARCHITECTURE_LABEL) or usual.architecture,
    )


def _read_image(text: bytes) -> NodeImage:
    entry = _IMAGE.decode(text)
    return NodeImage(entry.names or (), entry.size_bytes or 0)


def _read_taints(text: bytes) -> tuple[Taint, ...]:
    return _TAINTS.decode(text) or ()


def _read_features(text: bytes) -> tuple[str, ...]:
    return _FEATURES.decode(text) or ()


_allocatable = memoized("status.allocatable", read_amounts)
_image = memoized("status.images", _read_image)
_taints = memoized("spec.taints", _read_taints)
_features = memoized("status.declaredFeatures", _read_features)
