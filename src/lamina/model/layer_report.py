"""Report of a node agent about the images on its node."""

from typing import Literal

import msgspec

from lamina.model.digest import Digest
from lamina.model.image import Platform

Reuse = Literal["prefix", "set"]


class HeldImage(msgspec.Struct, frozen=True, gc=False):
    """An image that a container can be started from without a pull."""

    digest: Digest
    size: int = 0
    names: tuple[str, ...] = ()
    lazy: bool = False
    """Whether a lazy snapshotter mounts it: containers start at once, and content is fetched when it is read."""


class ActivePull(msgspec.Struct, frozen=True, gc=False):
    """An image that is being pulled, with progress in compressed bytes; a total of 0 means unknown."""

    name: str = ""
    digest: Digest | None = None
    done: int = 0
    total: int = 0


class NodeRuntime(msgspec.Struct, frozen=True, gc=False):
    """Name and version of a node's container runtime."""

    name: str = ""
    version: str = ""


class LayerReport(msgspec.Struct, frozen=True, kw_only=True):
    """
    Everything that one node holds at one moment.

    A report replaces the node's previous report. *node_uid* distinguishes nodes that had the same name. *sequence*
    grows with each report, so that late reports are recognised and dropped.
    """

    node: str
    node_uid: str = ""
    sequence: int = 0
    observed_at: float = 0.0
    images: tuple[HeldImage, ...] = ()
    reuse: Reuse = "prefix"
    """Whether the runtime reuses any blob it has (set), or only layers on top of the same layers (prefix)."""
    renews_within: float = 0.0
    """Seconds within which another report follows, changed or not; 0: this report is valid until it is replaced."""
    download_rate: float = 0.0
    """Measured download rate in compressed bytes per second; 0: unknown."""
    unpack_rate: float = 0.0
    """Measured write rate in unpacked bytes per second; 0: unknown."""
    disk: int = 0
    """Bytes of the file system that stores images; 0: unknown."""
    disk_free: int = 0
    pulling: tuple[ActivePull, ...] = ()
    """Pulls in progress, for display only. Lamina derives arriving images from pods that do not run yet."""
    runtime: NodeRuntime = NodeRuntime()
    platform: Platform | None = None
    """The platform that the runtime reports, or None."""
