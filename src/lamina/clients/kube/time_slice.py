"""
Cooperative time slices for long work on the event loop.

Decoding a list of 150,000 pods takes seconds. Such a loop checks `due` after every object and then yields. So a binding
or a lease renewal waits for one slice and not for the whole list.
"""

import asyncio
import time
from typing import Final

SLICE: Final = 0.008
"""Seconds of work between two yields to the event loop."""


class TimeSlice:
    """Time since the last yield to the event loop."""

    def __init__(self) -> None:
        self._since = time.perf_counter()

    def due(self) -> bool:
        """Return whether the slice is used up."""
        return time.perf_counter() - self._since > SLICE

    async def pause(self) -> None:
        """Yield to the event loop and start a new slice."""
        await asyncio.sleep(0)
        self._since = time.perf_counter()
