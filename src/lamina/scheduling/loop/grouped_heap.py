"""
Heap of values that come in groups: the first parts of an order are those of the group, the rest orders it inside.

    groups, by the first parts of their order ──> values of a group, by the rest of their order

Sorting again computes one order for each group, however many values it has. Same methods as `LazyHeap`.
"""

from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic, TypeVar

from lamina.scheduling.loop.lazy_heap import LazyHeap

Value = TypeVar("Value", bound=Hashable)
Order = tuple[Any, ...]  # Any: whatever sorts


class GroupedHeap(Generic[Value]):
    """Ordered values, each at most once; values of equal order in a group leave in the order of insertion."""

    __slots__ = ("_group_of", "_groups", "_heads", "_members", "_parts")

    def __init__(self, group_of: Callable[[Value], Hashable], parts: int) -> None:
        """Start empty; the first *parts* of an order are equal for all values for which *group_of* is."""
        self._group_of = group_of
        self._parts = parts
        self._members: dict[Hashable, LazyHeap[Value, Order]] = {}
        self._heads: LazyHeap[Hashable, Order] = LazyHeap()
        self._groups: dict[Value, Hashable] = {}
        """The group of each value, as it was when the value was added."""

    def __len__(self) -> int:
        """Return the number of values."""
        return len(self._groups)

    def __contains__(self, value: Value) -> bool:
        """Return whether a value is in the heap."""
        return value in self._groups

    def __iter__(self) -> Iterator[Value]:
        """Iterate over the values in no particular order."""
        return iter(self._groups)

    def put(self, value: Value, order: Order) -> None:
        """Add a value, or change its order."""
        self.discard(value)
        group = self._groups[value] = self._group_of(value)
        members = self._members.get(group)
        if members is None:
            members = self._members[group] = LazyHeap()
        members.put(value, order[self._parts :])
        self._heads.put(group, order[: self._parts])

    def discard(self, value: Value) -> None:
        """Remove a value if it is in the heap."""
        if value not in self._groups:
            return
        group = self._groups.pop(value)
        members = self._members[group]
        members.discard(value)
        if not len(members):
            del self._members[group]
            self._heads.discard(group)

    def first(self) -> tuple[Order, Value] | None:
        """Return the first value with its order, or None."""
        head = self._heads.first()
        if head is None:
            return None
        inside = self._members[head[1]].first()
        assert inside is not None, "a group has at least one value"
        return (*head[0], *inside[0]), inside[1]

    def pop(self) -> Value | None:
        """Remove and return the first value, or None."""
        found = self.first()
        if found is None:
            return None
        self.discard(found[1])
        return found[1]

    def take(self, wanted: Callable[[Value], bool], most: int, passed: int) -> list[tuple[Value, Order]]:
        """
        Remove and return the first *most* wanted values, with their orders; look past *passed* others at most.

        Those others leave after values of equal order from then on.
        """
        found: list[tuple[Value, Order]] = []
        others: list[tuple[Value, Order]] = []
        while len(found) < most and len(others) <= passed and (first := self.first()) is not None:
            order, value = first
            self.discard(value)
            (found if wanted(value) else others).append((value, order))
        for value, order in others:
            self.put(value, order)
        return found

    def reorder(self, order: Callable[[Value], Order]) -> None:
        """Compute the order of every group again, from one of its values."""
        orders: dict[Hashable, Order] = {}
        for group, members in self._members.items():
            first = members.first()
            assert first is not None, "a group has at least one value"
            orders[group] = order(first[1])[: self._parts]
        self._heads.reorder(orders.__getitem__)

    def snapshot(self) -> tuple[tuple[Value, Order], ...]:
        """Return values with their orders; putting them into an empty heap one by one gives an equal heap."""
        heads = dict(self._heads.snapshot())
        found = [
            (value, (*heads[group], *order))
            for group, members in self._members.items()
            for value, order in members.snapshot()
        ]
        return tuple(found)
