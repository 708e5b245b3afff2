"""
Reporter of this node's NodeLayers object: writes it after relevant changes, and periodically without a change.

It gets inventories and problems from the pipe (`pipe_receiver`), and writes when the schedule says so. A problem
changes the conditions only: images and their time stay those of the last good inventory, so that readers see how old
they are.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec

from lamina.clients.kube.errors import ApiError, UnreachableError
from lamina.model.errors import InputError
from lamina.model.layer_report import LayerReport
from lamina.services.node_agent import logs
from lamina.services.node_agent.node_identity import NodeIdentity, NodeIdentityReader
from lamina.services.node_agent.node_layers_client import NodeLayersClient, next_sequence
from lamina.services.node_agent.report_backoff import ReportBackoff
from lamina.services.node_agent.report_schedule import ReportSchedule
from lamina.wire import node_agent_frames
from lamina.wire.custom_resources.node_layers_status import ImageTotals, encode_node_layers_status, encode_trouble
from lamina.wire.custom_resources.stored_node_layers import StoredNodeLayers
from lamina.wire.node_agent_frames import InventoryFrame

FREE_SHARE: Final = 0.02
"""Share of the disk: a smaller change of free space is not worth a report by itself."""
RATE_SHARE: Final = 0.25
WAVERING: Final = frozenset({"observed_at", "disk_free", "download_rate", "unpack_rate"})
FOR_PEOPLE: Final = frozenset({"pulling", "layers", "size"})
"""Fields of an inventory that do not affect scheduling."""
NOTHING, PROGRESS, CHANGE = 0, 1, 2
"""How much two inventories differ: not worth a report, worth a delayed one, worth one at once."""
LONGEST_WAIT: Final = 300.0
"""Longest wait in seconds between two attempts, while the API server rejects writes or does not answer."""

ReportedState: TypeAlias = tuple[InventoryFrame | None, str]
"""The last good inventory, and the current problem if there is one."""

log = logging.getLogger(__name__)


class NodeLayersReporter:
    """Keeps the NodeLayers object of this node up to date."""

    def __init__(
        self,
        node: NodeLayersClient,
        identity: NodeIdentityReader,
        heartbeat: float,
        rng: random.Random,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Write to *node*, as the node that *identity* returns; *wall* returns seconds since 1970."""
        self._node, self._identity, self._wall = node, identity, wall
        self._times = ReportSchedule(heartbeat, rng, ReportBackoff(rng, longest=LONGEST_WAIT))
        self._wake = asyncio.Event()
        self._look: InventoryFrame | None = None
        self._trouble = ""
        self._told: ReportedState = (None, "")
        self._who: NodeIdentity | None = None
        self._stored: StoredNodeLayers | None = None
        self._problem = ""

    # -- callbacks of the pipe ---------------------------------------------------------------------------------------

    def look(self, look: InventoryFrame) -> None:
        """Accept a new inventory."""
        self._look, self._trouble = self._sober(look), ""
        self._consider()

    def alive(self, observed_at: float) -> None:
        """Set the time of the last inventory to *observed_at*; 0 if there was none. The clock may have gone back."""
        if self._look is not None and observed_at:
            self._look = self._sober(msgspec.structs.replace(self._look, observed_at=observed_at))

    def trouble(self, problem: str) -> None:
        """Accept a problem of the runtime or its reader; empty: it is resolved."""
        self._trouble = problem
        self._consider()

    # -- running -----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Write until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            wait = self._times.due - loop.time()
            if wait > 0:
                self._wake.clear()
                try:
                    async with asyncio.timeout(None if wait == float("inf") else wait):
                        await self._wake.wait()
                except TimeoutError:
                    pass
                continue
            await self._try()

    async def _try(self) -> None:
        loop = asyncio.get_running_loop()
        telling = self._look, self._trouble
        try:
            await self._write(*telling)
        except (ApiError, UnreachableError, InputError) as error:
            asked = error.retry_after if isinstance(error, ApiError) else None
            wait = self._times.failed(loop.time(), asked)
            # The stored object may have changed meanwhile.
            self._stored = None
            if str(error) != self._problem:
                log.warning("report failed, retrying", extra={"problem": str(error), "again_in": round(wait, 1)})
            self._problem = str(error)
            return
        if self._problem:
            log.info("reports recovered")
        self._problem = ""
        told, self._told = self._told, telling
        self._times.written(loop.time(), at_leisure=_worth(told, telling) != CHANGE)
        self._consider()

    async def _write(self, look: InventoryFrame | None, trouble: str) -> None:
        who = await self._identity.now()
        if who != self._who:
            log.info("node identity", extra={"node": who.name, "uid": who.uid})
            self._who, self._stored = who, None
        stored = self._stored or await self._node.find(who) or await self._node.create(who)
        if who.uid not in stored.owners:
            stored = await self._node.adopt(who)
        body = self._body(who, look, trouble, stored)
        if body is None:
            self._stored = stored
            return
        try:
            self._stored = await self._node.patch(who, body)
        except ApiError as error:
            if error.status != 404:
                raise
            # The object was deleted, perhaps by garbage collection with its node: create a new one.
            stored = await self._node.create(who)
            body = self._body(who, look, trouble, stored)
            self._stored = await self._node.patch(who, body) if body is not None else stored
        if logs.verbose(logs.REPORTS):
            count = 0 if look is None else len(look.images)
            log.info("report written", extra={"images": count, "bytes": len(body or b""), "trouble": trouble})

    def _body(
        self, who: NodeIdentity, look: InventoryFrame | None, trouble: str, stored: StoredNodeLayers
    ) -> bytes | None:
        """Return the patch; None if there is nothing to report."""
        sequence = next_sequence(stored.sequence, self._wall())
        renews = self._times.renews_within
        # A report of an earlier agent process stays valid, but not one of another node.
        standing = stored.node_uid == who.uid and (look is None or look is self._told[0])
        if trouble and standing:
            return encode_trouble(stored.conditions, trouble, self._wall(), sequence, renews)
        if look is None:
            return None
        report = report_of(look, who, sequence, renews)
        totals = ImageTotals(look.layers, look.size)
        return encode_node_layers_status(report, totals, trouble=trouble, before=stored.conditions)

    def _consider(self) -> None:
        if self._look is None and not self._trouble:
            return
        worth = _worth(self._told, (self._look, self._trouble))
        if worth == NOTHING:
            self._times.unchanged()
        else:
            self._times.changed(asyncio.get_running_loop().time(), at_leisure=worth == PROGRESS)
            self._wake.set()

    def _sober(self, look: InventoryFrame) -> InventoryFrame:
        """Limit the inventory's time to now."""
        return look if look.observed_at <= self._wall() else msgspec.structs.replace(look, observed_at=self._wall())


