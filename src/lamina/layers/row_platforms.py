"""
Which platform each row's node has, with numbers for those that most rows have.

A kubelet may call its platform anything, and every platform that is told apart costs every decision about images. So there
is a number for each of a few platforms; a platform that no row has gives its number back, and one that more rows have than
another takes the number of that.
"""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from lamina.model.image import Platform

MOST: Final = 16
"""Platforms that are told apart: there are some ten for which images are built at all."""
OTHER: Final = -1
"""The number of a row whose platform has none."""


class RowPlatformsSnapshot(msgspec.Struct, frozen=True):
    """Everything a `RowPlatforms` knows, as data."""

    numbers: tuple[tuple[Platform, int], ...]
    """In the order they were given away."""
    rows: tuple[tuple[Platform, tuple[int, ...]], ...]


class RowPlatforms:
    """Platforms by number, and the rows that have them."""

    def __init__(self, place: Callable[[int, int], None]) -> None:
        """Start with no row; *place* takes the number of a row whenever that is another one."""
        self._place = place
        self.edition = 0
        """Grows whenever other platforms have numbers than before."""
        self._numbers: dict[Platform, int] = {}
        self._rows: dict[Platform, dict[int, None]] = {}
        self._of_row: dict[int, Platform] = {}

    def __len__(self) -> int:
        """Count the platforms that have a number."""
        return len(self._numbers)

    def __iter__(self) -> Iterator[Platform]:
        """Go through the platforms that have a number, in the order they got it."""
        return iter(self._numbers)

    def items(self) -> Iterator[tuple[Platform, int]]:
        """Go through them with their numbers."""
        return iter(self._numbers.items())

    @property
    def others(self) -> int:
        """How many platforms have no number."""
        return len(self._rows) - len(self._numbers)

    def put(self, row: int, platform: Platform | None) -> None:
        """Take over which platform a row has; None: it has no node."""
        before = self._of_row.get(row)
        if before == platform:
            return
        if platform is None:
            del self._of_row[row]
        else:
            self._of_row[row] = platform
            self._rows.setdefault(platform, {})[row] = None
            if platform not in self._numbers:
                self._admit(platform)
            self._place(row, self._numbers.get(platform, OTHER))
        if before is not None:
            self._leave(before, row)

    def snapshot(self) -> RowPlatformsSnapshot:
        """Return everything that is known, as data."""
        rows = tuple((platform, tuple(rows)) for platform, rows in self._rows.items())
        return RowPlatformsSnapshot(tuple(self._numbers.items()), rows)

    def restore(self, snapshot: RowPlatformsSnapshot) -> None:
        """Know what the snapshot was taken of; no row may have a platform yet."""
        self._numbers = dict(snapshot.numbers)
        for platform, rows in snapshot.rows:
            self._rows[platform] = dict.fromkeys(rows)
            for row in rows:
                self._of_row[row] = platform
                self._place(row, self._numbers.get(platform, OTHER))

    def _leave(self, platform: Platform, row: int) -> None:
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
            self._admit(max(waiting, key=lambda one: len(self._rows[one])))

    def _admit(self, platform: Platform) -> None:
        """Give a platform a number if there is one left, or one that fewer rows need."""
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
