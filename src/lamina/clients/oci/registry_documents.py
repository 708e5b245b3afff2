"""
The documents behind a reference: what is kept of each, once its bytes have been found to be what their digest says.

    index      which manifests it lists, and for which platforms
    manifest   the image, with the diff ids and the platform of its configuration

Bytes are hashed before anything in them is believed. The ``urls`` of a layer are never looked at. Nothing kept here
depends on the way a document was found, so it is good for everybody who comes to it by another: what an index says about
the platform of a manifest stays with the index.
"""

import hashlib
from typing import Final

import msgspec

from lamina.model.digest import Digest, DigestError, parse_digest
from lamina.model.image import Image, Layer, Platform
from lamina.model.plain import plural
from lamina.wire.errors import WireError
from lamina.wire.oci.documents import IndexEntry, OciDocument, decode_config, decode_document, is_attestation, is_image
from lamina.wire.oci.manifest import DOCKER_MANIFEST, INDEXES, OCI_MANIFEST, decode_manifest

MOST_LISTED: Final = 256
"""Manifests of an index."""
ACCEPT: Final = ", ".join((OCI_MANIFEST, DOCKER_MANIFEST, *sorted(INDEXES)))
"""What we can read, for the header of a question."""


class IndexedManifest(msgspec.Struct, frozen=True, array_like=True):
    """One manifest of an index."""

    digest: Digest
    platform: Platform | None = None


class CachedIndex(msgspec.Struct, frozen=True, tag=True):
    """An index."""

    manifests: tuple[IndexedManifest, ...]


class CachedImage(msgspec.Struct, frozen=True, tag=True):
    """A manifest and its configuration."""

    image: Image
    """Without a name."""


CachedDocument = CachedIndex | CachedImage


class ManifestWithoutConfig(msgspec.Struct, frozen=True):
    """A manifest whose configuration has not been read yet."""

    image: Image
    config: Digest | None


def check(data: bytes, expected: Digest) -> None:
    """See whether these are the bytes that were asked for. Raises WireError."""
    algorithm = expected.partition(":")[0]
    found = hashlib.new(algorithm, data).hexdigest()
    if f"{algorithm}:{found}" != expected:
        raise WireError("document", f"the bytes have digest {algorithm}:{found}; ask who runs the registry", expected)


def read(data: bytes, expected: Digest, content_type: str) -> CachedIndex | ManifestWithoutConfig:
    """Read an index or a manifest. Raises WireError."""
    check(data, expected)
    document = decode_document(data, expected)
    said = content_type.partition(";")[0].strip()
    if document.is_index:
        if document.media_type and said and document.media_type != said:
            raise WireError("image index", "the registry calls it something else than it does itself", expected)
        return CachedIndex(_listed(document, expected))
    if not is_image(document):
        raise WireError("image manifest", "it is a chart, a signature or something else, no image", expected)
    image = decode_manifest(data, expected, content_type=content_type)
    if not image.layers:
        raise WireError("image manifest", "it has no layers, so nothing of it is ever pulled", expected)
    return ManifestWithoutConfig(
        image, _digest(document.config.digest, expected) if document.config is not None else None
    )


def describe(manifest: ManifestWithoutConfig, config: bytes | None) -> CachedImage:
    """Put a manifest and its configuration together. Raises WireError."""
    image = manifest.image
    if manifest.config is None or config is None:
        return CachedImage(image)
    check(config, manifest.config)
    told = decode_config(config, manifest.config)
    layers = _unpacked(image, told.rootfs.diff_ids)
    platform = Platform(told.os, told.architecture, told.variant) if told.os and told.architecture else image.platform
    return CachedImage(Image(image.digest, layers, platform=platform))


def _listed(document: OciDocument, expected: Digest) -> tuple[IndexedManifest, ...]:
    entries = [entry for entry in document.manifests or () if not is_attestation(entry)]
    if len(entries) > MOST_LISTED:
        raise WireError("image index", f"it lists {len(entries)} manifests, more than {MOST_LISTED}", expected)
    return tuple(IndexedManifest(_digest(entry.digest, expected), _platform(entry)) for entry in entries)


def _platform(entry: IndexEntry) -> Platform | None:
    told = entry.platform
    return Platform(told.os, told.architecture, told.variant) if told and told.os and told.architecture else None


def _digest(text: str, where: Digest) -> Digest:
    try:
        return parse_digest(text)
    except DigestError as error:
        raise WireError("image index or manifest", str(error), where) from error


def _unpacked(image: Image, diff_ids: tuple[str, ...]) -> tuple[Layer, ...]:
    """Give the layers their diff ids; where both digests are the same, the layer is not compressed."""
    if not diff_ids:
        return image.layers
    if len(diff_ids) != len(image.layers):
        problem = f"its configuration lists {plural(len(diff_ids), 'layer')} and its manifest {len(image.layers)}; build it again"
        raise WireError("image", problem, image.digest)
    return tuple(
        Layer(layer.digest, layer.size, diff_id, layer.size if diff_id == layer.digest else None)
        for layer, diff_id in zip(image.layers, (_digest(one, image.digest) for one in diff_ids), strict=True)
    )
