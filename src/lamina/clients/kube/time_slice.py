"""
Long work on the event loop, in slices.

A list of 150,000 pods takes seconds to read. Whoever does such work asks after every object whether it is time to let
others run; a bind or a renewed lease waits for one slice and not for the whole list.
"""

import asyncio
import time
from typing import Final

SLICE: Final = 0.008
"""Seconds of work between two chances for others."""


class TimeSlice:
    """Keeps the time since others last had a chance."""

    def __init__(self) -> None:
        self._since = time.perf_counter()

    def due(self) -> bool:
        """Whether others should have a chance now."""
        return time.perf_counter() - self._since > SLICE

    async def pause(self) -> None:
        """Let others run."""
        await asyncio.sleep(0)
        self._since = time.perf_counter()
