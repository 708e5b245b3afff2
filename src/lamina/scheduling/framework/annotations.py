"""
Numbers that nodes carry in their annotations, one array for each key that somebody has asked for.

Whoever annotates nodes may write anything: what is no finite number counts as not said.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from lamina.model.node import Node

Floats = npt.NDArray[np.float64]

LONGEST: Final = 64
"""No number that means anything is longer; a longer text is not looked at."""


def number(text: str | None) -> float:
    """Read what an annotation says; NaN when that is no finite number."""
    # Python's own numbers may have underscores; nobody else's do.
    if text is None or len(text) > LONGEST or "_" in text:
        return math.nan
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


class Annotations:
    """The keys that were asked for, and what each row says under them."""

    def __init__(self, nodes: Sequence[Node | None]) -> None:
        """Look at *nodes*, by row, when a key is first asked for."""
        self._nodes = nodes
        self._columns: dict[str, Floats] = {}

    def put(self, row: int, annotations: Mapping[str, str]) -> None:
        """Take over what a row says now."""
        for key, column in self._columns.items():
            if row < len(column):
                column[row] = number(annotations.get(key))

    def floats(self, key: str, size: int) -> Floats:
        """Return what the first *size* rows say under a key, as numbers."""
        column = self._columns.get(key)
        if column is None or len(column) < size:
            said = [math.nan if node is None else number(node.annotations.get(key)) for node in self._nodes[:size]]
            # Room for rows to come, so that nodes that join one by one do not make it anew each time.
            column = self._columns[key] = np.full(size + size // 2 + 1, np.nan)
            column[:size] = said
        return column[:size]
