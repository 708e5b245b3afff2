"""
images.json and layers.json of containers/storage, as far as they are needed here.

    images.json   id, names, top layer, and which documents lie in the folder that is called like the image
    layers.json   id, parent, and for each layer two digests with two sizes: as it came and as it was unpacked

A document's file has the name of the document, or ``=`` and its base64 where the name has other characters than a-z, 0-9
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
"""Names and manifests of one image that are looked at; a report has room for fewer."""


class ImageRecord(msgspec.Struct, frozen=True, rename="kebab"):
    """One image."""

    id: str
    digest: str = ""
    """What it was pulled by: the digest of its manifest, or of the index that led to it."""
    names: tuple[str, ...] = ()
    layer: str = ""
    big_data_digests: dict[str, str] = {}

    @property
    def manifests(self) -> tuple[Digest, ...]:
        """
        The digests of all manifests and indexes that are kept for it, that of the one in use first.

        One image may have come under several manifests that differ in compression only. None: it is being recorded.
        """
        kept = self.big_data_digests
        found = [kept.get(MANIFEST), *(kept[name] for name in sorted(kept) if name.startswith(f"{MANIFEST}-"))]
        return tuple(dict.fromkeys(filter(None, (known(digest or "") for digest in found))))[:NAME_LIMIT]

    @property
    def usable(self) -> bool:
        """Whether its id can be the name of a folder."""
        return 0 < len(self.id) <= _ID_LIMIT and not self.id.strip(_ID) and self.id[0] != "."


class LayerRecord(msgspec.Struct, frozen=True, rename="kebab"):
    """One layer, on top of its parent."""

    id: str
    parent: str = ""
    compressed_diff_digest: str = ""
    compressed_size: int = 0
    diff_digest: str = ""
    diff_size: int = 0
    flags: dict[str, msgspec.Raw] = {}

    @property
    def complete(self) -> bool:
        """Whether it is all there; a pull that is under way or was cut off leaves layers that are not."""
        return bytes(self.flags.get(INCOMPLETE, b"")) != b"true"

    @property
    def compressed(self) -> tuple[Digest, int] | None:
        """Digest and size as it came; None when that is not told, as for layers that were built here."""
        digest = known(self.compressed_diff_digest)
        return (digest, min(self.compressed_size, SIZE_LIMIT)) if digest and self.compressed_size >= 0 else None

    @property
    def diff_id(self) -> Digest | None:
        """Digest of the unpacked layer; None for one whose parts came by themselves and were checked by a list."""
        return known(self.diff_digest)

    @property
    def unpacked(self) -> int | None:
        """Bytes of the unpacked layer; None when they are not told."""
        told = self.diff_size > 0 or (self.diff_size == 0 and self.diff_id is not None)
        return min(self.diff_size, SIZE_LIMIT) if told else None


_IMAGES: Final = msgspec.json.Decoder(list[ImageRecord] | None)
_LAYERS: Final = msgspec.json.Decoder(list[LayerRecord] | None)


def decode_images(data: bytes) -> list[ImageRecord]:
    """Read images.json. Raises ValueError."""
    return _IMAGES.decode(data) or []


def decode_layers(data: bytes) -> list[LayerRecord]:
    """Read layers.json. Raises ValueError."""
    return _LAYERS.decode(data) or []


def document_file(name: str) -> str:
    """What the file is called that keeps the document *name* of an image."""
    return name if not name.strip(_PLAIN) else "=" + base64.b64encode(name.encode()).decode()


def known(text: str) -> Digest | None:
    """*text* as a digest, if it is one."""
    try:
        return parse_digest(text)
    except DigestError:
        return None
