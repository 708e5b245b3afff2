"""
The custom resource ImageLayers: the layers of an image, as listed in its manifest.

    decode_image_layers         one object, as received from a watch
    decode_image_layers_list    one page of a list
    encode_image_layers         the object that a node agent creates, once per image

An object is named after the digest of the manifest it carries, so any reader can verify it, whichever client wrote it.
Diff ids and unpacked sizes come from other documents and cannot be verified. They are hints, used only if they fit the
manifest: a wrong hint can only make an estimate worse.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Raw

from lamina.model.digest import Digest, DigestError, digest_of, parse_digest
from lamina.model.image import Image, Layer, Platform
from lamina.wire.custom_resources.api_group import (
    API_VERSION,
    METADATA_LIMIT,
    CustomResourcePage,
    CustomResourceReader,
    digest_in,
    object_name,
)
from lamina.wire.errors import WireError
from lamina.wire.kube.meta import ObjectMeta
from lamina.wire.oci.manifest import LAYER_LIMIT, SIZE_LIMIT, decode_manifest

KIND: Final = "ImageLayers"
PLURAL: Final = "imagelayers"

SPEC_LIMIT: Final = 64 * 1024
"""Largest spec of an object in bytes."""
MANIFEST_LIMIT: Final = 48_000
"""Largest manifest in an object in bytes, before base64."""
WEIGHT_LIMIT: Final = 65_000
"""Largest sum of the weights of manifest and hints; the schema has the same rule."""
DIFF_ID_WEIGHT: Final = 74
SIZE_WEIGHT: Final = 20
TEXT_LENGTH: Final = 128


class ImageLayersPlatform(msgspec.Struct, frozen=True, gc=False):
    """``spec.platform``."""

    os: str = ""
    architecture: str = ""
    variant: str = ""


class ImageLayersSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``spec``."""

    manifest: bytes = b""
    media_type: str = ""
    platform: ImageLayersPlatform | None = None
    diff_ids: list[str] | None = msgspec.field(default=None, name="diffIDs")
    unpacked_sizes: list[int] | None = None


class ImageLayersObject(msgspec.Struct, frozen=True, gc=False):
    """An ImageLayers object."""

    kind: str | None = None
    metadata: ObjectMeta = ObjectMeta()
    spec: ImageLayersSpec | None = None


_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


def decode_image_layers(data: bytes | Raw) -> Image:
    """
    Return the image of an ImageLayers.

    Raises WireError when the manifest does not match the object's name, or cannot be used.
    """
    return _IMAGE_LAYERS.one(data)


def decode_image_layers_list(data: bytes) -> CustomResourcePage[Image]:
    """Return the images of an ImageLayersList."""
    return _IMAGE_LAYERS.many(data)


def encode_image_layers(
    manifest: bytes,
    *,
    media_type: str = "",
    platform: Platform | None = None,
    diff_ids: Sequence[Digest] = (),
    unpacked_sizes: Sequence[int] = (),
) -> bytes:
    """
    Return the ImageLayers of a manifest.

    Raises WireError when the manifest cannot be used or is too large for an object. Hints that do not fit the manifest,
    or for which there is no room, are omitted.
    """
    digest = digest_of(manifest)
    if len(manifest) > MANIFEST_LIMIT:
        problem = f"the manifest has {len(manifest)} bytes, the limit is {MANIFEST_LIMIT}"
        raise WireError(KIND, problem, object_name(digest))
    count = len(decode_manifest(manifest, digest, content_type=media_type).layers)
    spec: dict[str, object] = {"manifest": manifest, "mediaType": media_type}
    if platform is not None:
        parts = {"os": platform.os, "architecture": platform.architecture, "variant": platform.variant}
        spec["platform"] = {name: part[:TEXT_LENGTH] for name, part in parts.items() if part}
    weight = -(-len(manifest) // 3) * 4
    hints: tuple[tuple[str, Sequence[object] | None, int], ...] = (
        ("diffIDs", _fitting_diff_ids(diff_ids, count), DIFF_ID_WEIGHT),
        ("unpackedSizes", _fitting_sizes(unpacked_sizes, count), SIZE_WEIGHT),
    )
    for name, hint, each in hints:
        if hint and weight + each * count <= WEIGHT_LIMIT:
            weight += each * count
            spec[name] = hint
    metadata = {"name": object_name(digest)}
    return _ENCODER.encode({"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec})


def _image(found: ImageLayersObject) -> Image:
    expected = digest_in(found.metadata.name)
    spec = found.spec
    if spec is None or not spec.manifest:
        raise ValueError("it has no manifest")
    digest = digest_of(spec.manifest)
    if digest != expected:
        raise ValueError(f"its manifest has digest {digest}, which does not match its name; delete it")
    image = decode_manifest(spec.manifest, expected, platform=_platform(spec.platform), content_type=spec.media_type)
    count = len(image.layers)
    diff_ids: Sequence[Digest | None] = _fitting_diff_ids(spec.diff_ids or (), count) or [None] * count
    sizes: Sequence[int | None] = _fitting_sizes(spec.unpacked_sizes or (), count) or [None] * count
    layers = (
        Layer(layer.digest, layer.size, diff_id, unpacked)
        for layer, diff_id, unpacked in zip(image.layers, diff_ids, sizes, strict=True)
    )
    return msgspec.structs.replace(image, layers=tuple(layers))


def _fitting_diff_ids(hints: Sequence[str], count: int) -> list[Digest] | None:
    """Return the diff ids if there is a sha256 for each layer, else None."""
    if len(hints) != count or count > LAYER_LIMIT or not all(hint.startswith("sha256:") for hint in hints):
        return None
    try:
        return [parse_digest(hint) for hint in hints]
    except DigestError:
        return None


def _fitting_sizes(hints: Sequence[int], count: int) -> list[int] | None:
    if len(hints) != count or not all(0 <= hint <= SIZE_LIMIT for hint in hints):
        return None
    return list(hints)


def _platform(entry: ImageLayersPlatform | None) -> Platform | None:
    if entry is None or not entry.os or not entry.architecture:
        return None
    parts = (entry.os, entry.architecture, entry.variant)
    return None if max(map(len, parts)) > TEXT_LENGTH else Platform(*parts)


_IMAGE_LAYERS: Final = CustomResourceReader[ImageLayersObject, Image](
    KIND, msgspec.json.Decoder(ImageLayersObject), SPEC_LIMIT + METADATA_LIMIT, _image
)
