"""
Interval sets: how Batsim writes a set of resources, such as ``0-3 5``.

The canonical form is disjoint, sorted and as short as possible. Any order and overlap is read, and commas as well as
spaces between the intervals, because PyBatsim and older schedulers write both.
"""

import re
from collections.abc import Iterable
from typing import Final

from lamina.model.plain import shown

_INTERVAL: Final = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


def write_intervals(numbers: Iterable[int]) -> str:
    """Return a set of numbers in canonical form."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def read_intervals(text: str, most: int) -> tuple[int, ...]:
    """Return the numbers of an interval set, sorted. Raises ValueError for a number of *most* or more."""
    found: set[int] = set()
    for word in text.replace(",", " ").split():
        parts = _INTERVAL.fullmatch(word)
        if parts is None:
            raise ValueError(f"{shown(word)} is no interval; write for example 0-3 5")
        first = int(parts[1])
        last = first if parts[2] is None else int(parts[2])
        if last < first:
            raise ValueError(f"the interval {word} ends before it begins")
        # Compared before the numbers are listed: an interval can be long without being large.
        if last >= most:
            raise ValueError(f"there is no resource {last}; the last one is {most - 1}")
        found.update(range(first, last + 1))
    return tuple(sorted(found))
