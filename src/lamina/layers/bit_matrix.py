"""
Sheets of bits: a line for each thing that a node can have, and in it a bit for each row, eight to a byte.

What nodes hold is a plain matrix, because most lines have somebody. What is on its way is little of all that there is, so
that its sheet keeps only the lines in which a bit is set. Both grow in small steps: at 5,000 nodes and 160,000 lines the
first takes a hundred megabytes, and twice that would be the largest thing in the process.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from lamina.layers.layer_set import Lines

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


class BitMatrix:
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

    def blank(self) -> npt.NDArray[np.bool_]:
        """Say which lines have no bit."""
        flags: npt.NDArray[np.bool_] = ~np.any(self._bits, axis=1)
        return flags

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

    def on(self, lines: Lines, row: int) -> Bits:
        """Return which of some lines have the bit of one row (not 0)."""
        flags: Bits = self._bits[lines, row >> 3] & np.uint8(128 >> (row & 7))
        return flags


class SparseBitMatrix:
    """A matrix with room for the lines in which a bit is set, or was since room was last needed."""

    def __init__(self) -> None:
        """Start with no bit set."""
        self._sheet = BitMatrix()
        self._rows = FIRST_ROWS
        self._places: Lines = np.zeros(FIRST_LINES, dtype=np.intp)
        """Where in the matrix each line is; the first place is that of lines without a bit."""
        self._spare = list(range(FIRST_LINES - 1, 0, -1))
        """Places that no line has, the next one last."""

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
        homeless = self._homeless(lines)
        if len(homeless) > len(self._spare):
            self._make_room(len(lines))
            # Lines without a bit have lost their places, these among them.
            homeless = self._homeless(lines)
        for line in homeless:
            self._places[line] = self._spare.pop()
        self._sheet.set(self._places[lines], row)

    def clear(self, lines: Lines, row: int) -> None:
        """Clear the bits of a row in some lines. They keep their places: what was pulled is likely to be pulled again."""
        self._sheet.clear(self._places[lines], row)

    def of(self, lines: Lines, where: slice | Lines = EVERYWHERE) -> Bits:
        """Return bytes of some lines, a copy."""
        return self._sheet.of(self._places[lines], where)

    def has(self, lines: Lines) -> bool:
        """Say whether a bit may be set in any of some lines."""
        return bool(np.count_nonzero(self._places[lines]))

    def on(self, lines: Lines, row: int) -> Bits:
        """Return which of some lines have the bit of one row (not 0)."""
        return self._sheet.on(self._places[lines], row)

    def _homeless(self, lines: Lines) -> list[int]:
        places = self._places[lines]
        if np.count_nonzero(places) == len(places):
            return []
        # A handful, some of them twice: a dictionary is quicker than sorting an array.
        return list(dict.fromkeys(lines[places == 0].tolist()))

    def _make_room(self, count: int) -> None:
        """Find so many places and some more: those of lines without a bit, or new ones."""
        empty = self._sheet.blank()
        self._places[empty[self._places]] = 0
        self._spare = np.flatnonzero(empty)[:0:-1].tolist()
        lines = self._sheet.lines
        if len(self._spare) < count + lines // 8:
            more = max(more_lines(lines), lines + count)
            self._sheet.reach(more, self._rows)
            self._spare = [*range(more - 1, lines - 1, -1), *self._spare]
