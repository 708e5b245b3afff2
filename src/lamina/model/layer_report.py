"""What a node's agent reports about the images on it."""

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
    """Mounted by a snapshotter that fetches content when it is read: it starts at once, and its bytes come later."""


class ActivePull(msgspec.Struct, frozen=True, gc=False):
    """An image that is being pulled, and how far that has come in compressed bytes; a total of 0: not known."""

    name: str = ""
    digest: Digest | None = None
    done: int = 0
    total: int = 0


class NodeRuntime(msgspec.Struct, frozen=True, gc=False):
    """The container runtime of a node."""

    name: str = ""
    version: str = ""


class LayerReport(msgspec.Struct, frozen=True, kw_only=True):
    """
    Everything one node holds, at one moment.

    A report replaces the one before it. *node_uid* tells a node from a later one of the same name; *sequence* grows
    with each report, so a late one is recognised and dropped.
    """

    node: str
    node_uid: str = ""
    sequence: int = 0
    observed_at: float = 0.0
    images: tuple[HeldImage, ...] = ()
    reuse: Reuse = "prefix"
    """Whether the runtime reuses any blob it knows, or only what it unpacked below."""
    renews_within: float = 0.0
    """Seconds within which another report follows, changed or not; 0: this one holds until it is replaced."""
    download_rate: float = 0.0
    """Compressed bytes per second the node was seen to download; 0: not known."""
    unpack_rate: float = 0.0
    """Unpacked bytes per second it was seen to write; 0: not known."""
    disk: int = 0
    """Bytes of the file system images are on; 0: not known."""
    disk_free: int = 0
    pulling: tuple[ActivePull, ...] = ()
    """What the runtime is pulling; shown to people. What is on its way is worked out from pods that do not run yet."""
    runtime: NodeRuntime = NodeRuntime()
    platform: Platform | None = None
    """What the runtime says it runs; None: not told."""
