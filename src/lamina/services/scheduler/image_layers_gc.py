"""
Garbage collection of ImageLayers objects: wrong ones, and unused ones.

Node agents have permission to create these objects and nothing more, so the scheduler deletes them. Only the leader
does, every few minutes and a few objects a second. An object whose manifest does not match its name is useless and
deleted at once. An object that no node holds and no pod uses is deleted after an hour: a node agent may be about to
report its image.

Missing data never counts as "unused". Without any report, nothing is deleted. A node that has stopped reporting counts
with its last report while the node exists. If the API server has other reports than this process (an unreadable or a
very new one), nothing is deleted in this round. At most a fifth of all objects, and at most fifty, are deleted in one
round.

Node agents can create any number of objects. So that a faulty one cannot fill etcd faster than the collection deletes,
more than fifty are deleted while there is an excess: more than `EXCESS_FROM` unused objects, and more than twice as
many as are used. Then a round deletes half of the excess, at a higher rate, so that it ends before the next round.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol
from urllib.parse import quote

import msgspec

from lamina.clients.kube import paged_list
from lamina.clients.kube.errors import ApiError
from lamina.clients.kube.time_slice import TimeSlice
from lamina.clients.kube.transport import KubeClient
from lamina.clients.rate_limit import RateLimit
from lamina.layers.catalog import pinned
from lamina.layers.inventory import Inventory
from lamina.model.digest import Digest
from lamina.model.errors import LaminaError
from lamina.model.image import Platform
from lamina.model.layer_report import LayerReport
from lamina.services.informers.informer_set import InformerSet
from lamina.services.informers.watched_resources import IMAGE_LAYERS, NODE_LAYERS, NODES, PODS
from lamina.wire.custom_resources.image_layers_ref import ImageLayersRef, decode_image_layers_ref
from lamina.wire.kube.meta import decode_count

FIRST_AFTER: Final = 60.0
BETWEEN_ROUNDS: Final = 300.0
GRACE: Final = 3600.0
"""Seconds that an object must be unused before it is deleted."""
A_SECOND: Final = 5.0
MOST_A_SECOND: Final = 50.0
"""Most deletions a second, in rounds with an excess."""
MOST_WRONG: Final = 500
MOST_UNUSED: Final = 50
EXCESS_FROM: Final = 1000
"""Unused objects below which there is no excess."""
SHARE: Final = 5
"""At most one in this many objects is deleted as unused in one round."""
PAGE: Final = 250
REPORT_AFTER: Final = 3
"""Consecutive rounds with missing reports after which a warning is logged."""

# Reasons for a deletion.
NOT_ITS_NAME: Final = "not-its-name"
UNUSED: Final = "unused"

log = logging.getLogger(__name__)


class GCMetrics(Protocol):
    """Receives each deletion; the metrics implement it."""

    def deleted(self, reason: str) -> None:
        """Record a deletion."""


class ImageLayersGC:
    """Deletes useless ImageLayers objects while this instance leads."""

    def __init__(
        self,
        client: KubeClient,
        informers: InformerSet,
        inventory: Inventory,
        *,
        may_act: Callable[[], bool],
        watch: GCMetrics,
    ) -> None:
        """Delete through *client* the objects that *informers* and *inventory* do not use."""
        self._client = client
        self._informers = informers
        self._inventory = inventory
        self._may_act = may_act
        self._watch = watch
        self._unused_since: dict[str, float] = {}
        """By uid."""
        self._reports: dict[str, LayerReport] = {}
        """The newest report of each existing node, also of nodes that have stopped reporting."""
        self._rounds_without = 0
        """Consecutive rounds with reports that this process does not have."""

    async def run(self) -> None:
        """Run rounds until cancelled."""
        await asyncio.sleep(FIRST_AFTER)
        while True:
            if self._may_act():
                try:
                    await self.collect()
                except LaminaError as error:
                    log.warning("ImageLayers garbage collection failed, retrying: %s", error)
                except Exception:
                    # The next round tries again.
                    log.exception("ImageLayers garbage collection failed, retrying")
            else:
                # Another instance led meanwhile, so the times are unknown.
                self._unused_since.clear()
            await asyncio.sleep(BETWEEN_ROUNDS)

    async def collect(self) -> None:
        """Delete what is due now."""
        if not self._follows():
            # References may have been missed while a watch was down.
            self._unused_since.clear()
            return
        path = IMAGE_LAYERS.resource.path
        listed = [one async for one in paged_list.list_objects(self._client, path, decode_image_layers_ref, size=PAGE)]
        wrong = [one for one in listed if one.digest is None]
        await self._delete(wrong[: max(MOST_WRONG, len(wrong) // 2)], NOT_ITS_NAME)
        used = await self._used()
        if used is None:
            # Without all reports it is unknown which objects were unused.
            self._unused_since.clear()
            return
        now = asyncio.get_running_loop().time()
        unused = [one for one in listed if one.digest is not None and one.digest not in used]
        self._unused_since = {one.uid: self._unused_since.get(one.uid, now) for one in unused}
        due = [one for one in unused if now - self._unused_since[one.uid] >= GRACE]
        excess = max(0, len(unused) - max(EXCESS_FROM, 2 * len(used)))
        await self._delete(due[: min(MOST_UNUSED + excess // 2, max(1, len(listed) // SHARE))], UNUSED)

    def _follows(self) -> bool:
        """Return whether the caches are synced and all watches are up."""
        return all(one.synced and one.stale_since is None for one in self._informers.reflectors.values())

    # -- references --------------------------------------------------------------------------------------------------

    async def _used(self) -> set[Digest] | None:
        """Return the images that nodes hold or pods use; None if that is unknown."""
        mirror = self._informers.reflectors[NODE_LAYERS.resource.kind].store
        if not await self._all_reports(len(mirror)):
            return None
        nodes = {node.name: node.platform for node in self._informers.reflectors[NODES.resource.kind].store.items()}
        silent = {node: report for node, report in self._reports.items() if node in nodes}
        self._reports = silent | {report.node: report for report in mirror.items()}
        used: set[Digest] = set()
        time_slice = TimeSlice()
        for report in list(self._reports.values()):
            used.update([image.digest for image in report.images])
            used.update([pull.digest for pull in report.pulling if pull.digest is not None])
            if time_slice.due():
                await time_slice.pause()
        platforms = set(nodes.values())
        pods = list(self._informers.reflectors[PODS.resource.kind].store.items())
        for name in {name for pod in pods for name in pod.images}:
            used.update(self._meant(name, platforms))
            if time_slice.due():
                await time_slice.pause()
        return used

    async def _all_reports(self, ours: int) -> bool:
        """Return whether there are reports, and this process has all that the API server has."""
        if not ours:
            return False
        there = decode_count(await self._client.request("GET", NODE_LAYERS.resource.path, query={"limit": "1"}))
        self._rounds_without = self._rounds_without + 1 if there != ours else 0
        if self._rounds_without == REPORT_AFTER:
            told = "ImageLayers garbage collection paused: some NodeLayers are empty or unreadable; run lamina doctor"
            log.warning(told, extra={"fields": {"there": there, "read": ours}})
        return there == ours

    def _meant(self, name: str, platforms: Iterable[Platform]) -> Iterable[Digest]:
        digest = pinned(name)
        if digest is not None:
            yield digest
        for platform in platforms:
            image = self._inventory.catalog.find(name, platform)
            if image is not None:
                yield image.digest

    # -- deletion ----------------------------------------------------------------------------------------------------

    async def _delete(self, objects: Sequence[ImageLayersRef], reason: str) -> None:
        rate_limit = RateLimit(min(max(A_SECOND, 2 * len(objects) / BETWEEN_ROUNDS), MOST_A_SECOND), 1)
        for one in objects:
            await rate_limit.turn()
            if not self._may_act():
                return
            conditions = {"uid": one.uid, "resourceVersion": one.version}
            options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": conditions}
            path = f"{IMAGE_LAYERS.resource.path}/{quote(one.name, safe='')}"
            try:
                await self._client.request("DELETE", path, body=msgspec.json.encode(options))
            except ApiError as error:
                if error.status not in (404, 409):
                    raise
                # The object was deleted or changed meanwhile.
                continue
            self._unused_since.pop(one.uid, None)
            self._watch.deleted(reason)
            log.info("ImageLayers deleted", extra={"fields": {"object": one.name, "why": reason}})
