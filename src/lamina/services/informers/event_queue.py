"""
Queue of events between the informers and the decision loop.

The informers add events as they arrive. The service takes them out in batches, so that a relist of a large cluster does
not delay everything else.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Protocol

from lamina.model.events import Event, ImagesLearned


class EventSink(Protocol):
    """Receives events: the queue itself, or the image gate in front of it."""

    def put(self, event: Event, /) -> None:
        """Accept an event."""

    def wake(self) -> None:
        """Wake the reader of the queue, although there is no new event."""


class EventQueue:
    """FIFO queue of events with a wake flag."""

    def __init__(self) -> None:
        """Start empty."""
        self._events: deque[Event] = deque()
        self._wake_flag = asyncio.Event()

    def __len__(self) -> int:
        """Return the number of events in the queue."""
        return len(self._events)

    def put(self, event: Event) -> None:
        """Add an event."""
        self._events.append(event)
        self._wake_flag.set()

    def wake(self) -> None:
        """Wake the reader, although there is no new event."""
        self._wake_flag.set()

    def take(self, most: int) -> list[Event]:
        """Remove and return up to *most* events; clear the wake flag when the queue is empty."""
        events = self._events
        taken = [events.popleft() for _ in range(min(most, len(events)))]
        if not events:
            self._wake_flag.clear()
        return list(_joined(taken))

    async def wait(self, timeout: float | None) -> None:
        """Wait until an event or a wake-up arrives, for *timeout* seconds at most (None: without limit)."""
        if self._wake_flag.is_set() or (timeout is not None and timeout <= 0):
            return
        try:
            async with asyncio.timeout(timeout):
                await self._wake_flag.wait()
        except TimeoutError:
            return


def _joined(events: Iterable[Event]) -> Iterable[Event]:
    """Merge consecutive `ImagesLearned` events, so that waiting pods are checked once for all of them."""
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
