"""
Indexes, manifests and configurations, each read once.

The content of images is untrusted. A document has a size limit and is verified against its digest before it is parsed.
An unusable one is remembered with its reason and not read again. A configuration is reduced to diff ids and platform,
an index to the chosen manifest.
"""

import hashlib
from typing import Final

import msgspec

from lamina.clients.cri.containerd import platform_match
from lamina.clients.cri.containerd.containerd_client import (
    AbsentError,
    ContainerdClient,
    OversizeError,
    RuntimeAnswerError,
)
from lamina.model.digest import Digest, DigestError, chain_ids, parse_digest
from lamina.model.errors import LaminaError
from lamina.model.image import Layer, Platform
from lamina.wire.errors import WireError
from lamina.wire.oci.documents import OciDocument, decode_config, decode_document, is_image
from lamina.wire.oci.manifest import DOCKER_MANIFEST, MANIFEST_LIMIT, OCI_MANIFEST, decode_manifest

CONFIG_LIMIT: Final = 4 * 1024 * 1024
INDEX_ENTRIES: Final = 256
DEEPEST_INDEX: Final = 3
TRIES: Final = 4
"""Entries of one index that are tried: the best match, then others in case it was not pulled."""

ABSENT: Final = "not all documents are here"
UNREADABLE: Final = "containerd cannot read a document"
TOO_LARGE: Final = "a document is too large"
FALSE_DIGEST: Final = "a document is not what its digest says"
MALFORMED: Final = "a document cannot be read"
NO_IMAGE: Final = "not an image"
NO_PLATFORM: Final = "nothing for this platform"
TOO_DEEP: Final = "indexes within indexes"
NO_LAYERS: Final = "it has no layers"
PASSING: Final = (ABSENT, UNREADABLE)
"""Temporary reasons; the document is tried again."""
OTHER_COUNT: Final = "manifest and configuration differ in the number of layers"


class ContainerdImage(msgspec.Struct, frozen=True):
    """An image whose documents have all been read."""

    digest: Digest
    media_type: str
    manifest: bytes
    config: Digest
    platform: Platform
    layers: tuple[Layer, ...]
    """With diff ids, without unpacked sizes."""
    top: Digest
    """Chain id of all layers; the image is unpacked if this snapshot exists."""

    def chain(self) -> tuple[Digest, ...]:
        """Return the chain id of each layer, bottom first."""
        return chain_ids([layer.diff_id for layer in self.layers if layer.diff_id is not None])


class UnusableError(LaminaError):
    """A name's target is not a usable image; *reason* is one of the constants above."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ContainerdDocuments:
    """All documents read so far, for the node's platform."""

    def __init__(self, client: ContainerdClient) -> None:
        self.platform = platform_match.this_machine()
        self._client = client
        self._images: dict[Digest, ContainerdImage] = {}
        self._chosen: dict[str, Digest] = {}
        self._refused: dict[str, str] = {}

    def known(self, target: str) -> ContainerdImage | None:
        """Return the image of *target*, a manifest or an index, if it has been read."""
        return self._images.get(self._chosen.get(target, Digest(target)))

    def refusal(self, target: str) -> str:
        """Return why *target* is unusable; "" if unknown."""
        return self._refused.get(target, "")

    async def read(self, target: str) -> ContainerdImage:
        """Return the image of *target*, reading it if needed. Raises UnusableError."""
        found = self.known(target)
        if found is not None:
            return found
        if target in self._refused:
            raise UnusableError(self._refused[target])
        try:
            found = await self._resolve(target, 0)
        except UnusableError as error:
            # An absent document may arrive later; others are immutable, so their reason stays valid.
            if error.reason not in PASSING:
                self._refused[target] = error.reason
            raise
        self._images.setdefault(found.digest, found)
        if found.digest != target:
            self._chosen[target] = found.digest
        return self._images[found.digest]

    def keep(self, targets: set[str]) -> None:
        """Drop everything that none of *targets* needs."""
        self._chosen = {target: chosen for target, chosen in self._chosen.items() if target in targets}
        self._refused = {target: reason for target, reason in self._refused.items() if target in targets}
        needed = targets | set(self._chosen.values())
        self._images = {digest: image for digest, image in self._images.items() if digest in needed}

    async def _resolve(self, target: str, depth: int) -> ContainerdImage:
        digest, data = await self._fetch(target, MANIFEST_LIMIT)
        known = self._images.get(digest)
        if known is not None:
            return known
        document = _parse(data, target)
        if document.is_index:
            return await self._choose(document, depth)
        return await self._image(digest, data, document)

    async def _choose(self, index: OciDocument, depth: int) -> ContainerdImage:
        if depth >= DEEPEST_INDEX:
            raise UnusableError(TOO_DEEP)
        entries = platform_match.choose((index.manifests or ())[:INDEX_ENTRIES], self.platform)
        reasons = []
        for entry in entries[:TRIES]:
            try:
                known = await self._resolve(entry.digest, depth + 1)
            except UnusableError as error:
                reasons.append(error.reason)
                continue
            if entry.platform is not None or platform_match.fits(known.platform, self.platform):
                return known
        passing = [reason for reason in reasons if reason in PASSING]
        raise UnusableError([*passing, *reasons, NO_PLATFORM][0])

    async def _image(self, digest: Digest, data: bytes, document: OciDocument) -> ContainerdImage:
        if document.config is None or not is_image(document):
            raise UnusableError(NO_IMAGE)
        try:
            image = decode_manifest(data, digest)
        except WireError as error:
            raise UnusableError(MALFORMED) from error
        if not image.layers:
            raise UnusableError(NO_LAYERS)
        config, text = await self._fetch(document.config.digest, CONFIG_LIMIT)
        platform, diff_ids = _read_config(text, config)
        if len(diff_ids) != len(image.layers):
            raise UnusableError(OTHER_COUNT)
        pairs = zip(image.layers, diff_ids, strict=True)
        return ContainerdImage(
            digest=digest,
            media_type=document.media_type if document.media_type == DOCKER_MANIFEST else OCI_MANIFEST,
            manifest=data,
            config=config,
            platform=platform or self.platform,
            layers=tuple(Layer(layer.digest, layer.size, diff_id) for layer, diff_id in pairs),
            top=chain_ids(diff_ids)[-1],
        )

    async def _fetch(self, text: str, limit: int) -> tuple[Digest, bytes]:
        try:
            digest = parse_digest(text)
        except DigestError as error:
            raise UnusableError(MALFORMED) from error
        try:
            data = await self._client.read(digest, limit)
        except AbsentError as error:
            raise UnusableError(ABSENT) from error
        except RuntimeAnswerError as error:
            raise UnusableError(UNREADABLE) from error
        except OversizeError as error:
            raise UnusableError(TOO_LARGE) from error
        algorithm, _, encoded = digest.partition(":")
        if hashlib.new(algorithm, data).hexdigest() != encoded:
            raise UnusableError(FALSE_DIGEST)
        return digest, data


def _parse(data: bytes, target: str) -> OciDocument:
    try:
        return decode_document(data, target)
    except WireError as error:
        raise UnusableError(MALFORMED) from error


def _read_config(data: bytes, name: Digest) -> tuple[Platform | None, list[Digest]]:
    try:
        config = decode_config(data, name)
        diff_ids = [parse_digest(diff_id) for diff_id in config.rootfs.diff_ids]
    except (WireError, DigestError) as error:
        raise UnusableError(MALFORMED) from error
    if not config.architecture:
        return None, diff_ids
    return Platform(config.os or "linux", config.architecture, config.variant), diff_ids
