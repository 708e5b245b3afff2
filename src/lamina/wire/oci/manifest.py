"""
Decoder of image manifests, as registries serve them.

Registries and their users are untrusted. So the decoder checks the size first, then the digest, and decodes only bytes
that match the expected digest. The sizes in a manifest are unverified claims. The decoder uses only digests and sizes,
and never the ``urls`` of a layer.
"""

import hashlib
from typing import Final

import msgspec

from lamina.model.digest import Digest, DigestError, parse_digest
from lamina.model.image import Image, Layer, Platform
from lamina.wire.decode_cache import NULL
from lamina.wire.errors import WireError

KIND: Final = "image manifest"

MANIFEST_LIMIT: Final = 4 * 1024 * 1024
"""Largest manifest in bytes; registries reject larger ones, too."""
LAYER_LIMIT: Final = 256
"""Largest number of layers of an image; overlayfs stops at half of that."""
SIZE_LIMIT: Final = 1024**4
"""A layer that claims a larger size gets this size, so that no claim dominates all others."""

OCI_MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
DOCKER_MANIFEST: Final = "application/vnd.docker.distribution.manifest.v2+json"
INDEXES: Final = frozenset(
    {
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
    }
)
SCHEMA_VERSION: Final = 2


class Descriptor(msgspec.Struct, frozen=True, gc=False):
    """One entry of ``layers``."""

    digest: str
    size: int


class Manifest(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Common fields of OCI and Docker manifests, and those that distinguish other documents."""

    schema_version: int = 0
    media_type: str | None = None
    layers: list[Descriptor] | None = None
    manifests: msgspec.Raw = NULL


_MANIFEST: Final = msgspec.json.Decoder(Manifest)


def decode_manifest(
    data: bytes,
    expected: Digest,
    *,
    names: tuple[str, ...] = (),
    platform: Platform | None = None,
    content_type: str = "",
) -> Image:
    """
    Return the image that the manifest *expected* describes. Raises WireError.

    *names* and *platform* come from the caller; *content_type* is the registry's Content-Type of the document, if any.
    """
    _check_bytes(data, expected)
    try:
        manifest = _MANIFEST.decode(data)
    except (ValueError, RecursionError) as error:
        raise _error(expected, f"{error}; check what was pushed under this digest") from error
    _check_kind(manifest, expected, content_type.partition(";")[0].strip())
    layers = _layers(manifest.layers or [], expected)
    return Image(digest=expected, layers=layers, names=names, platform=platform or Platform())


def _check_bytes(data: bytes, expected: Digest) -> None:
    """Check that these are the requested bytes, before they are decoded."""
    if len(data) > MANIFEST_LIMIT:
        raise _error(expected, f"it has {len(data)} bytes, the limit is {MANIFEST_LIMIT}")
    algorithm = parse_digest(expected).partition(":")[0]
    found = f"{algorithm}:{hashlib.new(algorithm, data).hexdigest()}"
    if found != expected:
        raise _error(expected, f"the bytes have digest {found}; fetch it again, or ask the operator of the registry")


def _check_kind(manifest: Manifest, expected: Digest, content_type: str) -> None:
    """Reject indexes, documents that could be read as both, and other schema versions or media types."""
    media_type = manifest.media_type or content_type
    lists_manifests = manifest.manifests != NULL
    if lists_manifests and manifest.layers is not None:
        raise _error(expected, "it lists layers and manifests, so different readers would see different images")
    if manifest.media_type and content_type and manifest.media_type != content_type:
        problem = f"it says it is {manifest.media_type:.100}, the registry says {content_type:.100}"
        raise _error(expected, f"{problem}; ask the operator of the registry")
    if media_type in INDEXES or lists_manifests:
        raise _error(expected, "this is an index of several platforms; choose one of its manifests first")
    if manifest.schema_version != SCHEMA_VERSION:
        problem = f"schema version {manifest.schema_version} is not {SCHEMA_VERSION}"
        raise _error(expected, f"{problem}; push the image again with a current tool")
    if media_type not in ("", OCI_MANIFEST, DOCKER_MANIFEST):
        raise _error(expected, f"{media_type:.100} is not an image manifest; check the reference")
    if manifest.layers is None:
        raise _error(expected, "it lists no layers; check the reference")


def _layers(descriptors: list[Descriptor], expected: Digest) -> tuple[Layer, ...]:
    if len(descriptors) > LAYER_LIMIT:
        raise _error(expected, f"it has {len(descriptors)} layers, the limit is {LAYER_LIMIT}")
    sizes: dict[Digest, int] = {}
    layers = []
    for position, descriptor in enumerate(descriptors):
        try:
            digest = parse_digest(descriptor.digest)
        except DigestError as error:
            raise _error(expected, f"layers[{position}]: {error}") from error
        if descriptor.size < 0:
            raise _error(expected, f"layers[{position}]: the size {descriptor.size} is negative")
        if sizes.setdefault(digest, descriptor.size) != descriptor.size:
            raise _error(expected, f"layers[{position}]: {digest} is listed again with another size")
        layers.append(Layer(digest, min(descriptor.size, SIZE_LIMIT)))
    return tuple(layers)


def _error(expected: Digest, problem: str) -> WireError:
    return WireError(KIND, problem, expected)
