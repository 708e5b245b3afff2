"""
Runtime source for any runtime that speaks CRI v1.

CRI reports images, names and sizes, and at best the diff ids of layers. It has no manifests, so such a node does not
reveal what an image consists of. An image's digest is the one of the name it was pulled by; for multi-platform images
that is often the digest of the index. It is reported unchanged. The scheduler then finds no layers under that digest
and uses what it knows by the image's names. Runtimes with their own API or files are better read that way.

CRI has no change events, so the list is polled. Pulls and rates are not reported.
"""

import asyncio
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from lamina.clients.cri.disk import room
from lamina.clients.cri.plain.cri_client import CriClient
from lamina.clients.cri.plain.image_details import CriImageDetails, read_details
from lamina.clients.cri.protos import cri_pb2
from lamina.model.digest import Digest
from lamina.model.holdings import Holdings, StoredImage
from lamina.model.layer_report import NodeRuntime, Reuse
from lamina.model.reference import ReferenceFormatError, is_reference, parse_reference

POLL_SECONDS: Final = 10.0
"""Interval of list queries; a kubelet uses 30 seconds."""
FULL_LOOK_SECONDS: Final = 300.0
IMAGE_LIMIT: Final = 2000
SIZE_LIMIT: Final = 1024**5
ANY_BLOB: Final = frozenset({"cri-o", "crio"})
"""Runtimes known to reuse any layer; for others "prefix" is assumed, which all of them support."""

ImageListKey: TypeAlias = tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]


class CriSource:
    """The runtime behind *socket*; *disk* is a folder on the file system that holds its images."""

    def __init__(self, socket: Path, *, disk: Path | None = None) -> None:
        self.place = socket
        self._client, self._disk = CriClient(socket), disk
        self._details: dict[str, CriImageDetails] = {}
        self._seen: ImageListKey = ()
        self._looked = -FULL_LOOK_SECONDS

    async def look(self) -> Holdings:
        """Return the holdings. Raises `RuntimeSourceError`."""
        self._looked = time.monotonic()
        version = await self._client.version()
        listed = await self._listed()
        self._seen = _list_key(listed)
        all_details = {image.id: await self._details_of(image) for image in listed}
        self._details = {name: details for name, details in self._details.items() if name in all_details}
        images: dict[Digest, StoredImage] = {}
        for image in listed:
            for stored in _stored(image, all_details[image.id]):
                images.setdefault(stored.digest, stored)
        disk, disk_free = room(self._disk or await self._mountpoint())
        return Holdings(
            runtime=NodeRuntime(version.runtime_name[:100], version.runtime_version[:100]),
            reuse=_reuse(version.runtime_name, all_details.values()),
            images=tuple(images[digest] for digest in sorted(images)),
            disk=disk,
            disk_free=disk_free,
        )

    async def changed(self) -> None:
        """Return when the list differs from the last look's, or that look is old. Raises `RuntimeSourceError`."""
        while time.monotonic() - self._looked < FULL_LOOK_SECONDS:
            await asyncio.sleep(POLL_SECONDS)
            if _list_key(await self._listed()) != self._seen:
                return

    async def close(self) -> None:
        """Close the connection."""
        await self._client.close()

    async def _listed(self) -> list[cri_pb2.Image]:
        """Return the images, each once, at most `IMAGE_LIMIT`."""
        listed = {image.id: image for image in await self._client.images() if image.id}
        return [listed[name] for name in sorted(listed)][:IMAGE_LIMIT]

    async def _details_of(self, image: cri_pb2.Image) -> CriImageDetails:
        found = self._details.get(image.id)
        if found is None:
            status = await self._client.status(image.id)
            annotations = {**image.spec.annotations, **status.image.spec.annotations}
            found = read_details(status.info, annotations)
            # An image that disappeared before its status was queried may come back.
            if status.image.id:
                self._details[image.id] = found
        return found

    async def _mountpoint(self) -> Path | None:
        name = await self._client.mountpoint()
        return Path(name) if name.startswith("/") and "\0" not in name else None


def _list_key(listed: Sequence[cri_pb2.Image]) -> ImageListKey:
    return tuple((image.id, tuple(image.repo_tags), tuple(image.repo_digests)) for image in listed)


def _stored(image: cri_pb2.Image, details: CriImageDetails) -> Iterator[StoredImage]:
    """Yield one image for each digest; tags go to the first, because CRI does not report which digest they had."""
    names: dict[Digest, list[str]] = {}
    for name in sorted(image.repo_digests):
        digest = _digest(name)
        if digest is not None:
            names.setdefault(digest, []).append(name)
    tags = [name for name in image.repo_tags if is_reference(name)]
    size = sum(layer.size for layer in details.layers) if details.as_pulled else min(image.size, SIZE_LIMIT)
    for place, digest in enumerate(names):
        yield StoredImage(
            digest=digest,
            names=tuple(dict.fromkeys([*(tags if place == 0 else ()), *names[digest]])),
            size=size,
            layers=details.layers,
            platform=details.platform,
        )


def _reuse(runtime: str, all_details: Iterable[CriImageDetails]) -> Reuse:
    return "set" if runtime in ANY_BLOB or any(details.as_pulled for details in all_details) else "prefix"


def _digest(name: str) -> Digest | None:
    try:
        return parse_reference(name).digest
    except ReferenceFormatError:
        return None
