"""
Amounts of all resources but the well-known four: what nodes offer, and what pods on them have asked for.

Names come from pods and from kubelets, and there may be any number of them. So amounts are kept by name and row where there
are any, and nothing is kept of a name that no node offers and no placed pod uses. A pod that waits is not in the books at
all. An array over all rows is made when a plugin asks for one, patched afterwards, and let go when too many others were asked
for since. What a pod uses on a node that does not offer it counts, too: the node may offer it later.

Written by the columns; read through `NodeView`.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

from lamina.model.resources import Amounts

Ints = npt.NDArray[np.int64]

# Larger amounts count as this much (8 PiB, if they are bytes): a thousand of them still add up within 64 bits.
LARGEST: Final = 2**53
LOWEST: Final = -(2**62)
"""Less is never free: what pods use is added up without bound."""
# What the arrays may use; beyond that the one that was asked for longest ago is let go.
KEPT_BYTES: Final = 32 * 1024 * 1024
KEPT_AT_LEAST: Final = 16
NOTHING: Final[dict[int, int]] = {}


class ScalarResources:
    """Amounts by name, then by row; rows without any are not listed."""

    __slots__ = ("_arrays", "_names_on", "_offered", "_used")

    def __init__(self) -> None:
        """Start with no node."""
        self._offered: dict[str, dict[int, int]] = {}
        self._used: dict[str, dict[int, int]] = {}
        self._names_on: dict[int, tuple[str, ...]] = {}
        """What the node in each row offers."""
        self._arrays: dict[str, Ints] = {}
        """Two lines for each name that was asked for lately: what nodes offer, and what is free."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names that a node offers, in the order they were first seen."""
        return tuple(self._offered)

    def offers(self, name: str) -> bool:
        """Say whether any node offers a resource."""
        return name in self._offered

    def put(self, row: int, amounts: Iterable[tuple[str, int]]) -> None:
        """Take over what the node in a row offers; what pods use there stays."""
        offered = {name: min(amount, LARGEST) for name, amount in amounts if amount}
        for name in self._names_on.get(row, ()):
            if name not in offered:
                self._write(self._offered, name, row, 0)
        for name, amount in offered.items():
            self._write(self._offered, name, row, amount)
        if offered:
            self._names_on[row] = tuple(offered)
        else:
            self._names_on.pop(row, None)

    def forget(self, row: int) -> None:
        """Forget what the node in a row offers and what pods use there."""
        self.put(row, ())
        for name in [name for name, rows in self._used.items() if row in rows]:
            self._write(self._used, name, row, 0)

    def use(self, row: int, amounts: Amounts, times: int) -> None:
        """Count so much more in use on a row; *times* -1: less."""
        for name, amount in amounts:
            before = self._used.get(name, NOTHING).get(row, 0)
            self._write(self._used, name, row, before + times * min(amount, LARGEST))

    def on(self, row: int, name: str) -> tuple[int, int]:
        """Return what the node in a row offers of a resource, and what is free of that."""
        offered = self._offered.get(name, NOTHING).get(row, 0)
        return offered, max(offered - self._used.get(name, NOTHING).get(row, 0), LOWEST)

    def arrays(self, name: str, height: int) -> Ints:
        """Return what each of the first *height* rows offers of a resource, and what is free of that; to be read only."""
        known = self._arrays.pop(name, None)
        if known is None or known.shape[1] < height:
            # Room for rows to come, so that nodes that join one by one do not make it anew each time.
            known = np.zeros((2, height + height // 2 + 1), dtype=np.int64)
            for row in self._offered.get(name, NOTHING).keys() | self._used.get(name, NOTHING).keys():
                if row < height:
                    known[:, row] = self.on(row, name)
            if len(self._arrays) >= max(KEPT_AT_LEAST, KEPT_BYTES // known.nbytes):
                del self._arrays[next(iter(self._arrays))]
        if name in self._offered or name in self._used:
            self._arrays[name] = known
        return known[:, :height]

    def _write(self, table: dict[str, dict[int, int]], name: str, row: int, amount: int) -> None:
        if amount:
            table.setdefault(name, {})[row] = amount
        elif name in table:
            table[name].pop(row, None)
            if not table[name]:
                del table[name]
                if not table:
                    # An emptied dictionary keeps the memory of its largest size; a cleared one does not.
                    table.clear()
        known = self._arrays.get(name)
        if known is None:
            return
        if row < known.shape[1]:
            known[:, row] = self.on(row, name)
        if name not in self._offered and name not in self._used:
            del self._arrays[name]
