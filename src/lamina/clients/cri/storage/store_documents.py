"""
Manifests and configurations of stored images, each read once, because a digest names immutable content.

A document that is unreadable or does not match its digest is skipped until the image list changes; the image is then
reported from its records only. Cached and read bytes are bounded, because the author of an image decides its size.
"""

import hashlib
from collections.abc import Collection
from typing import Final

import msgspec

from lamina.clients.cri.storage.store_files import UnsettledFileError, UnusableFileError
from lamina.clients.cri.storage.store_records import MANIFEST, ImageRecord, known
from lamina.clients.cri.storage.stores import ContainersStore
from lamina.model.digest import Digest
from lamina.model.image import Layer, Platform
from lamina.wire.errors import WireError
from lamina.wire.oci import documents
from lamina.wire.oci.manifest import decode_manifest

LOOK_LIMIT: Final = 32 * 1024 * 1024
"""Bytes of documents read in one look; the rest follows in the next."""
KEPT_LIMIT: Final = 16 * 1024 * 1024
"""Bytes of manifests that are cached; beyond that only their layers are."""


class StoreManifest(msgspec.Struct, frozen=True):
    """A decoded manifest."""

    data: bytes = b""
    media_type: str = ""
    layers: tuple[Layer, ...] | None = None
    """None if it is not an image manifest but an index or an artifact."""


class StoreConfig(msgspec.Struct, frozen=True):
    """Platform and diff ids of a configuration."""

    platform: Platform
    diff_ids: tuple[Digest | None, ...]


class StoreDocuments:
    """Cache of decoded documents."""

    def __init__(self) -> None:
        self._manifests: dict[Digest, StoreManifest] = {}
        self._configurations: dict[Digest, StoreConfig] = {}
        self._refused: set[tuple[str, str]] = set()
        self._kept = 0
        self._left = LOOK_LIMIT

    @property
    def behind(self) -> bool:
        """Whether the last look left documents for the next."""
        return self._left <= 0

    def begin(self, *, afresh: bool) -> None:
        """Start a look; *afresh* retries unreadable documents."""
        self._left = LOOK_LIMIT
        if afresh:
            self._refused.clear()

    def manifest(self, store: ContainersStore, image: ImageRecord, digest: Digest) -> StoreManifest | None:
        """Return an image's manifest *digest*; None if it is unavailable. Raises `UnsettledFileError`."""
        found = self._manifests.get(digest)
        if found is None:
            named = f"{MANIFEST}-{digest}"
            data = self._read(store, image, named if named in image.big_data_digests else MANIFEST, digest)
            if data is None:
                return None
            found = _described(data, digest)
            if self._kept + len(found.data) > KEPT_LIMIT:
                found = msgspec.structs.replace(found, data=b"")
            self._kept += len(found.data)
            self._manifests[digest] = found
        return found

    def configuration(self, store: ContainersStore, image: ImageRecord) -> StoreConfig | None:
        """Return an image's configuration; None if it is unavailable. Raises `UnsettledFileError`."""
        digest = next(filter(None, map(known, sorted(image.big_data_digests))), None)
        if digest is None:
            return None
        found = self._configurations.get(digest)
        if found is None:
            data = self._read(store, image, digest, digest)
            if data is None:
                return None
            found = self._configurations[digest] = _configured(data, digest)
        return found

    def keep_only(self, images: Collection[ImageRecord]) -> None:
        """Drop documents that belong to none of *images*."""
        manifests = {digest for image in images for digest in image.manifests}
        configurations = {name for image in images for name in image.big_data_digests}
        self._manifests = {digest: found for digest, found in self._manifests.items() if digest in manifests}
        self._configurations = {name: found for name, found in self._configurations.items() if name in configurations}
        self._kept = sum(len(found.data) for found in self._manifests.values())

    def _read(self, store: ContainersStore, image: ImageRecord, name: str, digest: Digest) -> bytes | None:
        if self._left <= 0 or (image.id, name) in self._refused:
            return None
        try:
            data = store.document(image, name)
        except UnsettledFileError:
            raise
        except (UnusableFileError, OSError):
            self._refused.add((image.id, name))
            return None
        self._left -= len(data)
        algorithm, _, encoded = digest.partition(":")
        if hashlib.new(algorithm, data).hexdigest() != encoded:
            self._refused.add((image.id, name))
            return None
        return data


def _described(data: bytes, digest: Digest) -> StoreManifest:
    try:
        document = documents.decode_document(data, digest)
        if document.is_index or not documents.is_image(document):
            return StoreManifest()
        image = decode_manifest(data, digest)
    except WireError:
        return StoreManifest()
    return StoreManifest(data=data, media_type=document.media_type or "", layers=image.layers)


def _configured(data: bytes, digest: Digest) -> StoreConfig:
    try:
        config = documents.decode_config(data, digest)
    except WireError:
        return StoreConfig(Platform(os="", architecture=""), ())
    return StoreConfig(
        Platform(config.os, config.architecture, config.variant), tuple(map(known, config.rootfs.diff_ids))
    )
