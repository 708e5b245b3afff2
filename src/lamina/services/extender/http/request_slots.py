"""
The places for large requests: there are few, because each may need its size twice, once as a question and once as an answer.

Who finds none waits in line and is not read meanwhile; the caller notices by its own writes.
"""

from collections import deque
from typing import Protocol


class SlotWaiter(Protocol):
    """Who wants a place."""

    def seat(self) -> None:
        """Go on: a place was given."""


class RequestSlots:
    """So many at once, the others in the order they came."""

    def __init__(self, count: int) -> None:
        """Start with all places free."""
        self._free = count
        self._line: deque[SlotWaiter] = deque()

    def take(self, guest: SlotWaiter) -> bool:
        """Take a place if there is one; otherwise `seat` is called when it is the guest's turn."""
        if self._free:
            self._free -= 1
            return True
        self._line.append(guest)
        return False

    def leave(self, guest: SlotWaiter) -> None:
        """Wait no longer."""
        if guest in self._line:
            self._line.remove(guest)

    def free(self) -> None:
        """Give a place back; the next in line gets it."""
        if self._line:
            self._line.popleft().seat()
        else:
            self._free += 1
