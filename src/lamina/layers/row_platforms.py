"""
Platform of each row's node, with numbers for the most frequent platforms.

A kubelet may report any text as its platform, and every distinguished platform costs time in every decision about
images. So only MOST platforms have a number. A platform without rows loses its number. A platform takes the number of
another one when more rows have it.
"""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from lamina.model.image import Platform

MOST: Final = 16
"""Numbered platforms. Images are built for about ten platforms."""
OTHER: Final = -1
"""Number of rows whose platform has no number."""


class RowPlatformsSnapshot(msgspec.Struct, frozen=True):
    """Serializable form of `RowPlatforms`."""

    numbers: tuple[tuple[Platform, int], ...]
    """In the order in which the numbers were assigned."""
    rows: tuple[tuple[Platform, tuple[int, ...]], ...]


class RowPlatforms:
    """Platforms by number, and the rows that have them."""

    def __init__(self, place: Callable[[int, int], None]) -> None:
        """Start with no row; *place* is called with a row and its number whenever that changes."""
        self._place = place
        self.edition = 0
        """Grows whenever the set of numbered platforms changes."""
        self._numbers: dict[Platform, int] = {}
        self._rows: dict[Platform, dict[int, None]] = {}
        self._of_row: dict[int, Platform] = {}

    def __len__(self) -> int:
        """Return the number of numbered platforms."""
        return len(self._numbers)

    def __iter__(self) -> Iterator[Platform]:
        """Iterate over the numbered platforms in the order in which they got their number."""
        return iter(self._numbers)

    def items(self) -> Iterator[tuple[Platform, int]]:
        """Iterate over the numbered platforms and their numbers."""
        return iter(self._numbers.items())

    @property
    def others(self) -> int:
        """Number of platforms without a number."""
        return len(self._rows) - len(self._numbers)

    def put(self, row: int, platform: Platform | None) -> None:
        """Set the platform of a row; None removes it."""
        before = self._of_row.get(row)
        if before == platform:
            return
        if platform is None:
            del self._of_row[row]
        else:
            self._of_row[row] = platform
            self._rows.setdefault(platform, {})[row] = None
            if platform not in self._numbers:
                self._assign_number(platform)
            self._place(row, self._numbers.get(platform, OTHER))
        if before is not None:
            self._remove_row(before, row)

    def snapshot(self) -> RowPlatformsSnapshot:
        """Return the state as data."""
        rows = tuple((platform, tuple(rows)) for platform, rows in self._rows.items())
        return RowPlatformsSnapshot(tuple(self._numbers.items()), rows)

    def restore(self, snapshot: RowPlatformsSnapshot) -> None:
        """Restore a snapshot into an empty object."""
        self._numbers = dict(snapshot.numbers)
        for platform, rows in snapshot.rows:
            self._rows[platform] = dict.fromkeys(rows)
            for row in rows:
                self._of_row[row] = platform
                self._place(row, self._numbers.get(platform, OTHER))

    def _remove_row(self, platform: Platform, row: int) -> None:
        rows = self._rows[platform]
        del rows[row]
        numbered = platform in self._numbers
        if not rows:
            del self._rows[platform]
            if numbered:
                del self._numbers[platform]
                self.edition += 1
        if numbered and self.others:
            waiting = (one for one in self._rows if one not in self._numbers)
            self._assign_number(max(waiting, key=lambda one: len(self._rows[one])))

    def _assign_number(self, platform: Platform) -> None:
        """Give a platform a free number, or the number of a platform that fewer rows have."""
        used = set(self._numbers.values())
        if len(used) < MOST:
            number = next(number for number in range(MOST) if number not in used)
        else:
            least = min(self._numbers, key=lambda one: len(self._rows[one]))
            if len(self._rows[platform]) <= len(self._rows[least]):
                return
            number = self._numbers.pop(least)
            for row in self._rows[least]:
                self._place(row, OTHER)
        self._numbers[platform] = number
        self.edition += 1
        for row in self._rows[platform]:
            self._place(row, number)
