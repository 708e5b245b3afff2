"""
What is kept of objects that have ended: which one it was, and nothing of its content.

A pod that has succeeded or failed stays in the API server until it is deleted, and changes a few times more. The sink gets
it once. So that later versions and lists do not bring it again, the mirror keeps its name here. The number is bounded and
the oldest go first; an object whose tombstone has gone is put once more if the server sends it again.

Used by the mirror only.
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
    """The list it was last seen in, or the one before the event that brought it."""


class Tombstones:
    """The newest of the objects that have ended, by name."""

    def __init__(self, most: int = MOST_ENDED) -> None:
        """Keep *most* of them."""
        self._most = most
        self._stones: OrderedDict[str, Tombstone] = OrderedDict()

    def __len__(self) -> int:
        return len(self._stones)

    def put(self, name: str, uid: str, number: int) -> None:
        """Keep that an object has ended; *number* is the list's."""
        self._stones.pop(name, None)
        self._stones[name] = Tombstone(uid, number)
        if len(self._stones) > self._most:
            self._stones.popitem(last=False)

    def knows(self, name: str, uid: str, number: int) -> bool:
        """Whether this very object has ended; if so, it was seen in list *number*. An object never begins again."""
        stone = self._stones.get(name)
        if stone is None or not uid or stone.uid != uid:
            return False
        stone.round = number
        return True

    def drop(self, name: str) -> None:
        """Forget an object that is gone, or whose name another one has."""
        self._stones.pop(name, None)

    def clear(self) -> None:
        """Forget all of them."""
        self._stones.clear()

    def finish(self, number: int) -> None:
        """Forget what list *number* did not have."""
        for name in [name for name, stone in self._stones.items() if stone.round != number]:
            del self._stones[name]
