"""
Index that finds the waiting groups whose needs a node's offer satisfies, without checking every group.

Groups that need the same set of resources form a class. A class sorts its groups by amount, once for each resource, and
searches by the resource for which the offer satisfies the fewest groups. The sorted groups are divided into blocks. A
block stores the minimum need of each resource, so that a block in which no group fits is skipped.

A class is filed under the resource that the fewest other classes are filed under. Classes that need a resource which
the node lacks are thus not searched.
"""

import bisect
from collections.abc import Iterator, Mapping
from typing import Final

Needs = Mapping[str, int]
"""Positive amounts by resource."""
# A pod can request thousands of resources; sorting by a few of them is enough to find it.
MOST_SORTED: Final = 8
# A block is split at twice this size. Smaller: more blocks to skip. Larger: more groups to check in a block.
BLOCK: Final = 32


class _Block:
    """Consecutive groups in a sorted order."""

    __slots__ = ("entries", "least")

    def __init__(self, entries: list[tuple[int, int]], least: dict[str, int]) -> None:
        self.entries = entries
        """(amount, group number), sorted."""
        self.least = least
        """The minimum need of these groups, by resource."""


class _Sorted:
    """Groups of a class, sorted by their need of one resource."""

    __slots__ = ("_blocks", "_name", "_names", "_needs")

    def __init__(self, name: str, names: list[str], needs: Mapping[int, Needs]) -> None:
        """Sort by *name* and track minima of *names*; *needs* maps group numbers to needs."""
        self._name = name
        self._names = names
        self._needs = needs
        self._blocks: list[_Block] = []

    def add(self, number: int) -> None:
        needs = self._needs[number]
        entry = (needs[self._name], number)
        if not self._blocks:
            self._blocks.append(self._block([entry]))
            return
        place = min(self._find(entry), len(self._blocks) - 1)
        block = self._blocks[place]
        bisect.insort(block.entries, entry)
        for name, least in block.least.items():
            if needs[name] < least:
                block.least[name] = needs[name]
        if len(block.entries) >= 2 * BLOCK:
            self._blocks[place : place + 1] = [self._block(block.entries[:BLOCK]), self._block(block.entries[BLOCK:])]

    def remove(self, number: int) -> None:
        needs = self._needs[number]
        entry = (needs[self._name], number)
        place = self._find(entry)
        block = self._blocks[place]
        del block.entries[bisect.bisect_left(block.entries, entry)]
        if not block.entries:
            del self._blocks[place]
        elif any(needs[name] == least for name, least in block.least.items()):
            self._blocks[place] = self._block(block.entries)

    def within(self, offered: int) -> list[_Block]:
        """Return the blocks with at least one group that needs no more than *offered*."""
        return self._blocks[: bisect.bisect_right(self._blocks, offered, key=lambda block: block.entries[0][0])]

    def _find(self, entry: tuple[int, int]) -> int:
        """Return the index of the first block that does not end before *entry*."""
        return bisect.bisect_left(self._blocks, entry, key=lambda block: block.entries[-1])

    def _block(self, entries: list[tuple[int, int]]) -> _Block:
        return _Block(entries, {name: min(self._needs[number][name] for _, number in entries) for name in self._names})


class _Class:
    """Groups that need the same set of resources."""

    __slots__ = ("filed_under", "names", "needs", "sorted")

    def __init__(self, names: frozenset[str], filed_under: str) -> None:
        self.names = names
        self.filed_under = filed_under
        self.needs: dict[int, Needs] = {}
        some = sorted(names)[:MOST_SORTED]
        self.sorted = {name: _Sorted(name, some, self.needs) for name in some}

    def add(self, number: int, needs: Needs) -> None:
        self.needs[number] = needs
        for one in self.sorted.values():
            one.add(number)

    def remove(self, number: int) -> None:
        for one in self.sorted.values():
            one.remove(number)
        del self.needs[number]

    def within(self, offered: Needs) -> Iterator[int]:
        blocks: list[_Block] | None = None
        for name, one in self.sorted.items():
            satisfied = one.within(offered[name])
            if blocks is None or len(satisfied) < len(blocks):
                blocks = satisfied
            if not blocks:
                return
        for block in blocks or ():
            if any(offered[name] < least for name, least in block.least.items()):
                continue
            for _, number in block.entries:
                if all(offered[name] >= amount for name, amount in self.needs[number].items()):
                    yield number


class AmountIndex:
    """Waiting groups by the amounts they need."""

    __slots__ = ("_classes", "_filed", "_of")

    def __init__(self) -> None:
        """Start empty."""
        self._classes: dict[frozenset[str], _Class] = {}
        self._filed: dict[str, dict[frozenset[str], _Class]] = {}
        self._of: dict[int, _Class] = {}

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self._of)

    def add(self, number: int, needs: Needs) -> None:
        """Add a group with at least one need."""
        names = frozenset(needs)
        one = self._classes.get(names)
        if one is None:
            rarest = min(sorted(names), key=lambda name: len(self._filed.get(name, ())))
            one = self._classes[names] = _Class(names, rarest)
            self._filed.setdefault(rarest, {})[names] = one
        one.add(number, needs)
        self._of[number] = one

    def remove(self, number: int) -> None:
        """Remove a group."""
        one = self._of.pop(number)
        one.remove(number)
        if not one.needs:
            del self._classes[one.names]
            filed = self._filed[one.filed_under]
            del filed[one.names]
            if not filed:
                del self._filed[one.filed_under]

    def within(self, offered: Needs) -> list[int]:
        """List the groups that need no more than *offered* of every resource."""
        found: list[int] = []
        for name in offered:
            for one in self._filed.get(name, {}).values():
                if one.names <= offered.keys():
                    found.extend(one.within(offered))
        return found
