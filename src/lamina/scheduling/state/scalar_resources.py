"""
Extended resources (all but the well-known four): what nodes offer, and what their pods request.

Names come from pods and kubelets, and their number is not bounded. Amounts are therefore stored by name and row, and
only for names that a node offers or a placed pod requests. Waiting pods are not included. An array over all rows is
built when a plugin requests it, updated afterwards, and evicted when other arrays need the space. Requests on a node
that does not offer the resource are counted too, since the node may offer it later.

The columns write; plugins read through `NodeView`.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

from lamina.model.resources import Amounts

Ints = npt.NDArray[np.int64]

# Larger amounts are capped (8 PiB in bytes): a thousand of them still add up within 64 bits.
LARGEST: Final = 2**53
LOWEST: Final = -(2**62)
"""Lower bound of a free amount: requests are summed without a bound."""
# Memory limit of the arrays in bytes; beyond it, the least recently used array is evicted.
KEPT_BYTES: Final = 32 * 1024 * 1024
KEPT_AT_LEAST: Final = 16
NOTHING: Final[dict[int, int]] = {}


class ScalarResources:
    """Amounts by name, then by row; rows without an amount are not stored."""

    __slots__ = ("_arrays", "_names_on", "_offered", "_used")

    def __init__(self) -> None:
        """Start without nodes."""
        self._offered: dict[str, dict[int, int]] = {}
        self._used: dict[str, dict[int, int]] = {}
        self._names_on: dict[int, tuple[str, ...]] = {}
        """Names that the node in each row offers."""
        self._arrays: dict[str, Ints] = {}
        """Recently used arrays by name, of two lines: offered amounts and free amounts."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names that any node offers, in the order of first appearance."""
        return tuple(self._offered)

    def offers(self, name: str) -> bool:
        """Return whether any node offers a resource."""
        return name in self._offered

    def put(self, row: int, amounts: Iterable[tuple[str, int]]) -> None:
        """Replace what the node in a row offers; requests of its pods stay."""
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
        """Remove offers and requests of a row."""
        self.put(row, ())
        for name in [name for name, rows in self._used.items() if row in rows]:
            self._write(self._used, name, row, 0)

    def use(self, row: int, amounts: Amounts, times: int) -> None:
        """Add requests to a row, multiplied by *times*; -1 subtracts them."""
        for name, amount in amounts:
            before = self._used.get(name, NOTHING).get(row, 0)
            self._write(self._used, name, row, before + times * min(amount, LARGEST))

    def on(self, row: int, name: str) -> tuple[int, int]:
        """Return a row's offered and free amount of a resource."""
        offered = self._offered.get(name, NOTHING).get(row, 0)
        return offered, max(offered - self._used.get(name, NOTHING).get(row, 0), LOWEST)

    def arrays(self, name: str, height: int) -> Ints:
        """Return offered and free amounts of a resource for the first *height* rows; read-only."""
        known = self._arrays.pop(name, None)
        if known is None or known.shape[1] < height:
            # Spare rows, so that nodes that join one by one do not reallocate the array each time.
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
                    # A dictionary keeps its memory when its entries are deleted one by one; clear() releases it.
                    table.clear()
        known = self._arrays.get(name)
        if known is None:
            return
        if row < known.shape[1]:
            known[:, row] = self.on(row, name)
        if name not in self._offered and name not in self._used:
            del self._arrays[name]
