"""
A heap whose entries can be replaced and discarded, and whose size follows what is in it now.

Replacing or discarding leaves the old entry behind as stale. Stale entries are dropped when they reach the top, and all
at once when they outnumber the live ones: amortised, every operation costs what it costs in a plain heap.
"""

import heapq
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Final, Generic, TypeVar

Value = TypeVar("Value", bound=Hashable)
Order = TypeVar("Order")

# Below this many stale entries, rebuilding costs more than keeping them.
FEW: Final = 8


class LazyHeap(Generic[Value, Order]):
    """Values in an order, each at most once; equal orders go by which value was put first."""

    __slots__ = ("_count", "_entries", "_live")

    def __init__(self) -> None:
        """Start empty."""
        self._count = 0
        # Any: heapq wants an order that can be compared, and type variables cannot say so.
        self._entries: list[Any] = []
        self._live: dict[Value, tuple[Order, int, Value]] = {}

    def __len__(self) -> int:
        """Count the values."""
        return len(self._live)

    def __contains__(self, value: Value) -> bool:
        """Say whether a value is in it."""
        return value in self._live

    def __iter__(self) -> Iterator[Value]:
        """Go through the values, in no particular order."""
        return iter(self._live)

    @property
    def entries(self) -> int:
        """The number of entries kept, stale ones included."""
        return len(self._entries)

    def put(self, value: Value, order: Order) -> None:
        """Add a value, or move it to another place."""
        self._count += 1
        entry = (order, self._count, value)
        self._live[value] = entry
        heapq.heappush(self._entries, entry)
        if len(self._entries) > 2 * len(self._live) + FEW:
            self._compact()

    def discard(self, value: Value) -> None:
        """Take a value out if it is in it."""
        if self._live.pop(value, None) is not None and len(self._entries) > 2 * len(self._live) + FEW:
            self._compact()

    def first(self) -> tuple[Order, Value] | None:
        """Return the first value with its order; None when there is none."""
        entries = self._entries
        while entries:
            entry: tuple[Order, int, Value] = entries[0]
            if self._live.get(entry[2]) is entry:
                return entry[0], entry[2]
            heapq.heappop(entries)
        return None

    def snapshot(self) -> tuple[tuple[Value, Order], ...]:
        """Return the values with their orders; putting them into an empty heap one by one makes the same heap."""
        return tuple((value, order) for order, _, value in sorted(self._live.values(), key=lambda entry: entry[1]))

    def pop(self) -> Value | None:
        """Take the first value out; None when there is none."""
        while self._entries:
            entry: tuple[Order, int, Value] = heapq.heappop(self._entries)
            if self._live.get(entry[2]) is entry:
                del self._live[entry[2]]
                return entry[2]
        return None

    def sort_anew(self, order: Callable[[Value], Order]) -> None:
        """Ask for every value's order again; equal ones keep the order in which they were put."""
        self._live = {value: (order(value), count, value) for value, (_, count, _) in self._live.items()}
        self._compact()

    def _compact(self) -> None:
        self._entries = list(self._live.values())
        heapq.heapify(self._entries)
