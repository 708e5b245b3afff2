"""
The content of a container runtime's image store at one moment: the raw material of a report.

A runtime knows more than a report contains: the manifest of each image, the unpacked sizes of its layers, and the
measured pull rates. The node agent's reader produces `Holdings`; its publisher writes `LayerReport`s and ImageLayers
objects from it.
"""

import msgspec

from lamina.model.digest import Digest
from lamina.model.image import Layer, Platform
from lamina.model.layer_report import ActivePull, NodeRuntime, Reuse


class StoredImage(msgspec.Struct, frozen=True, kw_only=True):
    """An image that a container can be started from without a pull."""

    digest: Digest
    """Digest of the manifest for this node's platform, never of an index."""
    names: tuple[str, ...] = ()
    """Names as the runtime spells them, including digest references: a pod may use the digest of the image's index."""
    size: int = 0
    """Compressed bytes of its layers, each counted once; if they are unknown, the size that the runtime reports."""
    lazy: bool = False
    layers: tuple[Layer, ...] = ()
    """Bottom first; empty when the runtime does not report them."""
    manifest: bytes = b""
    """The manifest as pulled, to be verified against the digest; empty when the runtime does not keep it."""
    media_type: str = ""
    platform: Platform | None = None


class Holdings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a runtime held at one moment."""

    runtime: NodeRuntime = NodeRuntime()
    reuse: Reuse = "prefix"
    platform: Platform | None = None
    images: tuple[StoredImage, ...] = ()
    """Sorted by digest."""
    pulling: tuple[ActivePull, ...] = ()
    download_rate: float = 0.0
    """Measured download rate of pulls, in compressed bytes per second; 0: not measured yet."""
    unpack_rate: float = 0.0
    """Measured write rate of layers, in unpacked bytes per second; 0: not measured yet."""
    disk: int = 0
    """Bytes of the file system that stores images; 0: unknown."""
    disk_free: int = 0
