"""
Heap with replaceable and removable entries; its size stays proportional to its content.

Replaced and removed entries remain in the heap as stale. Stale entries are dropped at the top, and all at once when
they outnumber the live ones. Amortised, every operation costs as much as in a plain heap.
"""

import heapq
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Final, Generic, TypeVar

Value = TypeVar("Value", bound=Hashable)
Order = TypeVar("Order")

# Below this many stale entries, rebuilding costs more than keeping them.
FEW: Final = 8


class LazyHeap(Generic[Value, Order]):
    """Ordered values, each at most once; values of equal order leave in the order of insertion."""

    __slots__ = ("_count", "_entries", "_live")

    def __init__(self) -> None:
        """Start empty."""
        self._count = 0
        # Any: heapq needs comparable entries, which type variables cannot express.
        self._entries: list[Any] = []
        self._live: dict[Value, tuple[Order, int, Value]] = {}

    def __len__(self) -> int:
        """Return the number of values."""
        return len(self._live)

    def __contains__(self, value: Value) -> bool:
        """Return whether a value is in the heap."""
        return value in self._live

    def __iter__(self) -> Iterator[Value]:
        """Iterate over the values in no particular order."""
        return iter(self._live)

    @property
    def entries(self) -> int:
        """Number of stored entries, including stale ones."""
        return len(self._entries)

    def put(self, value: Value, order: Order) -> None:
        """Add a value, or change its order."""
        self._count += 1
        entry = (order, self._count, value)
        self._live[value] = entry
        heapq.heappush(self._entries, entry)
        if len(self._entries) > 2 * len(self._live) + FEW:
            self._compact()

    def discard(self, value: Value) -> None:
        """Remove a value if it is in the heap."""
        if self._live.pop(value, None) is not None and len(self._entries) > 2 * len(self._live) + FEW:
            self._compact()

    def first(self) -> tuple[Order, Value] | None:
        """Return the first value with its order, or None."""
        entries = self._entries
        while entries:
            entry: tuple[Order, int, Value] = entries[0]
            if self._live.get(entry[2]) is entry:
                return entry[0], entry[2]
            heapq.heappop(entries)
        return None

    def snapshot(self) -> tuple[tuple[Value, Order], ...]:
        """Return values with their orders; putting them into an empty heap one by one gives an equal heap."""
        return tuple((value, order) for order, _, value in sorted(self._live.values(), key=lambda entry: entry[1]))

    def pop(self) -> Value | None:
        """Remove and return the first value, or None."""
        while self._entries:
            entry: tuple[Order, int, Value] = heapq.heappop(self._entries)
            if self._live.get(entry[2]) is entry:
                del self._live[entry[2]]
                return entry[2]
        return None

    def take(self, wanted: Callable[[Value], bool], most: int, passed: int) -> list[tuple[Value, Order]]:
        """Remove and return the first *most* wanted values, with their orders; look past *passed* others at most."""
        found: list[tuple[Value, Order]] = []
        others: list[Any] = []
        while len(found) < most and len(others) <= passed and self.first() is not None:
            entry: tuple[Order, int, Value] = heapq.heappop(self._entries)
            if wanted(entry[2]):
                del self._live[entry[2]]
                found.append((entry[2], entry[0]))
            else:
                others.append(entry)
        for entry in others:
            heapq.heappush(self._entries, entry)
        return found

    def reorder(self, order: Callable[[Value], Order]) -> None:
        """Recompute the order of every value; equal ones keep the order of insertion."""
        self._live = {value: (order(value), count, value) for value, (_, count, _) in self._live.items()}
        self._compact()

    def _compact(self) -> None:
        self._entries = list(self._live.values())
        heapq.heapify(self._entries)


def take_due(heap: LazyHeap[Value, tuple[float, int]], now: float) -> Iterator[Value]:
    """Remove and yield what is due, including entries that are added meanwhile."""
    while (first := heap.first()) is not None and first[0][0] <= now:
        heap.discard(first[1])
        yield first[1]
