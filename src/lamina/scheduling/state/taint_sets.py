"""
The distinct sets of taints that nodes have, numbered, so that a plugin judges a set once and not every node.

A set lives as long as a node has it. Controllers write taints that carry a time, and every one of them is a new set: numbers
are given back, and when most of those handed out are unused all sets are numbered anew. Written by the columns; read through
`NodeView`.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from lamina.model.taints import Taint

Taints = tuple[Taint, ...]

NONE: Final = 0
"""The number of the empty set, which is always there."""
# So many unused numbers are no reason to number anew.
SPARE: Final = 16


class TaintSets:
    """Sets by number, and how many nodes have each."""

    __slots__ = ("_numbers", "_spare", "_uses", "sets")

    def __init__(self) -> None:
        """Start with the empty set."""
        self.sets: list[Taints] = [()]
        """An unused number has the empty set."""
        self._numbers: dict[Taints, int] = {(): NONE}
        self._uses: list[int] = [0]
        self._spare: list[int] = []

    @property
    def used(self) -> int:
        """How many distinct sets there are, the empty one included."""
        return len(self._numbers)

    def take(self, taints: Taints) -> int:
        """Return the number of a set, for one more node."""
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
        """One node less has a set."""
        self._uses[number] -= 1
        if self._uses[number] == 0 and number != NONE:
            del self._numbers[self.sets[number]]
            self.sets[number] = ()
            self._spare.append(number)

    def renumber(self) -> npt.NDArray[np.int64] | None:
        """Number anew if most numbers are unused; return the new number of each old one, None: all stay as they are."""
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
