"""
Reader of images in an OCI image layout: from index to index down to the manifests, one image per platform.

Entries of an index that are not images (attestations, signatures, charts) are skipped and counted. So are platforms
that are listed and missing: tools that save one platform leave the others in the index. The platform and the diff ids
come from the configuration, if it is there.
"""

from typing import Final

import msgspec

from lamina.model.digest import Digest, parse_digest
from lamina.model.errors import InputError, Mistake
from lamina.model.image import Image, Layer, Platform
from lamina.model.plain import plural
from lamina.model.reference import parse_reference
from lamina.wire.errors import WireError
from lamina.wire.image_merge import written
from lamina.wire.oci.blob_sources import INDEX, BlobSource, LayoutArchive, LayoutFolder, ManifestFiles
from lamina.wire.oci.documents import (
    ImageConfig,
    IndexEntry,
    IndexPlatform,
    OciDocument,
    decode_config,
    decode_document,
    is_attestation,
    is_image,
    names_in,
)
from lamina.wire.oci.manifest import decode_manifest

DEEPEST: Final = 8
"""Largest nesting of indexes."""
MOST_MANIFESTS: Final = 20_000


class LayoutContents(msgspec.Struct):
    """The images of a source, and its mistakes."""

    images: list[Image] = []
    mistakes: list[Mistake] = []
    other: int = 0
    """Number of entries that are not images."""
    absent: int = 0
    """Number of platforms that are listed and missing."""


class LayoutReader:
    """Walks one source; *name* and *platform* are for images without one."""

    def __init__(self, blobs: BlobSource, name: str = "", platform: Platform | None = None) -> None:
        """Start with nothing found."""
        self.found = LayoutContents()
        self._blobs = blobs
        self._name = (name,) if name else ()
        self._platform = platform
        self._given: dict[Platform, Digest] = {}
        """Platform → image that got the name passed by the caller."""
        self._seen = 0

    def index(self, data: bytes) -> None:
        """Read everything that an index lists."""
        try:
            entries = decode_document(data, INDEX).manifests or ()
        except WireError as error:
            self._wrong(error)
            return
        for entry in entries:
            self.entry(entry, names_in(entry.annotations), DEEPEST)

    def entry(self, entry: IndexEntry, names: tuple[str, ...], depth: int) -> None:
        """Read everything that one entry of an index refers to."""
        try:
            self._entry(entry, names, depth)
        except (WireError, ValueError) as error:
            self._wrong(error)

    def _entry(self, entry: IndexEntry, names: tuple[str, ...], depth: int) -> None:
        self._seen += 1
        if self._seen > MOST_MANIFESTS:
            raise InputError.one(self._blobs.source, f"lists more than {MOST_MANIFESTS} manifests; split it")
        digest = parse_digest(entry.digest)
        if is_attestation(entry):
            self.found.other += 1
            return
        data = self._blobs.get(digest)
        if data is None:
            self.found.absent += 1
            return
        document = decode_document(data, digest)
        if document.is_index:
            if depth == 0:
                raise WireError("image index", f"indexes are nested deeper than {DEEPEST} levels", digest)
            for inner in document.manifests or ():
                self.entry(inner, names_in(inner.annotations) or names, depth - 1)
        elif is_image(document):
            self.found.images.append(self._image(data, digest, document, entry.platform, names))
        else:
            self.found.other += 1

    def _image(
        self, data: bytes, digest: Digest, document: OciDocument, listed: IndexPlatform | None, names: tuple[str, ...]
    ) -> Image:
        config = self._config(document)
        said = next((one for one in (listed, config) if one is not None and one.os and one.architecture), None)
        platform = Platform(said.os, said.architecture, said.variant) if said is not None else self._platform
        image = decode_manifest(data, digest, names=names or self._name, platform=platform)
        if not names:
            self._give_name(image)
        if not image.layers:
            raise WireError("image", "it has no layers, so it is never pulled; omit it", digest)
        if config is None or not config.rootfs.diff_ids:
            return image
        return msgspec.structs.replace(image, layers=_unpacked(image, config.rootfs.diff_ids))

    def _give_name(self, image: Image) -> None:
        if not image.names:
            raise WireError("image", "it has no name; pass one with --name", image.digest)
        if self._given.setdefault(image.platform, image.digest) != image.digest:
            problem = f"a second image for {written(image.platform)} without a name; add them one by one"
            raise WireError("image", problem, image.digest)

    def _config(self, document: OciDocument) -> ImageConfig | None:
        if document.config is None:
            return None
        digest = parse_digest(document.config.digest)
        data = self._blobs.get(digest)
        return None if data is None else decode_config(data, digest)

    def _wrong(self, error: Exception) -> None:
        self.found.mistakes.append(Mistake(self._blobs.source, str(error)))


