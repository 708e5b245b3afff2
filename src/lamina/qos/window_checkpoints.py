"""
Sums at regular moments of the past, from which a sliding window subtracts.

The moments are multiples of 1/32 of the window. The window begins at such a moment, so it is up to 1/32 longer than
requested. Facts that become known late correct the stored sums, so the result does not depend on when they arrived.
"""

import math
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

PARTS: Final = 32
_KEPT: Final = PARTS + 2


class WindowCheckpointsSnapshot(msgspec.Struct, frozen=True):
    """Serializable form of `WindowCheckpoints`."""

    newest: int
    numbers: tuple[int, ...]
    values: tuple[tuple[float, ...], ...]


class WindowCheckpoints:
    """The sums of a few kinds of time at the last 34 moments; a ring."""

    def __init__(self, window: float, kinds: int, now: float) -> None:
        """Start with sums of 0 at all moments until *now*; *window* is in seconds."""
        self.step = window / PARTS
        self._newest = self.number_at(now)
        self._numbers = np.empty(_KEPT, dtype=np.int64)
        for number in range(self._newest - _KEPT + 1, self._newest + 1):
            self._numbers[number % _KEPT] = number
        self.values: npt.NDArray[np.float64] = np.zeros((kinds, _KEPT))
        """A row for each kind of time."""

    def number_at(self, now: float) -> int:
        """Return the number of the last moment at or before *now*."""
        return math.floor(now / self.step)

    def advance(self, now: float, sums_at: Callable[[float], Sequence[float]]) -> None:
        """Store the sums at all moments until *now*."""
        newest = self.number_at(now)
        for number in range(max(self._newest + 1, newest - _KEPT + 1), newest + 1):
            self._numbers[number % _KEPT] = number
            self.values[:, number % _KEPT] = sums_at(number * self.step)
        self._newest = max(self._newest, newest)

    def add(self, kind: int, start: float, end: float, sign: float = 1.0) -> None:
        """Correct the sums of one kind by an interval of time; *end* can be infinite."""
        times = self._numbers * self.step
        self.values[kind] += sign * np.maximum(np.minimum(times, end) - start, 0.0)

    def refresh(self, after: float, sums_at: Callable[[float], Sequence[float]]) -> None:
        """Store the sums at all moments later than *after* again."""
        for place, number in enumerate(self._numbers.tolist()):
            if number * self.step > after:
                self.values[:, place] = sums_at(number * self.step)

    def merge(self, other: "WindowCheckpoints") -> None:
        """Add the sums of another ring that was advanced to the same time."""
        self.values += other.values

    def base(self, now: float) -> list[float]:
        """Return the sums at the beginning of the window that ends at *now*; *now* must not be before `advance`."""
        found: list[float] = self.values[:, (self.number_at(now) - PARTS) % _KEPT].tolist()
        return found

    def start(self, now: float) -> float:
        """Return when the window that ends at *now* begins."""
        return (self.number_at(now) - PARTS) * self.step

    def snapshot(self) -> WindowCheckpointsSnapshot:
        """Return the state as data."""
        return WindowCheckpointsSnapshot(
            self._newest, tuple(self._numbers.tolist()), tuple(tuple(row) for row in self.values.tolist())
        )

    def restore(self, snapshot: WindowCheckpointsSnapshot) -> None:
        """Restore a snapshot of a ring with the same window."""
        self._newest = snapshot.newest
        self._numbers = np.array(snapshot.numbers, dtype=np.int64)
        self.values = np.array(snapshot.values)
