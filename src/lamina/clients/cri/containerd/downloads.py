"""
Tracker of active downloads, their images and the download rate.

Usually one query suffices. Two cases need more: for a layer that no known manifest lists, the store's newest unknown
manifests are read; when a pull has no download left, the store is queried once for its layers.
"""

import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from lamina.clients.cri.containerd import content_store, pulls
from lamina.clients.cri.containerd.containerd_client import ContainerdClient
from lamina.clients.cri.containerd.event_log import ContainerdEventLog
from lamina.clients.cri.containerd.image_documents import ContainerdDocuments, ContainerdImage, UnusableError
from lamina.clients.cri.containerd.snapshots import ContainerdSnapshots
from lamina.clients.cri.rate_estimates import DownloadMeter, RateEstimate
from lamina.model.layer_report import ActivePull

CANDIDATES: Final = 16
"""Manifests that one look reads to explain downloads."""
ATTEMPTS: Final = 3
"""Looks that search for the manifest of one download; some have none."""


class DownloadTracker:
    """Active downloads and pulls of one containerd."""

    def __init__(
        self,
        client: ContainerdClient,
        event_log: ContainerdEventLog,
        documents: ContainerdDocuments,
        snapshots: ContainerdSnapshots,
    ) -> None:
        self.rate = RateEstimate()
        """Compressed bytes per second."""
        self._client, self._event_log, self._documents, self._snapshots = client, event_log, documents, snapshots
        self._pulls = pulls.ContainerdPulls(event_log)
        self._meter = DownloadMeter(self.rate)
        self._tried: set[str] = set()
        self._attempts: Counter[str] = Counter()

    def needed(self) -> set[str]:
        """Return the manifests that must stay cached while their pulls are active."""
        return self._tried | set(self._pulls.going)

    async def look(
        self, images: Mapping[str, ContainerdImage], names: Mapping[str, list[str]]
    ) -> tuple[ActivePull, ...]:
        """Query all downloads and return the active pulls; *images* and *names* are by target."""
        found = pulls.downloads(await self._client.statuses(), time.time())
        self._meter_up(found)
        if any(self._attempts[download.ref] < ATTEMPTS for download in self._pulls.orphans(found)):
            await self._explain(found, images, names)
        if not found:
            self._tried.clear()
            self._attempts.clear()
        now = time.time()
        unpacked = {chain for going in self._pulls.going.values() for chain in self._there(going.image)}
        self._pulls.progress(found, unpacked, now)
        if doubtful := self._pulls.doubtful():
            missing = {digest for going in doubtful for digest in going.missing}
            here = await content_store.survey(self._client, (), missing)
            self._pulls.drop_given_up(here.present, unpacked)
        return self._pulls.report(found, unpacked)

    def _meter_up(self, found: Collection[pulls.ContainerdDownload]) -> None:
        begun = [*self._event_log.begun]
        self._event_log.begun.clear()
        if begun:
            self._meter.begin(min(begun))
        for digest, size, at in self._event_log.downloaded():
            self._meter.finished(digest, size, at)
        self._meter.seen({one.digest or one.ref: one.offset for one in found}, time.time())

    async def _explain(
        self,
        found: list[pulls.ContainerdDownload],
        images: Mapping[str, ContainerdImage],
        names: Mapping[str, list[str]],
    ) -> None:
        """Find the manifests of downloads that no pull explains: first among named images, then in new manifests."""
        named = ((image, min(names[target], default="")) for target, image in images.items())
        fitting = self._fitting(named, found)
        if not fitting:
            self._attempts.update(download.ref for download in self._pulls.orphans(found))
            fitting = self._fitting(await self._newest(), found)
        if not fitting:
            return
        layers = {str(layer.digest) for image, _ in fitting for layer in image.layers}
        present = (await content_store.survey(self._client, (), layers)).present
        coming = {download.digest for download in found}
        since = {digest: blob.since for digest, blob in present.items() if digest not in coming}
        for image, name in fitting:
            digests = {layer.digest for layer in image.layers}
            start = min(download.started for download in found if download.digest in digests)
            self._pulls.begin(image, name, since, self._there(image), start)

    async def _newest(self) -> list[tuple[ContainerdImage, str]]:
        """Read the newest manifests that were not tried yet; return each image with its origin."""
        survey = await content_store.survey(self._client, (), manifests=True)
        images = []
        for blob in [blob for blob in survey.manifests if blob.digest not in self._tried][:CANDIDATES]:
            self._tried.add(blob.digest)
            try:
                images.append((await self._documents.read(blob.digest), blob.name))
            except UnusableError:
                continue
        return images

    def _fitting(
        self, images: Iterable[tuple[ContainerdImage, str]], found: Iterable[pulls.ContainerdDownload]
    ) -> list[tuple[ContainerdImage, str]]:
        """Return the *images* that are not unpacked and that one of the downloads belongs to."""
        coming = {download.digest for download in found}
        return [
            (image, name)
            for image, name in images
            if any(layer.digest in coming for layer in image.layers)
            and image.digest not in self._pulls.going
            and not self._snapshots.holders(image.top)
        ]

    def _there(self, image: ContainerdImage) -> set[str]:
        return {chain for chain in image.chain() if self._snapshots.holders(chain)}
