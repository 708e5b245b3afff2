"""
Any runtime that speaks CRI v1, as a source: what a kubelet could see, and no more.

CRI tells which images are there, what they are called and how large the runtime finds them; of their layers it tells the
diff ids, if anything. There is no manifest, so nobody learns from such a node what an image consists of. An image's
digest is what the runtime kept of the name it was pulled by, and for images of several platforms that is often the
digest of the index. It is told as it is: names are still right, but a scheduler finds no layers under an index's digest
and takes what it knows of the image by its names alone. Whatever has an API or files of its own is better read by them.

CRI tells of no change, so it is asked for the list from time to time. Pulls and rates are not told at all.
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
"""How often the list is asked for; a kubelet does it every half minute."""
FULL_LOOK_SECONDS: Final = 300.0
IMAGE_LIMIT: Final = 2000
SIZE_LIMIT: Final = 1024**5
ANY_BLOB: Final = frozenset({"cri-o", "crio"})
"""Runtimes that reuse any layer they know; of others it is not known, and the prefix is what they all reuse."""

ImageListKey: TypeAlias = tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]


class CriSource:
    """The runtime that listens on *socket*; its images are on the file system of *disk*, if that is given."""

    def __init__(self, socket: Path, *, disk: Path | None = None) -> None:
        self.place = socket
        self._calls, self._disk = CriClient(socket), disk
        self._details: dict[str, CriImageDetails] = {}
        self._seen: ImageListKey = ()
        self._looked = -FULL_LOOK_SECONDS

    async def look(self) -> Holdings:
        """Look at everything; raises `RuntimeTrouble`."""
        self._looked = time.monotonic()
        version = await self._calls.version()
        listed = await self._listed()
        self._seen = _glance(listed)
        told = {image.id: await self._told(image) for image in listed}
        self._details = {name: details for name, details in self._details.items() if name in told}
        images: dict[Digest, StoredImage] = {}
        for image in listed:
            for stored in _stored(image, told[image.id]):
                images.setdefault(stored.digest, stored)
        disk, disk_free = room(self._disk or await self._mountpoint())
        return Holdings(
            runtime=NodeRuntime(version.runtime_name[:100], version.runtime_version[:100]),
            reuse=_reuse(version.runtime_name, told.values()),
            images=tuple(images[digest] for digest in sorted(images)),
            disk=disk,
            disk_free=disk_free,
        )

    async def changed(self) -> None:
        """Return when the list is another than at the last look, or the look is old. Raises `RuntimeTrouble`."""
        while time.monotonic() - self._looked < FULL_LOOK_SECONDS:
            await asyncio.sleep(POLL_SECONDS)
            if _glance(await self._listed()) != self._seen:
                return

    async def close(self) -> None:
        """Hang up."""
        await self._calls.close()

    async def _listed(self) -> list[cri_pb2.Image]:
        """All images, or as many as can be told, each once."""
        listed = {image.id: image for image in await self._calls.images() if image.id}
        return [listed[name] for name in sorted(listed)][:IMAGE_LIMIT]

    async def _told(self, image: cri_pb2.Image) -> CriImageDetails:
        found = self._details.get(image.id)
        if found is None:
            status = await self._calls.status(image.id)
            annotations = {**image.spec.annotations, **status.image.spec.annotations}
            found = read_details(status.info, annotations)
            # One that went away before it could be asked for may come back.
            if status.image.id:
                self._details[image.id] = found
        return found

    async def _mountpoint(self) -> Path | None:
        name = await self._calls.mountpoint()
        return Path(name) if name.startswith("/") and "\0" not in name else None


def _glance(listed: Sequence[cri_pb2.Image]) -> ImageListKey:
    return tuple((image.id, tuple(image.repo_tags), tuple(image.repo_digests)) for image in listed)


def _stored(image: cri_pb2.Image, details: CriImageDetails) -> Iterator[StoredImage]:
    """One for each digest it is known by; tags go to the first, for nothing tells which of them they led to."""
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


def _reuse(runtime: str, told: Iterable[CriImageDetails]) -> Reuse:
    return "set" if runtime in ANY_BLOB or any(details.as_pulled for details in told) else "prefix"


def _digest(name: str) -> Digest | None:
    try:
        return parse_reference(name).digest
    except ReferenceFormatError:
        return None
