"""
Journal of changed rows, which makes reading incremental.

A reader remembers a position and asks for the rows that changed since. The result is None when the journal does not
reach back so far; the reader must then read all rows.
"""

from typing import Final

KEPT: Final = 1024
"""A reader that is further behind reads all rows: that is cheaper than replaying, and it bounds memory."""


class RowJournal:
    """The rows that changed, oldest first."""

    __slots__ = ("_first", "_kept", "_rows", "position")

    def __init__(self, kept: int = KEPT) -> None:
        """Start with no change; keep at least the last *kept* changes, and at most twice as many."""
        self._kept = kept
        self._rows: list[int] = []
        self._first = 0
        self.position = 0
        """Position of a reader that has seen all changes."""

    def touch(self, row: int) -> None:
        """Record that *row* changed."""
        rows = self._rows
        rows.append(row)
        self.position += 1
        if len(rows) > 2 * self._kept:
            del rows[: self._kept]
            self._first += self._kept

    def since(self, position: int) -> list[int] | None:
        """Return the rows that changed since *position*, with repetitions; None if that is too long ago."""
        start = position - self._first
        if start < 0:
            return None
        return self._rows[start:]
