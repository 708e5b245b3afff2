"""Draws numbers by their weights, from dice that the caller brings."""

import bisect
import itertools
from collections.abc import Iterable
from random import Random


class WeightedSampler:
    """Numbers from 0 on; those with no weight are never drawn."""

    def __init__(self, weights: Iterable[float]) -> None:
        """Give each number its weight."""
        self._weights = list(weights)
        self._cumulative = list(itertools.accumulate(self._weights))

    def __bool__(self) -> bool:
        """Whether there is anything to draw."""
        return bool(self._cumulative) and self._cumulative[-1] > 0

    def leave_out(self, number: int) -> None:
        """Draw this number no more."""
        self._weights[number] = 0.0
        self._cumulative = list(itertools.accumulate(self._weights))

    def draw(self, dice: Random) -> int:
        """Draw a number; there has to be one."""
        while True:
            number = bisect.bisect(self._cumulative, dice.random() * self._cumulative[-1])
            # By a rounding the draw may land on the very end, behind the last number that counts.
            if number < len(self._weights) and self._weights[number]:
                return number
