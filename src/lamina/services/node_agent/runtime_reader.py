"""
Looks at the runtime for as long as the process lives, and says what it saw or why it could not.

    look --> tell --> wait until something may have changed --> look ...
      |                                                |
      +------------ trouble: tell, back off <----------+

The last good look stays good: a runtime that cannot be asked has not lost its images. Whatever happens, a look begins at
most once a second, and ends within `LOOK_LIMIT`. A runtime that stays away is looked for anew, because it may have been
replaced by another.
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
"""Seconds a look may take. Each call has a limit of its own; a first look at 2,000 images takes about 30."""
WAIT_LIMIT: Final = 600.0
"""Seconds after which the runtime is looked at even if nothing was heard of a change."""
GAP: Final = 1.0
"""Seconds between the beginnings of two looks."""
ANEW: Final = 5
"""Failures in a row after which the runtime is looked for anew; by then it has been away for half a minute."""

OpenSource: TypeAlias = Callable[[], Awaitable[RuntimeSource]]

log = logging.getLogger(__name__)


class InventorySink(Protocol):
    """Who is told; `outlet.Outlet`, or a page."""

    def tell(self, look: InventoryFrame, images: tuple[StoredImage, ...]) -> None:
        """Hear of a look that went well."""

    def tell_trouble(self, problem: str) -> None:
        """Hear of a runtime that cannot be asked, in one line."""


class RuntimeReader:
    """Looks at one runtime."""

    def __init__(
        self,
        open_source: OpenSource,
        hearer: InventorySink,
        rng: random.Random,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Look at what *open_source* finds and tell *hearer*; *wall* tells seconds since 1970."""
        self._open, self._hearer, self._wall = open_source, hearer, wall
        self._source: RuntimeSource | None = None
        self._patience = ReportBackoff(rng)
        self._looks = InventoryFrameBuilder()
        self._failures = 0
        self._problem = ""

    async def run(self) -> None:
        """Look for ever."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                began = loop.time()
                try:
                    await self._look()
                except Exception as error:  # noqa: BLE001 - whatever a runtime answers: the last good look is kept
                    await self._failed(error)
                await asyncio.sleep(max(began + GAP - loop.time(), 0.0))
        finally:
            await self._let_go()

    async def _look(self) -> None:
        """Look once, tell, and wait for a change."""
        observed_at = self._wall()
        async with asyncio.timeout(LOOK_LIMIT):
            if self._source is None:
                self._source = await self._open()
            holdings = await self._source.look()
        self._went_well(holdings)
        self._hearer.tell(self._looks.of(holdings, observed_at), holdings.images)
        del holdings
        changing = asyncio.ensure_future(self._source.changed())
        try:
            await asyncio.wait([changing], timeout=WAIT_LIMIT)
            if changing.done():
                changing.result()
        finally:
            changing.cancel()
            await asyncio.gather(changing, return_exceptions=True)

    def _went_well(self, holdings: Holdings) -> None:
        if self._problem:
            log.info("the runtime answers again", extra={"runtime": holdings.runtime.name})
        elif logs.verbose(logs.LOOKS):
            log.info("looked", extra={"images": len(holdings.images), "pulling": len(holdings.pulling)})
        self._failures, self._problem = 0, ""
        self._patience.went_well()

    async def _failed(self, error: Exception) -> None:
        problem = describe_problem(error)
        if problem != self._problem:
            strange = not isinstance(error, RuntimeSourceError | TimeoutError | OSError)
            log.warning("the runtime cannot be asked", extra={"problem": problem}, exc_info=error if strange else None)
        self._problem = problem
        self._hearer.tell_trouble(problem)
        self._failures += 1
        if self._failures % ANEW == 0:
            await self._let_go()
        await asyncio.sleep(self._patience.after_failure())

    async def _let_go(self) -> None:
        source, self._source = self._source, None
        if source is None:
            return
        try:
            async with asyncio.timeout(1.0):
                await source.close()
        except Exception as error:  # noqa: BLE001 - it is of no further use, whatever it says
            log.info("the runtime was let go of in disorder", extra={"problem": describe_problem(error)})


def describe_problem(error: Exception) -> str:
    """Say in one line what is wrong."""
    match error:
        case RuntimeSourceError():
            text = str(error)
        case TimeoutError():
            text = f"no answer within {LOOK_LIMIT:g} seconds; is the runtime overloaded?"
        case MemoryError():
            text = "there is too little memory to look at all images; raise the limit of the container"
        case OSError():
            text = f"{error.strerror or type(error).__name__}"
        case _:
            text = f"unexpected: {type(error).__name__}"
    return " ".join(text.split())