def _worth(before: ReportedState, now: ReportedState) -> int:
    return CHANGE if before[1] != now[1] else difference(before[0], now[0])


def difference(before: InventoryFrame | None, now: InventoryFrame | None) -> int:
    """Return how much two inventories differ, ignoring small variations."""
    if before is None or now is None:
        return NOTHING if before is now else CHANGE
    fields = [name for name in InventoryFrame.__struct_fields__ if getattr(before, name) != getattr(now, name)]
    if any(name not in FOR_PEOPLE and name not in WAVERING for name in fields):
        return CHANGE
    if any(name in FOR_PEOPLE for name in fields) or abs(before.disk_free - now.disk_free) > FREE_SHARE * now.disk:
        return PROGRESS
    rates = ((before.download_rate, now.download_rate), (before.unpack_rate, now.unpack_rate))
    return PROGRESS if any(abs(one - other) > RATE_SHARE * max(one, other) for one, other in rates) else NOTHING


def report_of(look: InventoryFrame, who: NodeIdentity, sequence: int, renews_within: float) -> LayerReport:
    """Convert an inventory to a report."""
    return LayerReport(
        node=who.name,
        node_uid=who.uid,
        sequence=sequence,
        observed_at=look.observed_at,
        images=node_agent_frames.held_images(look),
        reuse=look.reuse,
        renews_within=renews_within,
        download_rate=look.download_rate,
        unpack_rate=look.unpack_rate,
        disk=look.disk,
        disk_free=look.disk_free,
        pulling=node_agent_frames.pulls(look),
        runtime=node_agent_frames.runtime(look),
        platform=node_agent_frames.platform(look.platform),
    )
