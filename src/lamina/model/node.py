"""Nodes as the scheduler sees them: allocatable resources, taints, and the images in their status."""

import msgspec

from lamina.model.image import Platform
from lamina.model.resources import Amounts
from lamina.model.taints import Taint


class NodeImage(msgspec.Struct, frozen=True):
    """One entry of a node's ``status.images``: the image's names, and its size as the runtime counts it."""

    names: tuple[str, ...]
    size: int


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A node of the cluster."""

    name: str
    uid: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    addresses: tuple[str, ...] = ()
    """IP addresses and host names, in no particular order."""
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    allocatable: Amounts = ()
    images: tuple[NodeImage, ...] = ()
    platform: Platform = Platform()
    declared_features: tuple[str, ...] = ()
    """Names of features that its kubelet has, as it declares them."""
