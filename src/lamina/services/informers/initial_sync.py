"""
Python's garbage collection during the initial sync of a cluster.

A large cluster is hundreds of thousands of objects that arrive at once and stay. None of them is garbage, but the
collector would scan all of them repeatedly. So collection is paused until the caches are synced, and the objects
present by then are frozen (`gc.freeze`). For services that watch a cluster for as long as they run.
"""

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

THRESHOLDS: Final = (100_000, 50, 100)
"""For after the sync: long-lived objects are frozen by then; the rest is short-lived and seldom forms cycles."""
SYNC_TIMEOUT: Final = 60.0
"""Seconds to wait for the initial sync with garbage collection paused."""
BETWEEN_LOOKS: Final = 0.02


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause garbage collection until `wait_synced` returns or the block ends."""
    thresholds = gc.get_threshold()
    gc.disable()
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.enable()


async def wait_synced(seen: Callable[[], bool]) -> None:
    """Wait until *seen* returns true; then freeze all objects and resume garbage collection."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + SYNC_TIMEOUT
    while not seen():
        await asyncio.sleep(BETWEEN_LOOKS)
        if loop.time() > deadline:
            # The cluster may be unreachable: the failed attempts leave garbage that must be collected.
            gc.enable()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    gc.enable()
