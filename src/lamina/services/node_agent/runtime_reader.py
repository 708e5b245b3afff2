"""
Reader of the runtime's inventory: reads it repeatedly, and reports images or problems.

    read --> send --> wait until something may have changed --> read ...
      |                                                |
      +---------- problem: send it, back off <---------+

The last good inventory stays valid: a runtime that does not answer has not lost its images. A read starts at most once
a second and ends within `LOOK_LIMIT`. After several failures the runtime is searched again, because it may have been
replaced by another one.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeAlias

from lamina.clients.cri.runtime_source import RuntimeSource, RuntimeSourceError
from lamina.model.holdings import Holdings, StoredImage
from lamina.services.node_agent import logs
from lamina.services.node_agent.inventory_frames import InventoryFrameBuilder
from lamina.services.node_agent.report_backoff import ReportBackoff
from lamina.wire.node_agent_frames import InventoryFrame

LOOK_LIMIT: Final = 120.0
"""
Seconds that a read may take. Each call has a limit of its own; a first read of 2,000 images takes about 30 seconds.
"""
WAIT_LIMIT: Final = 600.0
"""Seconds after which the runtime is read even without an event."""
GAP: Final = 1.0
"""Seconds between the starts of two reads."""
ANEW: Final = 5
"""Consecutive failures after which the runtime is searched again; half a minute has passed by then."""

OpenSource: TypeAlias = Callable[[], Awaitable[RuntimeSource]]

log = logging.getLogger(__name__)


class InventorySink(Protocol):
    """Receives inventories: `PipeSender`, or `InventoryChangeLog`."""

    def send(self, look: InventoryFrame, images: tuple[StoredImage, ...]) -> None:
        """Accept a new inventory."""

    def send_problem(self, problem: str) -> None:
        """Accept a problem of the runtime, in one line."""


class RuntimeReader:
    """Reads the inventory of one runtime."""

    def __init__(
        self,
        open_source: OpenSource,
        sink: InventorySink,
        rng: random.Random,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Read the runtime that *open_source* finds, and report to *sink*; *wall* returns seconds since 1970."""
        self._open, self._sink, self._wall = open_source, sink, wall
        self._source: RuntimeSource | None = None
        self._backoff = ReportBackoff(rng)
        self._frames = InventoryFrameBuilder()
        self._failures = 0
        self._problem = ""

    async def run(self) -> None:
        """Read until cancelled."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                began = loop.time()
                try:
                    await self._look()
                except Exception as error:  # noqa: BLE001 - no reply of a runtime may end the reader
                    await self._failed(error)
                await asyncio.sleep(max(began + GAP - loop.time(), 0.0))
        finally:
            await self._close_source()

    async def _look(self) -> None:
        """Read once, send, and wait for a change."""
        observed_at = self._wall()
        async with asyncio.timeout(LOOK_LIMIT):
            if self._source is None:
                self._source = await self._open()
            holdings = await self._source.look()
        self._succeeded(holdings)
        self._sink.send(self._frames.of(holdings, observed_at), holdings.images)
        del holdings
        changing = asyncio.ensure_future(self._source.changed())
        try:
            await asyncio.wait([changing], timeout=WAIT_LIMIT)
            if changing.done():
                changing.result()
        finally:
            changing.cancel()
            await asyncio.gather(changing, return_exceptions=True)

    def _succeeded(self, holdings: Holdings) -> None:
        if self._problem:
            log.info("runtime recovered", extra={"runtime": holdings.runtime.name})
        elif logs.verbose(logs.LOOKS):
            log.info("inventory read", extra={"images": len(holdings.images), "pulling": len(holdings.pulling)})
        self._failures, self._problem = 0, ""
        self._backoff.went_well()

    async def _failed(self, error: Exception) -> None:
        problem = describe_problem(error)
        if problem != self._problem:
            strange = not isinstance(error, RuntimeSourceError | TimeoutError | OSError)
            log.warning(
                "runtime read failed, retrying", extra={"problem": problem}, exc_info=error if strange else None
            )
        self._problem = problem
        self._sink.send_problem(problem)
        self._failures += 1
        if self._failures % ANEW == 0:
            await self._close_source()
        await asyncio.sleep(self._backoff.after_failure())

    async def _close_source(self) -> None:
        source, self._source = self._source, None
        if source is None:
            return
        try:
            async with asyncio.timeout(1.0):
                await source.close()
        except Exception as error:  # noqa: BLE001 - the connection is dropped in any case
            log.info("closing the runtime failed", extra={"problem": describe_problem(error)})


def describe_problem(error: Exception) -> str:
    """Describe an error in one line."""
    match error:
        case RuntimeSourceError():
            text = str(error)
        case TimeoutError():
            text = f"no answer within {LOOK_LIMIT:g} seconds; check whether the runtime is overloaded"
        case MemoryError():
            text = "not enough memory to read all images; raise the container's memory limit"
        case OSError():
            text = f"{error.strerror or type(error).__name__}"
        case _:
            text = f"unexpected: {type(error).__name__}"
    return " ".join(text.split())
