"""
Matrices of bits: one line per index key, one bit per row, eight rows to a byte.

Held layers use a dense matrix, because most lines have a bit set. Arriving layers are few, so their matrix stores only
the lines with a bit set. Both grow in small steps: at 5,000 nodes and 160,000 lines the dense matrix takes 100 MB, and
doubling it would make it the largest object of the process.
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
    """
    Return the next row capacity: an eighth more at least, in steps of FIRST_ROWS.

    The steps are small because a row costs memory in every line.
    """
    return -(-max(needed, rows * 9 // 8) // FIRST_ROWS) * FIRST_ROWS


def more_lines(lines: int) -> int:
    """Return the next line capacity: an eighth more, and at least FIRST_LINES more."""
    return lines + max(lines // 8, FIRST_LINES)


class BitMatrix:
    """Dense bit matrix with room for every line."""

    def __init__(self) -> None:
        """Start with no bit set."""
        self._bits: Bits = np.zeros((FIRST_LINES, FIRST_ROWS // 8), dtype=np.uint8)

    @property
    def lines(self) -> int:
        """Line capacity."""
        return len(self._bits)

    @property
    def nbytes(self) -> int:
        """Allocated bytes."""
        return self._bits.nbytes

    def any(self) -> bool:
        """Return whether any bit is set."""
        return bool(self._bits.any())

    def blank(self) -> npt.NDArray[np.bool_]:
        """Return which lines have no bit set."""
        flags: npt.NDArray[np.bool_] = ~np.any(self._bits, axis=1)
        return flags

    def reach(self, lines: int, rows: int) -> None:
        """Grow the capacity to *lines* and *rows*."""
        if rows == 8 * self._bits.shape[1]:
            # In place, so that two copies never exist at once. This is safe because `of` returns copies, never views.
            self._bits.resize((lines, rows // 8), refcheck=False)
            return
        larger: Bits = np.zeros((lines, rows // 8), dtype=np.uint8)
        larger[: len(self._bits), : self._bits.shape[1]] = self._bits
        self._bits = larger

    def set(self, lines: Lines, row: int) -> None:
        """Set the bit of *row* in *lines*."""
        column = self._bits[:, row >> 3]
        column[lines] |= np.uint8(128 >> (row & 7))

    def clear(self, lines: Lines, row: int) -> None:
        """Clear the bit of *row* in *lines*."""
        column = self._bits[:, row >> 3]
        column[lines] &= np.uint8(255 - (128 >> (row & 7)))

    def set_rows(self, lines: Lines, rows: list[int]) -> None:
        """Set the bits of many rows in *lines*."""
        flags = np.zeros(8 * self._bits.shape[1], dtype=np.bool_)
        flags[rows] = True
        self._bits[lines] |= np.packbits(flags)

    def of(self, lines: Lines, where: slice | Lines = EVERYWHERE) -> Bits:
        """Return a copy of *lines*, restricted to the bytes *where*."""
        if isinstance(where, slice):
            # `take` copies whole lines quickly, and callers ask for nearly all of their bytes.
            return self._bits.take(lines, axis=0)[:, where]
        return self._bits[lines[:, np.newaxis], where]

    def on(self, lines: Lines, row: int) -> Bits:
        """Return a nonzero byte for each of *lines* in which the bit of *row* is set."""
        flags: Bits = self._bits[lines, row >> 3] & np.uint8(128 >> (row & 7))
        return flags


class SparseBitMatrix:
    """Bit matrix that stores only lines with a bit set; emptied lines stay until room is needed."""

    def __init__(self) -> None:
        """Start with no bit set."""
        self._matrix = BitMatrix()
        self._rows = FIRST_ROWS
        self._places: Lines = np.zeros(FIRST_LINES, dtype=np.intp)
        """Line → its place in the dense matrix. Place 0 belongs to all lines without a bit."""
        self._spare = list(range(FIRST_LINES - 1, 0, -1))
        """Free places; the next one to use is the last."""

    @property
    def nbytes(self) -> int:
        """Allocated bytes."""
        return self._matrix.nbytes + self._places.nbytes

    def any(self) -> bool:
        """Return whether any bit is set."""
        return self._matrix.any()

    def reach(self, lines: int, rows: int) -> None:
        """Grow the capacity to *lines* and *rows*."""
        if rows > self._rows:
            self._rows = rows
            self._matrix.reach(self._matrix.lines, rows)
        larger: Lines = np.zeros(lines, dtype=np.intp)
        larger[: len(self._places)] = self._places
        self._places = larger

    def set(self, lines: Lines, row: int) -> None:
        """Set the bit of *row* in *lines*."""
        unplaced = self._unplaced(lines)
        if len(unplaced) > len(self._spare):
            self._make_room(len(lines))
            # `_make_room` frees the places of lines without a bit, which may be among these.
            unplaced = self._unplaced(lines)
        for line in unplaced:
            self._places[line] = self._spare.pop()
        self._matrix.set(self._places[lines], row)

    def clear(self, lines: Lines, row: int) -> None:
        """
        Clear the bit of *row* in *lines*.

        The lines keep their places, because an image that was pulled is likely to be pulled again.
        """
        self._matrix.clear(self._places[lines], row)

    def of(self, lines: Lines, where: slice | Lines = EVERYWHERE) -> Bits:
        """Return a copy of *lines*, restricted to the bytes *where*."""
        return self._matrix.of(self._places[lines], where)

    def has(self, lines: Lines) -> bool:
        """Return whether a bit may be set in any of *lines*."""
        return bool(np.count_nonzero(self._places[lines]))

    def on(self, lines: Lines, row: int) -> Bits:
        """Return a nonzero byte for each of *lines* in which the bit of *row* is set."""
        return self._matrix.on(self._places[lines], row)

    def _unplaced(self, lines: Lines) -> list[int]:
        places = self._places[lines]
        if np.count_nonzero(places) == len(places):
            return []
        # A handful, some of them twice: a dictionary is quicker than sorting an array.
        return list(dict.fromkeys(lines[places == 0].tolist()))

    def _make_room(self, count: int) -> None:
        """Free at least *count* places: those of lines without a bit, or new ones."""
        empty = self._matrix.blank()
        self._places[empty[self._places]] = 0
        self._spare = np.flatnonzero(empty)[:0:-1].tolist()
        lines = self._matrix.lines
        if len(self._spare) < count + lines // 8:
            more = max(more_lines(lines), lines + count)
            self._matrix.reach(more, self._rows)
            self._spare = [*range(more - 1, lines - 1, -1), *self._spare]
