"""
Find the waiting groups that could fit into what a node offers, without asking for each of them.

Groups that need the same resources form a class. A class keeps its groups sorted by amount, once for each resource, so
that the resource of which the node offers least (measured in groups it would satisfy) leaves few to look at. A class is
filed under the one of its resources that the fewest other classes are filed under: classes that need something
the node does not have are not looked at.
"""

import bisect
from collections.abc import Iterator, Mapping
from typing import Final

Needs = Mapping[str, int]
"""Amounts above zero by resource."""
# A pod can name thousands of resources; sorting by a few of them finds it as well.
MOST_SORTED: Final = 8


class _Class:
    """Groups that need the same resources."""

    __slots__ = ("filed_under", "names", "needs", "sorted")

    def __init__(self, names: frozenset[str], filed_under: str) -> None:
        self.names = names
        self.filed_under = filed_under
        self.needs: dict[int, Needs] = {}
        self.sorted: dict[str, list[tuple[int, int]]] = {name: [] for name in sorted(names)[:MOST_SORTED]}

    def add(self, number: int, needs: Needs) -> None:
        self.needs[number] = needs
        for name, entries in self.sorted.items():
            bisect.insort(entries, (needs[name], number))

    def remove(self, number: int) -> None:
        needs = self.needs.pop(number)
        for name, entries in self.sorted.items():
            del entries[bisect.bisect_left(entries, (needs[name], number))]

    def within(self, offered: Needs) -> Iterator[int]:
        fewest: list[tuple[int, int]] = []
        count = len(self.needs) + 1
        for name, entries in self.sorted.items():
            # Sorts before every entry of a larger amount, whatever the group's number.
            satisfied = bisect.bisect_left(entries, (offered[name] + 1,))
            if satisfied < count:
                fewest, count = entries, satisfied
            if count == 0:
                return
        for _, number in fewest[:count]:
            if all(offered[name] >= amount for name, amount in self.needs[number].items()):
                yield number


class AmountIndex:
    """Groups by the amounts they need."""

    __slots__ = ("_classes", "_filed", "_of")

    def __init__(self) -> None:
        """Start empty."""
        self._classes: dict[frozenset[str], _Class] = {}
        self._filed: dict[str, dict[frozenset[str], _Class]] = {}
        self._of: dict[int, _Class] = {}

    def __len__(self) -> int:
        """Count the groups."""
        return len(self._of)

    def add(self, number: int, needs: Needs) -> None:
        """Take a group in that needs something."""
        names = frozenset(needs)
        one = self._classes.get(names)
        if one is None:
            rarest = min(sorted(names), key=lambda name: len(self._filed.get(name, ())))
            one = self._classes[names] = _Class(names, rarest)
            self._filed.setdefault(rarest, {})[names] = one
        one.add(number, needs)
        self._of[number] = one

    def remove(self, number: int) -> None:
        """Take a group out."""
        one = self._of.pop(number)
        one.remove(number)
        if not one.needs:
            del self._classes[one.names]
            filed = self._filed[one.filed_under]
            del filed[one.names]
            if not filed:
                del self._filed[one.filed_under]

    def within(self, offered: Needs) -> list[int]:
        """List the groups that need no more than *offered*, of every resource."""
        found: list[int] = []
        for name in offered:
            for one in self._filed.get(name, {}).values():
                if one.names <= offered.keys():
                    found.extend(one.within(offered))
        return found
