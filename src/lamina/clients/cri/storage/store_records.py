"""
Decoders for images.json and layers.json of containers/storage.

    images.json   id, names, top layer, and the documents in the image's folder
    layers.json   id, parent, and digest and size of each layer, compressed and unpacked

A document's file has the document's name, or ``=`` and the name in base64 if it contains characters other than a-z, 0-9
and dots.
"""

import base64
import string
from typing import Final

import msgspec

from lamina.model.digest import Digest, DigestError, parse_digest
from lamina.wire.oci.manifest import SIZE_LIMIT

MANIFEST: Final = "manifest"
INCOMPLETE: Final = "incomplete"
_PLAIN: Final = string.ascii_lowercase + string.digits + "."
_ID: Final = string.ascii_letters + string.digits + "_.-"
_ID_LIMIT: Final = 128
NAME_LIMIT: Final = 64
"""Names and manifests of one image that are read; a report holds fewer."""


class ImageRecord(msgspec.Struct, frozen=True, rename="kebab"):
    """One entry of images.json."""

    id: str
    digest: str = ""
    """The digest it was pulled by: of its manifest, or of an index."""
    names: tuple[str, ...] = ()
    layer: str = ""
    big_data_digests: dict[str, str] = {}

    @property
    def manifests(self) -> tuple[Digest, ...]:
        """
        Digests of all stored manifests and indexes, the one in use first.

        An image may have several manifests that differ only in compression. Empty while the image is being recorded.
        """
        kept = self.big_data_digests
        found = [kept.get(MANIFEST), *(kept[name] for name in sorted(kept) if name.startswith(f"{MANIFEST}-"))]
        return tuple(dict.fromkeys(filter(None, (known(digest or "") for digest in found))))[:NAME_LIMIT]

    @property
    def usable(self) -> bool:
        """Whether its id is safe as a folder name."""
        return 0 < len(self.id) <= _ID_LIMIT and not self.id.strip(_ID) and self.id[0] != "."


class LayerRecord(msgspec.Struct, frozen=True, rename="kebab"):
    """One entry of layers.json."""

    id: str
    parent: str = ""
    compressed_diff_digest: str = ""
    compressed_size: int = 0
    diff_digest: str = ""
    diff_size: int = 0
    flags: dict[str, msgspec.Raw] = {}

    @property
    def complete(self) -> bool:
        """Whether the layer is complete; an active or aborted pull leaves incomplete ones."""
        return bytes(self.flags.get(INCOMPLETE, b"")) != b"true"

    @property
    def compressed(self) -> tuple[Digest, int] | None:
        """Compressed digest and size; None if unknown, as for layers built on this node."""
        digest = known(self.compressed_diff_digest)
        return (digest, min(self.compressed_size, SIZE_LIMIT)) if digest and self.compressed_size >= 0 else None

    @property
    def diff_id(self) -> Digest | None:
        """Digest of the unpacked layer; None for partially pulled layers, which are verified by a table of contents."""
        return known(self.diff_digest)

    @property
    def unpacked(self) -> int | None:
        """Bytes of the unpacked layer; None if unknown."""
        is_known = self.diff_size > 0 or (self.diff_size == 0 and self.diff_id is not None)
        return min(self.diff_size, SIZE_LIMIT) if is_known else None


_IMAGES: Final = msgspec.json.Decoder(list[ImageRecord] | None)
_LAYERS: Final = msgspec.json.Decoder(list[LayerRecord] | None)


def decode_images(data: bytes) -> list[ImageRecord]:
    """Decode images.json. Raises ValueError."""
    return _IMAGES.decode(data) or []


def decode_layers(data: bytes) -> list[LayerRecord]:
    """Decode layers.json. Raises ValueError."""
    return _LAYERS.decode(data) or []


def document_file(name: str) -> str:
    """Return the file name of an image's document *name*."""
    return name if not name.strip(_PLAIN) else "=" + base64.b64encode(name.encode()).decode()


def known(text: str) -> Digest | None:
    """Return *text* as a digest; None if it is not one."""
    try:
        return parse_digest(text)
    except DigestError:
        return None
