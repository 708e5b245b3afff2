"""
Numbers and times that nodes carry in their annotations, one array for each key that somebody has asked for.

Whoever annotates nodes may write anything: what is no finite number, or no point in time, counts as not said.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

import numpy as np
import numpy.typing as npt

from lamina.model.node import Node

Floats = npt.NDArray[np.float64]

LONGEST: Final = 64
"""No number or time that means anything is longer; a longer text is not looked at."""

AnnotationReader = Callable[[str | None], float]
"""Makes a number of what an annotation says; NaN when there is none in it."""


def number(text: str | None) -> float:
    """Read what an annotation says; NaN when that is no finite number."""
    # Python's own numbers may have underscores, and digits of every script; nobody else's do.
    if text is None or len(text) > LONGEST or "_" in text or not text.isascii():
        return math.nan
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


def moment(text: str | None) -> float:
    """Read a point in time (RFC 3339) as seconds since 1970; NaN when that is none, or it has no zone."""
    if text is None or len(text) > LONGEST or not text.isascii():
        return math.nan
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return math.nan
    return math.nan if at.tzinfo is None else at.timestamp()


class NodeAnnotations:
    """The keys that were asked for, and what each row says under them."""

    def __init__(self, nodes: Sequence[Node | None]) -> None:
        """Look at *nodes*, by row, when a key is first asked for."""
        self._nodes = nodes
        self._columns: dict[tuple[str, AnnotationReader], Floats] = {}

    def put(self, row: int, annotations: Mapping[str, str]) -> None:
        """Take over what a row says now."""
        for (key, read), column in self._columns.items():
            if row < len(column):
                column[row] = read(annotations.get(key))

    def floats(self, key: str, size: int) -> Floats:
        """Return what the first *size* rows say under a key, as numbers."""
        return self._column(key, number, size)

    def times(self, key: str, size: int) -> Floats:
        """Return what the first *size* rows say under a key, as seconds since 1970."""
        return self._column(key, moment, size)

    def unreadable(self) -> Iterator[tuple[str, str, str]]:
        """Yield node, key and text of every annotation that plugins have asked for and that none of them can read."""
        readers: dict[str, list[AnnotationReader]] = {}
        for key, read in self._columns:
            readers.setdefault(key, []).append(read)
        for node in filter(None, self._nodes):
            for key, reads in readers.items():
                text = node.annotations.get(key)
                if text is not None and all(math.isnan(read(text)) for read in reads):
                    yield node.name, key, text

    def _column(self, key: str, read: AnnotationReader, size: int) -> Floats:
        column = self._columns.get((key, read))
        if column is None or len(column) < size:
            said = [math.nan if node is None else read(node.annotations.get(key)) for node in self._nodes[:size]]
            # Room for rows to come, so that nodes that join one by one do not make it anew each time.
            column = self._columns[key, read] = np.full(size + size // 2 + 1, np.nan)
            column[:size] = said
        return column[:size]
