"""
Decoders of the documents of an image layout: indexes, manifests and configurations.

They also decide which entries are images, and their names; `image_layout` walks from document to document.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from lamina.model.reference import is_reference
from lamina.wire.decode_cache import NULL
from lamina.wire.errors import WireError
from lamina.wire.oci.manifest import DOCKER_MANIFEST, INDEXES, MANIFEST_LIMIT, OCI_MANIFEST

NAMES: Final = ("io.containerd.image.name", "org.opencontainers.image.ref.name")
"""Annotations that name an image. Some tools put only a tag into the second one, which is ignored."""
ATTESTATION: Final = ("vnd.docker.reference.type", "attestation-manifest")
UNKNOWN: Final = "unknown"
IMAGE_CONFIGS: Final = (
    None,
    "",
    "application/vnd.oci.image.config.v1+json",
    "application/vnd.docker.container.image.v1+json",
)


class IndexPlatform(msgspec.Struct, frozen=True, gc=False):
    """The platform of a manifest."""

    os: str = ""
    architecture: str = ""
    variant: str = ""


class IndexEntry(msgspec.Struct, frozen=True, rename="camel"):
    """One entry of an index."""

    digest: str
    platform: IndexPlatform | None = None
    annotations: dict[str, str] | None = None


class ConfigDescriptor(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The configuration of a manifest."""

    digest: str
    media_type: str | None = None


class OciDocument(msgspec.Struct, frozen=True, rename="camel"):
    """An index or a manifest, restricted to what distinguishes them and leads to other documents."""

    media_type: str | None = None
    artifact_type: str | None = None
    manifests: tuple[IndexEntry, ...] | None = None
    config: ConfigDescriptor | None = None
    layers: msgspec.Raw = NULL

    @property
    def is_index(self) -> bool:
        """Whether it lists other documents."""
        return self.manifests is not None or self.media_type in INDEXES


class RootFs(msgspec.Struct, frozen=True, gc=False):
    """The unpacked layers."""

    diff_ids: tuple[str, ...] = ()


class ImageConfig(msgspec.Struct, frozen=True):
    """The parts of an image's configuration that Lamina uses."""

    os: str = ""
    architecture: str = ""
    variant: str = ""
    rootfs: RootFs = RootFs()


_DOCUMENT: Final = msgspec.json.Decoder(OciDocument)
_CONFIG: Final = msgspec.json.Decoder(ImageConfig)


def decode_document(data: bytes, name: str) -> OciDocument:
    """Return a decoded index or manifest; *name* is for messages. Raises WireError."""
    if len(data) > MANIFEST_LIMIT:
        raise WireError("image index", f"it has more than {MANIFEST_LIMIT} bytes", name)
    try:
        document = _DOCUMENT.decode(data)
    except (ValueError, RecursionError) as error:
        raise WireError("image index or manifest", str(error), name) from error
    if document.is_index and document.layers != NULL:
        problem = "it lists layers and manifests, so different readers would see different images"
        raise WireError("image index or manifest", problem, name)
    return document


def is_attestation(entry: IndexEntry) -> bool:
    """Return whether an entry only describes other entries."""
    kind, value = ATTESTATION
    unknown = entry.platform is not None and UNKNOWN in (entry.platform.os, entry.platform.architecture)
    return unknown or (entry.annotations or {}).get(kind) == value


def is_image(document: OciDocument) -> bool:
    """Return whether a manifest describes an image, and not a chart, a signature or another artifact."""
    kind = document.config.media_type if document.config is not None else None
    known = document.media_type in (None, "", OCI_MANIFEST, DOCKER_MANIFEST)
    # `decode_manifest` rejects any other media type with a message.
    return not known or (not document.artifact_type and kind in IMAGE_CONFIGS)


def names_in(annotations: Mapping[str, str] | None) -> tuple[str, ...]:
    """Return the name in the annotations, if there is one."""
    for key in NAMES:
        name = (annotations or {}).get(key, "")
        if any(sign in name for sign in "/:@") and is_reference(name):
            return (name,)
    return ()


def decode_config(data: bytes, name: str) -> ImageConfig:
    """Return a decoded configuration. Raises WireError."""
    try:
        return _CONFIG.decode(data)
    except (ValueError, RecursionError) as error:
        raise WireError("image configuration", str(error), name) from error