def read_layout(
    place: LayoutFolder | LayoutArchive, name: str = "", platform: Platform | None = None
) -> LayoutContents:
    """Return all images of a layout, with the mistakes of those that cannot be read. Raises InputError."""
    try:
        data = place.index()
    except WireError as error:
        raise InputError.one(place.source, str(error)) from error
    if data is None:
        message = (
            f"is not an OCI image layout, it has no {INDEX}; save the image again with `skopeo copy` or a newer docker"
        )
        raise InputError.one(place.source, message)
    walk = LayoutReader(place, name, platform)
    walk.index(data)
    found = walk.found
    if not found.images and not found.mistakes:
        said = f"lists {found.absent} manifests and has none of them" if found.absent else "has no image in it"
        found.mistakes.append(Mistake(place.source, f"{said}; save the image again"))
    return found


def read_documents(loose: ManifestFiles, name: str = "", platform: Platform | None = None) -> LayoutContents:
    """Return the images of manifests that were saved as files; indexes among them give the platforms."""
    walk = LayoutReader(loose, name, platform)
    documents: dict[Digest, OciDocument] = {}
    for digest, path in loose.documents.items():
        try:
            documents[digest] = decode_document(loose.get(digest) or b"", digest)
        except WireError as error:
            walk.found.mistakes.append(Mistake(str(path), error.problem))
    listed = {entry.digest for document in documents.values() for entry in document.manifests or ()}
    for digest, document in documents.items():
        if digest not in listed:
            _read_document(walk, digest, document, str(loose.documents[digest]))
    pinned = parse_reference(name).digest if name else None
    if pinned is not None and pinned not in documents:
        message = f"none of the files has the digest {pinned}; save the manifest as it is, without formatting it"
        walk.found.mistakes.append(Mistake(loose.source, message))
    return walk.found


def _read_document(walk: LayoutReader, digest: Digest, document: OciDocument, source: str) -> None:
    images, mistakes = len(walk.found.images), len(walk.found.mistakes)
    walk.entry(IndexEntry(digest), (), DEEPEST)
    added = walk.found.mistakes[mistakes:]
    walk.found.mistakes[mistakes:] = [Mistake(source, mistake.message) for mistake in added]
    if document.manifests is not None and len(walk.found.images) == images and not added:
        message = (
            f"is an index of {len(document.manifests)} manifests and has no layers itself; "
            "name the files of the manifests as well"
        )
        walk.found.mistakes.append(Mistake(source, message))


def _unpacked(image: Image, diff_ids: tuple[str, ...]) -> tuple[Layer, ...]:
    """Return the layers with their diff ids; equal digests mean that a layer is not compressed."""
    if len(diff_ids) != len(image.layers):
        problem = f"its configuration lists {plural(len(diff_ids), 'layer')} and its manifest {len(image.layers)}; build it again"
        raise WireError("image", problem, image.digest)
    return tuple(
        Layer(layer.digest, layer.size, diff_id, layer.size if diff_id == layer.digest else None)
        for layer, diff_id in zip(image.layers, map(parse_digest, diff_ids), strict=True)
    )
