"""
Heap of values that come in groups: the first parts of an order are those of the group, the rest orders it inside.

    groups, by the order of their first values ──> values of a group, by the rest of their order

Sorting again computes one order for each group, however many values it has. Same methods and same order as `LazyHeap`.
"""

from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic, TypeVar

from lamina.scheduling.loop.lazy_heap import LazyHeap

Value = TypeVar("Value", bound=Hashable)
Order = tuple[Any, ...]  # Any: whatever sorts
Inside = tuple[Order, int]
"""Order of a value inside its group: the rest of its order, and a number that increases with every insertion."""
Head = tuple[Order, Order, int]
"""Order of a group: the first parts, and the order of its first value inside."""


class GroupedHeap(Generic[Value]):
    """Ordered values, each at most once; values of equal order leave in the order of insertion."""

    __slots__ = ("_count", "_first", "_group_of", "_groups", "_heads", "_members", "_parts")

    def __init__(self, group_of: Callable[[Value], Hashable], parts: int) -> None:
        """Start empty; the first *parts* of an order are equal for all values for which *group_of* is."""
        self._group_of = group_of
        self._parts = parts
        self._count = 0
        self._members: dict[Hashable, LazyHeap[Value, Inside]] = {}
        self._heads: LazyHeap[Hashable, Head] = LazyHeap()
        self._first: dict[Hashable, Head] = {}
        """The order of each group."""
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
        self._count += 1
        self._put(value, order, self._count)

    def discard(self, value: Value) -> None:
        """Remove a value if it is in the heap."""
        if value not in self._groups:
            return
        group = self._groups.pop(value)
        members = self._members[group]
        members.discard(value)
        if len(members):
            self._put_head(group, self._first[group][0])
        else:
            del self._members[group], self._first[group]
            self._heads.discard(group)

    def first(self) -> tuple[Order, Value] | None:
        """Return the first value with its order, or None."""
        head = self._heads.first()
        if head is None:
            return None
        (parts, rest, _), group = head
        inside = self._members[group].first()
        assert inside is not None, "a group has at least one value"
        return (*parts, *rest), inside[1]

    def pop(self) -> Value | None:
        """Remove and return the first value, or None."""
        found = self.first()
        if found is None:
            return None
        self.discard(found[1])
        return found[1]

    def take(self, wanted: Callable[[Value], bool], most: int, passed: int) -> list[tuple[Value, Order]]:
        """Remove and return the first *most* wanted values, with their orders; look past *passed* others at most."""
        found: list[tuple[Value, Order]] = []
        others: list[tuple[Value, Order, int]] = []
        while len(found) < most and len(others) <= passed and (first := self.first()) is not None:
            order, value = first
            number = self._first[self._groups[value]][2]
            self.discard(value)
            if wanted(value):
                found.append((value, order))
            else:
                others.append((value, order, number))
        for value, order, number in others:
            self._put(value, order, number)
        return found

    def reorder(self, order: Callable[[Value], Order]) -> None:
        """Compute the order of every group again, from one of its values."""
        for group, members in self._members.items():
            first = members.first()
            assert first is not None, "a group has at least one value"
            self._first[group] = (order(first[1])[: self._parts], *first[0])
        self._heads.reorder(self._first.__getitem__)

    def snapshot(self) -> tuple[tuple[Value, Order], ...]:
        """Return values with their orders; putting them into an empty heap one by one gives an equal heap."""
        found = [
            (number, value, (*self._first[group][0], *rest))
            for group, members in self._members.items()
            for value, (rest, number) in members.snapshot()
        ]
        return tuple((value, order) for _, value, order in sorted(found, key=lambda one: one[0]))

    def _put(self, value: Value, order: Order, number: int) -> None:
        self.discard(value)
        group = self._groups[value] = self._group_of(value)
        members = self._members.get(group)
        if members is None:
            members = self._members[group] = LazyHeap()
        members.put(value, (order[self._parts :], number))
        self._put_head(group, order[: self._parts])

    def _put_head(self, group: Hashable, parts: Order) -> None:
        first = self._members[group].first()
        assert first is not None, "a group has at least one value"
        head: Head = (parts, *first[0])
        if self._first.get(group) != head:
            self._first[group] = head
            self._heads.put(group, head)
