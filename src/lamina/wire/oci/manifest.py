"""
Image manifests, as registries serve them, turned into images.

Registries and whoever pushes to them are strangers, so in this order: the size is looked at, then the digest, and only
bytes that are what was asked for are parsed. What a manifest says about sizes is a claim; nothing here follows the
``urls`` of a layer, and nothing but digests and sizes is taken over.
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
"""Bytes a manifest may have; registries refuse larger ones, too."""
LAYER_LIMIT: Final = 256
"""Layers an image may have; overlay file systems stop at half of that."""
SIZE_LIMIT: Final = 1024**4
"""A layer that claims to be larger counts as this large, so that no claim drowns all others."""

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
    """What OCI and Docker manifests have in common, and what tells other documents from them."""

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
    Read the manifest *expected* and return the image it describes.

    *names* and *platform* are what the caller knows from the way here; *content_type* is what the registry called the
    document, if it said so. `WireError` when the bytes are not that manifest, or not one we can use.
    """
    _check_bytes(data, expected)
    try:
        manifest = _MANIFEST.decode(data)
    except (ValueError, RecursionError) as error:
        raise _refusal(expected, f"{error}; check what was pushed under this digest") from error
    _check_kind(manifest, expected, content_type.partition(";")[0].strip())
    layers = _layers(manifest.layers or [], expected)
    return Image(digest=expected, layers=layers, names=names, platform=platform or Platform())


def _check_bytes(data: bytes, expected: Digest) -> None:
    """See whether these are the bytes that were asked for, before anything in them is believed."""
    if len(data) > MANIFEST_LIMIT:
        raise _refusal(expected, f"it has {len(data)} bytes, more than the {MANIFEST_LIMIT} a manifest may have")
    algorithm = parse_digest(expected).partition(":")[0]
    found = f"{algorithm}:{hashlib.new(algorithm, data).hexdigest()}"
    if found != expected:
        raise _refusal(expected, f"the bytes have digest {found}; fetch it again, or ask who runs the registry")


def _check_kind(manifest: Manifest, expected: Digest, content_type: str) -> None:
    """Refuse indexes, what could be read as both, and what is older or stranger."""
    media_type = manifest.media_type or content_type
    lists_manifests = manifest.manifests != NULL
    if lists_manifests and manifest.layers is not None:
        raise _refusal(expected, "it lists layers and manifests, so different readers would see different images")
    if manifest.media_type and content_type and manifest.media_type != content_type:
        problem = f"it says it is {manifest.media_type:.100}, the registry says {content_type:.100}"
        raise _refusal(expected, f"{problem}; ask who runs the registry")
    if media_type in INDEXES or lists_manifests:
        raise _refusal(expected, "this is an index of several platforms; choose one of its manifests first")
    if manifest.schema_version != SCHEMA_VERSION:
        problem = f"schema version {manifest.schema_version} is not {SCHEMA_VERSION}"
        raise _refusal(expected, f"{problem}; push the image again with a current tool")
    if media_type not in ("", OCI_MANIFEST, DOCKER_MANIFEST):
        raise _refusal(expected, f"{media_type:.100} is not an image manifest; check the reference")
    if manifest.layers is None:
        raise _refusal(expected, "it lists no layers; check the reference")


def _layers(descriptors: list[Descriptor], expected: Digest) -> tuple[Layer, ...]:
    if len(descriptors) > LAYER_LIMIT:
        raise _refusal(expected, f"it has {len(descriptors)} layers, more than the {LAYER_LIMIT} an image may have")
    sizes: dict[Digest, int] = {}
    layers = []
    for position, descriptor in enumerate(descriptors):
        try:
            digest = parse_digest(descriptor.digest)
        except DigestError as error:
            raise _refusal(expected, f"layers[{position}]: {error}") from error
        if descriptor.size < 0:
            raise _refusal(expected, f"layers[{position}]: a size of {descriptor.size} is less than nothing")
        if sizes.setdefault(digest, descriptor.size) != descriptor.size:
            raise _refusal(expected, f"layers[{position}]: {digest} is listed again with another size")
        layers.append(Layer(digest, min(descriptor.size, SIZE_LIMIT)))
    return tuple(layers)


def _refusal(expected: Digest, problem: str) -> WireError:
    return WireError(KIND, problem, expected)
