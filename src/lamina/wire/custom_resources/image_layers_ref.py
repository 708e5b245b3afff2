"""
ImageLayers as garbage collection lists them: which object it is, and whether it holds the manifest that its name promises.

An object whose manifest cannot be read still has an identity, so that it can be deleted; it is read in two steps.
"""

from typing import Final

import msgspec

from lamina.model.digest import Digest, digest_of
from lamina.wire.custom_resources.api_group import digest_in
from lamina.wire.errors import WireError
from lamina.wire.kube.meta import ObjectMeta, decode_meta


class ImageLayersRef(msgspec.Struct, frozen=True):
    """An object, and the digest it is called by if it is what its name says."""

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
    """Read an object's identity and check its manifest; raise `WireError` if the object does not say which one it is."""
    try:
        found = _OBJECT.decode(data)
    except (ValueError, RecursionError):
        # Its manifest is no text in base64; its identity stands elsewhere.
        found = _RefObject(decode_meta(data))
    metadata = found.metadata
    if not metadata.name or not metadata.uid or not metadata.resource_version:
        raise WireError("ImageLayers", "metadata lacks name, uid or resourceVersion", metadata.name[:80])
    return ImageLayersRef(metadata.name, metadata.uid, metadata.resource_version, _digest(found))


def _digest(found: _RefObject) -> Digest | None:
    try:
        expected = digest_in(found.metadata.name)
    except ValueError:
        return None
    return expected if found.spec is not None and digest_of(found.spec.manifest) == expected else None
