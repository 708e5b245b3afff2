"""Images and their layers: what a download costs, what unpacking costs, and for which platform."""

import msgspec

from lamina.model.digest import Digest


class Platform(msgspec.Struct, frozen=True):
    """Operating system and processor an image was built for, or a node has."""

    os: str = "linux"
    architecture: str = "amd64"
    variant: str = ""


class Layer(msgspec.Struct, frozen=True):
    """One layer as its manifest lists it: compressed digest and size, and its unpacked twin where known."""

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
        """Compressed bytes, a layer that is listed twice counted once."""
        return sum({layer.digest: layer.size for layer in self.layers}.values())
