"""
Slots for large requests.

There are few, because each may need its size in memory twice, for the request and for the response. A connection
without a slot waits and is not read meanwhile, so the client's writes block.
"""

from collections import deque
from typing import Protocol


class SlotWaiter(Protocol):
    """A connection that waits for a slot."""

    def slot_granted(self) -> None:
        """Continue: a slot was granted."""


class RequestSlots:
    """Semaphore with a FIFO queue."""

    def __init__(self, count: int) -> None:
        """Start with *count* free slots."""
        self._free = count
        self._queue: deque[SlotWaiter] = deque()

    def acquire(self, waiter: SlotWaiter) -> bool:
        """Take a slot if one is free; otherwise call the waiter's `slot_granted` when it is its turn."""
        if self._free:
            self._free -= 1
            return True
        self._queue.append(waiter)
        return False

    def cancel(self, waiter: SlotWaiter) -> None:
        """Remove a waiter from the queue."""
        if waiter in self._queue:
            self._queue.remove(waiter)

    def release(self) -> None:
        """Return a slot; the next waiter gets it."""
        if self._queue:
            self._queue.popleft().slot_granted()
        else:
            self._free += 1
