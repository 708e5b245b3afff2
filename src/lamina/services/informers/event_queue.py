"""
What has been seen and not been taken in yet, in order.

Watches put events in as they come; whoever feeds the core takes them out in portions, so that a relist of a large
cluster does not hold everything else up.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Protocol

from lamina.model.events import Event, ImagesLearned


class EventSink(Protocol):
    """Where events go in: the inbox itself, or whoever stands in front of it."""

    def put(self, event: Event, /) -> None:
        """Take an event."""

    def ring(self) -> None:
        """Wake whoever waits inside, although nothing came."""


class EventQueue:
    """Events in order, and a bell."""

    def __init__(self) -> None:
        """Start empty."""
        self._events: deque[Event] = deque()
        self._bell = asyncio.Event()

    def __len__(self) -> int:
        """Count what waits."""
        return len(self._events)

    def put(self, event: Event) -> None:
        """Add an event."""
        self._events.append(event)
        self._bell.set()

    def ring(self) -> None:
        """Wake whoever waits, although nothing came."""
        self._bell.set()

    def take(self, most: int) -> list[Event]:
        """Take up to *most* events out."""
        events = self._events
        taken = [events.popleft() for _ in range(min(most, len(events)))]
        if not events:
            self._bell.clear()
        return list(_joined(taken))

    async def wait(self, timeout: float | None) -> None:
        """Wait until something comes, but no longer than *timeout* seconds (None: as long as it takes)."""
        if self._bell.is_set() or (timeout is not None and timeout <= 0):
            return
        try:
            async with asyncio.timeout(timeout):
                await self._bell.wait()
        except TimeoutError:
            return


def _joined(events: Iterable[Event]) -> Iterable[Event]:
    """Join images that were learned one after the other: everything that waits for images is looked at once for all."""
    images: list[ImagesLearned] = []
    for event in events:
        if isinstance(event, ImagesLearned) and event.good_for == 0:
            images.append(event)
            continue
        if images:
            yield ImagesLearned(tuple(image for one in images for image in one.images))
            images = []
        yield event
    if images:
        yield ImagesLearned(tuple(image for one in images for image in one.images))
