"""
Decoded registry documents, verified against their digests.

    index      the manifests it lists, with their platforms
    manifest   the image, with diff ids and platform from its configuration

Bytes are hashed before they are decoded. The ``urls`` of a layer are ignored. A cached document does not depend on the
reference it was found through, so all references share it: a platform stated by an index stays with the index.
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
"""Accept header: the media types we decode."""


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
    """A manifest whose configuration has not been decoded yet."""

    image: Image
    config: Digest | None


def check(data: bytes, expected: Digest) -> None:
    """Verify that bytes have the expected digest. Raises WireError."""
    algorithm = expected.partition(":")[0]
    found = hashlib.new(algorithm, data).hexdigest()
    if f"{algorithm}:{found}" != expected:
        raise WireError(
            "document", f"the bytes have digest {algorithm}:{found}: report it to the registry's operator", expected
        )


def read(data: bytes, expected: Digest, content_type: str) -> CachedIndex | ManifestWithoutConfig:
    """Verify and decode an index or a manifest. Raises WireError."""
    check(data, expected)
    document = decode_document(data, expected)
    media_type = content_type.partition(";")[0].strip()
    if document.is_index:
        if document.media_type and media_type and document.media_type != media_type:
            raise WireError("image index", "its Content-Type differs from its mediaType", expected)
        return CachedIndex(_listed(document, expected))
    if not is_image(document):
        raise WireError("image manifest", "it is not an image but a chart, a signature or other content", expected)
    image = decode_manifest(data, expected, content_type=content_type)
    if not image.layers:
        raise WireError("image manifest", "it has no layers, so it cannot be pulled", expected)
    return ManifestWithoutConfig(
        image, _digest(document.config.digest, expected) if document.config is not None else None
    )


def describe(manifest: ManifestWithoutConfig, config: bytes | None) -> CachedImage:
    """Combine a manifest and its configuration. Raises WireError."""
    image = manifest.image
    if manifest.config is None or config is None:
        return CachedImage(image)
    check(config, manifest.config)
    decoded = decode_config(config, manifest.config)
    layers = _unpacked(image, decoded.rootfs.diff_ids)
    platform = (
        Platform(decoded.os, decoded.architecture, decoded.variant)
        if decoded.os and decoded.architecture
        else image.platform
    )
    return CachedImage(Image(image.digest, layers, platform=platform))


def _listed(document: OciDocument, expected: Digest) -> tuple[IndexedManifest, ...]:
    entries = [entry for entry in document.manifests or () if not is_attestation(entry)]
    if len(entries) > MOST_LISTED:
        raise WireError("image index", f"it lists {len(entries)} manifests, more than {MOST_LISTED}", expected)
    return tuple(IndexedManifest(_digest(entry.digest, expected), _platform(entry)) for entry in entries)


def _platform(entry: IndexEntry) -> Platform | None:
    decoded = entry.platform
    return (
        Platform(decoded.os, decoded.architecture, decoded.variant)
        if decoded and decoded.os and decoded.architecture
        else None
    )


def _digest(text: str, where: Digest) -> Digest:
    try:
        return parse_digest(text)
    except DigestError as error:
        raise WireError("image index or manifest", str(error), where) from error


def _unpacked(image: Image, diff_ids: tuple[str, ...]) -> tuple[Layer, ...]:
    """Return the layers with their diff ids; equal digests mean that the layer is not compressed."""
    if not diff_ids:
        return image.layers
    if len(diff_ids) != len(image.layers):
        problem = f"its configuration lists {plural(len(diff_ids), 'layer')} and its manifest {len(image.layers)}; build it again"
        raise WireError("image", problem, image.digest)
    return tuple(
        Layer(layer.digest, layer.size, diff_id, layer.size if diff_id == layer.digest else None)
        for layer, diff_id in zip(image.layers, (_digest(one, image.digest) for one in diff_ids), strict=True)
    )
