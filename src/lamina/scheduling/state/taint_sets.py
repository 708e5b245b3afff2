"""
Distinct taint sets of nodes, numbered, so that a plugin evaluates each set once instead of each node.

A set exists as long as a node has it. Controllers write taints that contain a time, and each of these is a new set.
Numbers are therefore reused, and all sets are renumbered when most numbers are unused. The columns write; plugins read
through `NodeView`.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from lamina.model.taints import Taint

Taints = tuple[Taint, ...]

NONE: Final = 0
"""The number of the empty set, which always exists."""
# Unused numbers tolerated before renumbering, in addition to one per used number.
SPARE: Final = 16


class TaintSets:
    """Taint sets by number, with the count of nodes that have each."""

    __slots__ = ("_numbers", "_spare", "_uses", "sets")

    def __init__(self) -> None:
        """Start with the empty set."""
        self.sets: list[Taints] = [()]
        """An unused number maps to the empty set."""
        self._numbers: dict[Taints, int] = {(): NONE}
        self._uses: list[int] = [0]
        self._spare: list[int] = []

    @property
    def used(self) -> int:
        """Number of distinct sets, including the empty one."""
        return len(self._numbers)

    def take(self, taints: Taints) -> int:
        """Return the number of a set and count one more node for it."""
        number = self._numbers.get(taints)
        if number is None:
            if self._spare:
                number = self._spare.pop()
                self.sets[number] = taints
            else:
                number = len(self.sets)
                self.sets.append(taints)
                self._uses.append(0)
            self._numbers[taints] = number
        self._uses[number] += 1
        return number

    def let_go(self, number: int) -> None:
        """Count one node less for a set, and free its number after the last node."""
        self._uses[number] -= 1
        if self._uses[number] == 0 and number != NONE:
            del self._numbers[self.sets[number]]
            self.sets[number] = ()
            self._spare.append(number)

    def renumber(self) -> npt.NDArray[np.int64] | None:
        """Renumber if most numbers are unused; return the new number by old number, or None if nothing changed."""
        if len(self._spare) <= len(self._numbers) + SPARE:
            return None
        renumbered = np.zeros(len(self.sets), dtype=np.int64)
        kept = [(number, taints) for taints, number in self._numbers.items()]
        renumbered[[number for number, _ in kept]] = range(len(kept))
        self.sets = [taints for _, taints in kept]
        self._uses = [self._uses[number] for number, _ in kept]
        self._numbers = {taints: number for number, taints in enumerate(self.sets)}
        self._spare = []
        return renumbered
