"""
One look at a containerd, combined with results of earlier looks.

An image is held when its manifest for this node's platform exists and its top layer is unpacked: a container then
starts without a pull. Unusable images are skipped and counted; they never fail a look.

    names -> documents -> blob records -> snapshots -> downloads -> sizes -> holdings
"""

from collections import Counter
from collections.abc import Callable
from typing import Final

from lamina.clients.cri.containerd import content_store, platform_match
from lamina.clients.cri.containerd.containerd_client import NAME, AbsentError, ContainerdClient, RuntimeAnswerError
from lamina.clients.cri.containerd.downloads import DownloadTracker
from lamina.clients.cri.containerd.event_log import CONTENTS, IMAGES, SNAPSHOTS, ContainerdEventLog
from lamina.clients.cri.containerd.image_documents import ABSENT, ContainerdDocuments, ContainerdImage, UnusableError
from lamina.clients.cri.containerd.reported_images import ReportedImages
from lamina.clients.cri.containerd.snapshots import USUAL, ContainerdSnapshots
from lamina.model.holdings import Holdings
from lamina.model.image import Platform
from lamina.model.layer_report import NodeRuntime

IMAGE_LIMIT: Final = 2000
NAME_LIMIT: Final = 4096
TOO_MANY: Final = "more images than are looked at"


class ContainerdInventory:
    """The known state of one containerd."""

    def __init__(self, client: ContainerdClient, event_log: ContainerdEventLog) -> None:
        self.complaints: Counter[str] = Counter()
        self.unfinished = False
        """Whether the last look left layer sizes for the next one."""
        self._client, self._event_log = client, event_log
        self._documents = ContainerdDocuments(client)
        self._snapshots = ContainerdSnapshots(client)
        self._downloads = DownloadTracker(client, event_log, self._documents, self._snapshots)
        self._reported = ReportedImages(event_log, self._snapshots)
        self._runtime = NodeRuntime(NAME)
        self._roots: dict[str, str] = {USUAL: ""}
        """Root folder of each snapshotter."""
        self._names: dict[str, list[str]] = {}
        """Image names by target, a manifest or an index."""
        self._unpacked_by: dict[str, tuple[str, ...]] = {}
        self._present: dict[str, content_store.StoredBlob] = {}

    async def look(self, *, whole: bool, room: Callable[[str], tuple[int, int]]) -> Holdings:
        """Query what may have changed, or everything if *whole*; *room* returns size and free bytes of a folder."""
        stale, changes = self._event_log.take()
        if whole:
            await self._query_runtime()
        if IMAGES in stale:
            await self._query_names()
        images = await self._read(again=IMAGES in stale or CONTENTS in stale)
        if CONTENTS in stale:
            await self._query_contents(images)
        strangers = self._snapshots.apply(changes)
        used = self._used()
        if SNAPSHOTS in stale or strangers or not used <= self._snapshots.asked():
            await self._snapshots.ask(sorted(used | strangers))
        pulling = await self._downloads.look(images, self._names)
        self.unfinished = await self._reported.measure(self._held(images).values())
        held = self._held(images)  # a snapshot may disappear while sizes are queried
        self._documents.keep(set(self._names) | self._downloads.needed())
        if IMAGES in stale:
            self._snapshots.keep({chain for image in held.values() for chain in image.chain()})
        size, free = room(self._roots.get(min(used), ""))
        return Holdings(
            runtime=self._runtime,
            reuse=content_store.reuse(
                [image for image in held.values() if image.digest in self._present], self._present
            ),
            platform=self._documents.platform,
            images=self._reported.images(held, self._names),
            pulling=pulling,
            download_rate=self._downloads.rate.value,
            unpack_rate=self._reported.rate.value,
            disk=size,
            disk_free=free,
        )

    async def _query_runtime(self) -> None:
        """Query the version, the platform and the snapshotters; a restart may change them."""
        version = await self._client.version()
        self._runtime = NodeRuntime(NAME, version.removeprefix("v")[:64])
        try:
            plugins = await self._client.snapshotters()
        except (AbsentError, RuntimeAnswerError):
            return  # versions without this service use overlayfs
        self._roots = {plugin.id: plugin.exports.get("root", "") for plugin in plugins} or {USUAL: ""}
        usual_first = sorted(plugins, key=lambda plugin: plugin.id != USUAL)
        for reported in [platform for plugin in usual_first for platform in plugin.platforms][:1]:
            self._documents.platform = platform_match.normalize(
                Platform(reported.os, reported.architecture, reported.variant)
            )

    async def _query_names(self) -> None:
        names: dict[str, list[str]] = {}
        self.complaints[TOO_MANY] = 0
        for image in await self._client.images():
            target = image.target.digest
            if target not in names and len(names) >= IMAGE_LIMIT:
                self.complaints[TOO_MANY] += 1
                continue
            called = names.setdefault(target, [])
            # CRI also names every image by the digest of its configuration, which no pod uses.
            if not image.name.startswith("sha256:") and len(image.name) <= NAME_LIMIT:
                called.append(image.name)
        self._names = names

    async def _read(self, *, again: bool) -> dict[str, ContainerdImage]:
        """Read the targets of names; retry absent documents only with *again*."""
        images = {}
        complaints = Counter({TOO_MANY: self.complaints[TOO_MANY]})
        for target in self._names:
            known = self._documents.known(target)
            reason = self._documents.refusal(target)
            if known is None and not reason:
                try:
                    known = await self._documents.read(target) if again else None
                except UnusableError as error:
                    reason = error.reason
            if known is None:
                complaints[reason or ABSENT] += 1
            else:
                images[target] = known
        self.complaints = +complaints
        return images

    async def _query_contents(self, images: dict[str, ContainerdImage]) -> None:
        """Query which snapshotter unpacked each image, and which blobs exist."""
        by_digest = sorted({image.digest: image for image in images.values()}.items())
        sample = [image for _, image in by_digest[: content_store.SAMPLE]]
        asked = {str(digest) for image in sample for digest in (image.digest, image.layers[-1].digest)}
        untimed = self._reported.untimed(images.values())
        survey = await content_store.survey(self._client, self._roots, asked | untimed)
        self._unpacked_by, self._present = survey.unpacked_by, survey.present
        for digest in sorted(untimed & survey.present.keys()):
            self._event_log.complete(digest, survey.present[digest].since)

    def _held(self, images: dict[str, ContainerdImage]) -> dict[str, ContainerdImage]:
        return {target: image for target, image in images.items() if self._snapshots.holders(image.top)}

    def _used(self) -> set[str]:
        """Return the snapshotters that unpacked at least one image."""
        return {name for names in self._unpacked_by.values() for name in names} or {USUAL}
