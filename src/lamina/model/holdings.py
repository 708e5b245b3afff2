"""
What a container runtime says it holds, at one look: the raw material of a report.

A runtime knows more than a report tells: the manifest of each image, what its layers unpack to, how fast pulls were seen
to go. The agent's reader looks, its publisher writes `LayerReport`s and image descriptions from it.
"""

import msgspec

from lamina.model.digest import Digest
from lamina.model.image import Layer, Platform
from lamina.model.layer_report import ActivePull, NodeRuntime, Reuse


class StoredImage(msgspec.Struct, frozen=True, kw_only=True):
    """An image that a container can be started from without a pull."""

    digest: Digest
    """Of the manifest for this node's platform, never of an index."""
    names: tuple[str, ...] = ()
    """As the runtime spells them, also those with a digest: a pod may name an image by that of its index."""
    size: int = 0
    """Compressed bytes of its layers, each counted once; where the runtime does not tell, what it calls the size."""
    lazy: bool = False
    layers: tuple[Layer, ...] = ()
    """Bottom first; empty when the runtime tells nothing of them."""
    manifest: bytes = b""
    """As it was pulled, so that anybody can check it against the digest; empty when the runtime does not keep it."""
    media_type: str = ""
    platform: Platform | None = None


class Holdings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a runtime held at one moment."""

    runtime: NodeRuntime = NodeRuntime()
    reuse: Reuse = "prefix"
    platform: Platform | None = None
    images: tuple[StoredImage, ...] = ()
    """In the order of their digests."""
    pulling: tuple[ActivePull, ...] = ()
    download_rate: float = 0.0
    """Compressed bytes per second pulls were seen to download; 0: none was seen yet."""
    unpack_rate: float = 0.0
    """Unpacked bytes per second layers were seen to be written with; 0: none was seen yet."""
    disk: int = 0
    """Bytes of the file system images are on; 0: not known."""
    disk_free: int = 0
