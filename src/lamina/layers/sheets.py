"""
Sheets of bits: a line for each thing that a node can have, and in it a bit for each row, eight to a byte.

What nodes hold is a plain matrix, because most lines have somebody. What is on its way is little of all that there is, so
that its sheet keeps only the lines in which a bit is set. Both grow in small steps: at 5,000 nodes and 160,000 lines the
first takes a hundred megabytes, and twice that would be the largest thing in the process.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from lamina.layers.wanted import Lines

FIRST_LINES: Final = 256
FIRST_ROWS: Final = 512
EVERYWHERE: Final = slice(None)

Bits = npt.NDArray[np.uint8]


def more_rows(rows: int, needed: int) -> int:
    """Return how many rows to make room for: an eighth more at least, in whole steps. Rows cost memory in every line."""
    return -(-max(needed, rows * 9 // 8) // FIRST_ROWS) * FIRST_ROWS


def more_lines(lines: int) -> int:
    """Return how many lines to make room for."""
    return lines + max(lines // 8, FIRST_LINES)


class Sheet:
    """A matrix with room for every line."""

    def __init__(self) -> None:
        """Start with no bit set."""
        self._bits: Bits = np.zeros((FIRST_LINES, FIRST_ROWS // 8), dtype=np.uint8)

    @property
    def lines(self) -> int:
        """How many lines there is room for."""
        return len(self._bits)

    @property
    def nbytes(self) -> int:
        """Bytes of the matrix, used or not."""
        return self._bits.nbytes

    def any(self) -> bool:
        """Say whether any bit is set."""
        return bool(self._bits.any())

    def reach(self, lines: int, rows: int) -> None:
        """Make room for so many lines and rows."""
        if rows == 8 * self._bits.shape[1]:
            # In place, so that there are never two of it. Nobody else has a part of it: `of` makes copies.
            self._bits.resize((lines, rows // 8), refcheck=False)
            return
        larger: Bits = np.zeros((lines, rows // 8), dtype=np.uint8)
        larger[: len(self._bits), : self._bits.shape[1]] = self._bits
        self._bits = larger

    def set(self, lines: Lines, row: int) -> None:
        """Set the bits of a row in some lines."""
        column = self._bits[:, row >> 3]
        column[lines] |= np.uint8(128 >> (row & 7))

    def clear(self, lines: Lines, row: int) -> None:
        """Clear the bits of a row in some lines."""
        column = self._bits[:, row >> 3]
        column[lines] &= np.uint8(255 - (128 >> (row & 7)))

    def set_rows(self, lines: Lines, rows: list[int]) -> None:
        """Set the bits of many rows in the same lines."""
        flags = np.zeros(8 * self._bits.shape[1], dtype=np.bool_)
        flags[rows] = True
        self._bits[lines] |= np.packbits(flags)

    def of(self, lines: Lines, where: slice | Lines = EVERYWHERE) -> Bits:
        """Return bytes of some lines, a copy."""
        if isinstance(where, slice):
            # Whole lines are copied in one go each, and there are hardly more bytes in them than anybody asks for.
            return self._bits.take(lines, axis=0)[:, where]
        return self._bits[lines[:, np.newaxis], where]


class SparseSheet:
    """A matrix with room for the lines in which a bit is set."""

    def __init__(self) -> None:
        """Start with no bit set."""
        self._sheet = Sheet()
        self._rows = FIRST_ROWS
        self._places: Lines = np.zeros(FIRST_LINES, dtype=np.intp)
        """Where in the matrix each line is; the first place is that of all lines without a bit."""
        self._spare: list[int] = []
        self._used = 1

    @property
    def nbytes(self) -> int:
        """Bytes of the matrix, used or not."""
        return self._sheet.nbytes + self._places.nbytes

    def any(self) -> bool:
        """Say whether any bit is set."""
        return self._sheet.any()

    def reach(self, lines: int, rows: int) -> None:
        """Make room for so many lines and rows."""
        if rows > self._rows:
            self._rows = rows
            self._sheet.reach(self._sheet.lines, rows)
        larger: Lines = np.zeros(lines, dtype=np.intp)
        larger[: len(self._places)] = self._places
        self._places = larger

    def set(self, lines: Lines, row: int) -> None:
        """Set the bits of a row in some lines."""
        for line in np.unique(lines[self._places[lines] == 0]).tolist():
            self._places[line] = self._spare.pop() if self._spare else self._next()
        self._sheet.set(self._places[lines], row)

    def clear(self, lines: Lines, row: int) -> None:
        """Clear the bits of a row in some lines."""
        lines = np.unique(lines[self._places[lines] != 0])
        places = self._places[lines]
        self._sheet.clear(places, row)
        empty = ~self._sheet.of(places).any(axis=1)
        self._spare += places[empty].tolist()
        self._places[lines[empty]] = 0

    def of(self, lines: Lines, where: slice | Lines = EVERYWHERE) -> Bits:
        """Return bytes of some lines, a copy."""
        return self._sheet.of(self._places[lines], where)

    def _next(self) -> int:
        if self._used == self._sheet.lines:
            self._sheet.reach(more_lines(self._used), self._rows)
        self._used += 1
        return self._used - 1
