"""
Clears away ImageLayers: what is not what its name says, and what nobody refers to any longer.

Agents may create these objects and nothing more, so somebody has to take away what is of no use. Only who leads does, every
few minutes and a few objects a second. What carries another manifest than its name says helps nobody and goes at once. What
no node holds and no pod wants goes after an hour, so that an agent that is about to report an image finds what it wrote.

Absence of data is never data. Nobody refers to anything where nobody has reported, so then nothing goes. A node that has
reported and is silent now still counts with its last report while the node is there. If the API server has other reports
than we do (one that cannot be read, one that came just now), nothing goes this time. And however sure we are, no more than a
fifth of all objects goes in one round, and no more than fifty.

Agents may create as many objects as they like. So that a faulty one cannot fill etcd faster than this clears away, more than
fifty go while there is an excess: more unused objects than any cluster needs, and twice as many as are used. Then half of the
excess goes in a round, and faster, so that a round ends before the next one.
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
"""Seconds for which nobody has to have referred to an object before it goes."""
A_SECOND: Final = 5.0
MOST_A_SECOND: Final = 50.0
"""Deletions a second, in rounds in which there is an excess."""
MOST_WRONG: Final = 500
MOST_UNUSED: Final = 50
EXCESS_FROM: Final = 1000
"""Unused objects that are no excess, however few are used."""
SHARE: Final = 5
"""One in so many may go in one round because nobody refers to it."""
PAGE: Final = 250
REPORT_AFTER: Final = 3
"""Rounds in which there were reports that we do not have, after which somebody should look at them."""

# Why an object went.
NOT_ITS_NAME: Final = "not-its-name"
UNUSED: Final = "unused"

log = logging.getLogger(__name__)


class GCMetrics(Protocol):
    """Whoever counts what goes."""

    def deleted(self, reason: str) -> None:
        """An object was deleted."""


class ImageLayersGC:
    """Looks after ImageLayers while this instance leads."""

    def __init__(
        self,
        client: KubeClient,
        intake: InformerSet,
        inventory: Inventory,
        *,
        may_act: Callable[[], bool],
        watch: GCMetrics,
    ) -> None:
        """Delete through *client* what *intake* and *inventory* have no use for."""
        self._client = client
        self._intake = intake
        self._inventory = inventory
        self._may_act = may_act
        self._watch = watch
        self._unused_since: dict[str, float] = {}
        """By uid."""
        self._reports: dict[str, LayerReport] = {}
        """The newest report of each node that is there, also of those that have fallen silent."""
        self._rounds_without = 0
        """In a row, in which there were reports that we do not have."""

    async def run(self) -> None:
        """Look round until cancelled."""
        await asyncio.sleep(FIRST_AFTER)
        while True:
            if self._may_act():
                try:
                    await self.look_round()
                except LaminaError as error:
                    log.warning("cannot clear away image layers: %s", error)
                except Exception:
                    # What is not cleared away this time is there the next time.
                    log.exception("cannot clear away image layers")
            else:
                # Nobody looked meanwhile, so nobody knows since when.
                self._unused_since.clear()
            await asyncio.sleep(BETWEEN_ROUNDS)

    async def look_round(self) -> None:
        """Delete what is to go now."""
        if not self._follows():
            # Who referred to what meanwhile is not known, and those who did may be about to say so.
            self._unused_since.clear()
            return
        path = IMAGE_LAYERS.resource.path
        listed = [one async for one in paged_list.list_objects(self._client, path, decode_image_layers_ref, size=PAGE)]
        wrong = [one for one in listed if one.digest is None]
        await self._delete(wrong[: max(MOST_WRONG, len(wrong) // 2)], NOT_ITS_NAME)
        used = await self._used()
        if used is None:
            # Since when nobody refers to something is not known any more either.
            self._unused_since.clear()
            return
        now = asyncio.get_running_loop().time()
        unused = [one for one in listed if one.digest is not None and one.digest not in used]
        self._unused_since = {one.uid: self._unused_since.get(one.uid, now) for one in unused}
        due = [one for one in unused if now - self._unused_since[one.uid] >= GRACE]
        excess = max(0, len(unused) - max(EXCESS_FROM, 2 * len(used)))
        await self._delete(due[: min(MOST_UNUSED + excess // 2, max(1, len(listed) // SHARE))], UNUSED)

    def _follows(self) -> bool:
        """Whether everything was seen and nothing can have escaped us since."""
        return all(one.synced and one.stale_since is None for one in self._intake.reflectors.values())

    # -- what is referred to -----------------------------------------------------------------------------------------

    async def _used(self) -> set[Digest] | None:
        """Return the images that nodes hold or pods want; None when that is not known."""
        mirror = self._intake.reflectors[NODE_LAYERS.resource.kind].store
        if not await self._all_reports(len(mirror)):
            return None
        nodes = {node.name: node.platform for node in self._intake.reflectors[NODES.resource.kind].store.items()}
        silent = {node: report for node, report in self._reports.items() if node in nodes}
        self._reports = silent | {report.node: report for report in mirror.items()}
        used: set[Digest] = set()
        breath = TimeSlice()
        for report in list(self._reports.values()):
            used.update([image.digest for image in report.images])
            used.update([pull.digest for pull in report.pulling if pull.digest is not None])
            if breath.due():
                await breath.pause()
        platforms = set(nodes.values())
        pods = list(self._intake.reflectors[PODS.resource.kind].store.items())
        for name in {name for pod in pods for name in pod.images}:
            used.update(self._meant(name, platforms))
            if breath.due():
                await breath.pause()
        return used

    async def _all_reports(self, ours: int) -> bool:
        """Whether there are reports, and we have every one that the API server has."""
        if not ours:
            return False
        there = decode_count(await self._client.request("GET", NODE_LAYERS.resource.path, query={"limit": "1"}))
        self._rounds_without = self._rounds_without + 1 if there != ours else 0
        if self._rounds_without == REPORT_AFTER:
            told = "unused image layers stay: some NodeLayers are empty or cannot be read; lamina doctor names them"
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

    # -- deleting ----------------------------------------------------------------------------------------------------

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
                # Somebody else was there first, or it is another one by now.
                continue
            self._unused_since.pop(one.uid, None)
            self._watch.deleted(reason)
            log.info("image layers deleted", extra={"fields": {"object": one.name, "why": reason}})
