"""
Tombstones of objects that have ended: name and UID, without content.

A pod that has succeeded or failed stays in the API server until it is deleted, and changes a few more times. The sink
receives it once. The store keeps its name here, so that later versions and lists do not put it again. The number is
bounded and the oldest are dropped first; an object without its tombstone is put once more if the server sends it again.

Only `ReflectorStore` uses this.
"""

from collections import OrderedDict
from typing import Final

import msgspec

MOST_ENDED: Final = 16_384
"""More than kube-controller-manager leaves in a cluster by default (``--terminated-pod-gc-threshold``, 12,500)."""


class Tombstone(msgspec.Struct, gc=False):
    """One object that has ended."""

    uid: str
    round: int
    """Number of the list it was last seen in; for an object from a watch event, the latest list."""


class Tombstones:
    """The most recent ended objects, by name."""

    def __init__(self, most: int = MOST_ENDED) -> None:
        """Keep at most *most* tombstones."""
        self._most = most
        self._stones: OrderedDict[str, Tombstone] = OrderedDict()

    def __len__(self) -> int:
        return len(self._stones)

    def put(self, name: str, uid: str, number: int) -> None:
        """Record that an object has ended; *number* is that of the current list."""
        self._stones.pop(name, None)
        self._stones[name] = Tombstone(uid, number)
        if len(self._stones) > self._most:
            self._stones.popitem(last=False)

    def knows(self, name: str, uid: str, number: int) -> bool:
        """Return whether this object (same UID) has ended, and record that list *number* contains it."""
        stone = self._stones.get(name)
        if stone is None or not uid or stone.uid != uid:
            return False
        stone.round = number
        return True

    def drop(self, name: str) -> None:
        """Remove the tombstone of a deleted object, or of a name that a new object has."""
        self._stones.pop(name, None)

    def clear(self) -> None:
        """Remove all tombstones."""
        self._stones.clear()

    def finish(self, number: int) -> None:
        """Remove tombstones that list *number* did not contain."""
        for name in [name for name, stone in self._stones.items() if stone.round != number]:
            del self._stones[name]
