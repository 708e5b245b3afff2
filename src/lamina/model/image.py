"""Images and their layers, with compressed and unpacked sizes and the platform."""

import msgspec

from lamina.model.digest import Digest


class Platform(msgspec.Struct, frozen=True):
    """Operating system and processor architecture of an image or a node."""

    os: str = "linux"
    architecture: str = "amd64"
    variant: str = ""


class Layer(msgspec.Struct, frozen=True):
    """One layer as listed in its manifest: compressed digest and size, and diff id and unpacked size where known."""

    digest: Digest
    size: int
    diff_id: Digest | None = None
    unpacked: int | None = None


class Image(msgspec.Struct, frozen=True):
    """
    One manifest: layers in order, bottom first.

    The same content under several names is one image; *names* are the references that led to it.
    """

    digest: Digest
    layers: tuple[Layer, ...]
    names: tuple[str, ...] = ()
    platform: Platform = Platform()

    @property
    def size(self) -> int:
        """Compressed bytes; a layer that is listed twice is counted once."""
        return sum({layer.digest: layer.size for layer in self.layers}.values())
