"""
Which rows changed since a reader last looked: what makes reading incremental.

A reader remembers a position; asking again gives the rows touched since, or None when that was too long ago to tell and
everything must be read anew.
"""

from typing import Final

KEPT: Final = 1024
"""A reader that is further behind than this re-reads everything: cheaper than replaying, and it bounds memory."""


class RowJournal:
    """The rows that changed, oldest first."""

    __slots__ = ("_first", "_kept", "_rows", "position")

    def __init__(self, kept: int = KEPT) -> None:
        """Start with nothing changed; at least the last *kept* changes are remembered, and at most twice as many."""
        self._kept = kept
        self._rows: list[int] = []
        self._first = 0
        self.position = 0
        """Where a reader that has seen everything stands."""

    def touch(self, row: int) -> None:
        """Note that *row* changed."""
        rows = self._rows
        rows.append(row)
        self.position += 1
        if len(rows) > 2 * self._kept:
            del rows[: self._kept]
            self._first += self._kept

    def since(self, position: int) -> list[int] | None:
        """Return the rows touched since *position*, repeats included; None: too long ago."""
        start = position - self._first
        if start < 0:
            return None
        return self._rows[start:]
