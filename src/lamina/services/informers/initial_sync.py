"""
The first look at a cluster, and the garbage collector, which is in the way of it.

A large cluster is hundreds of thousands of objects that come at once and stay. Nothing of it is garbage, but the collector
would go through all of it again and again while it comes. So nothing is collected until everything was seen, and what is
there by then is taken out of its rounds. Used by services that watch a cluster for as long as they run.
"""

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

THRESHOLDS: Final = (100_000, 50, 100)
"""What is kept for long is frozen after the first look; the rest is short-lived and seldom forms cycles."""
SYNC_TIMEOUT: Final = 60.0
"""Seconds for everything to be seen, without garbage being collected meanwhile."""
BETWEEN_LOOKS: Final = 0.02


@contextmanager
def gc_paused() -> Iterator[None]:
    """Collect no garbage from here on, until `wait_synced` or the end of the block."""
    usual = gc.get_threshold()
    gc.disable()
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.enable()


async def wait_synced(seen: Callable[[], bool]) -> None:
    """Wait for *seen*, and collect garbage from then on, but not what is there by then."""
    loop = asyncio.get_running_loop()
    patience = loop.time() + SYNC_TIMEOUT
    while not seen():
        await asyncio.sleep(BETWEEN_LOOKS)
        if loop.time() > patience:
            # Who cannot reach the cluster tries again and again, and what that leaves behind has to go.
            gc.enable()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    gc.enable()
