"""
ImageLayers as garbage collection lists them: the object's identity, and whether its manifest matches its name.

An object whose manifest cannot be decoded still has an identity, so that it can be deleted. It is decoded in two steps.
"""

from typing import Final

import msgspec

from lamina.model.digest import Digest, digest_of
from lamina.wire.custom_resources.api_group import digest_in
from lamina.wire.errors import WireError
from lamina.wire.kube.meta import ObjectMeta, decode_meta


class ImageLayersRef(msgspec.Struct, frozen=True):
    """Identity of an ImageLayers object; *digest* is None if the manifest does not match its name."""

    name: str
    uid: str
    version: str
    digest: Digest | None


class _RefSpec(msgspec.Struct, frozen=True, gc=False):
    manifest: bytes = b""


class _RefObject(msgspec.Struct, frozen=True, gc=False):
    metadata: ObjectMeta = ObjectMeta()
    spec: _RefSpec | None = None


_OBJECT: Final = msgspec.json.Decoder(_RefObject)


def decode_image_layers_ref(data: bytes | msgspec.Raw) -> ImageLayersRef:
    """Return an object's identity, with its manifest verified. Raises WireError if the identity is incomplete."""
    try:
        found = _OBJECT.decode(data)
    except (ValueError, RecursionError):
        # The manifest is not valid base64; the identity is in the metadata.
        found = _RefObject(decode_meta(data))
    metadata = found.metadata
    if not metadata.name or not metadata.uid or not metadata.resource_version:
        raise WireError("ImageLayers", "metadata has no name, uid or resourceVersion", metadata.name[:80])
    return ImageLayersRef(metadata.name, metadata.uid, metadata.resource_version, _digest(found))


def _digest(found: _RefObject) -> Digest | None:
    try:
        expected = digest_in(found.metadata.name)
    except ValueError:
        return None
    return expected if found.spec is not None and digest_of(found.spec.manifest) == expected else None
