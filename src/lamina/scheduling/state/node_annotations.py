"""
Numbers and times in node annotations, as one array per requested key.

Annotations can contain any text. A value that is not a finite number, or not a time, becomes NaN.
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
"""Maximum length of a value in characters; no useful number or time is longer."""

AnnotationReader = Callable[[str | None], float]
"""Parses an annotation; returns NaN if it has no value of that type."""


def number(text: str | None) -> float:
    """Parse a finite number; return NaN for anything else."""
    # float() also accepts underscores and digits of other scripts; annotations of other tools never use them.
    if text is None or len(text) > LONGEST or "_" in text or not text.isascii():
        return math.nan
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


def moment(text: str | None) -> float:
    """Parse an RFC 3339 time to seconds since 1970; return NaN for anything else and for times without a zone."""
    if text is None or len(text) > LONGEST or not text.isascii():
        return math.nan
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return math.nan
    return math.nan if at.tzinfo is None else at.timestamp()


class NodeAnnotations:
    """Values of requested annotation keys, by row."""

    def __init__(self, nodes: Sequence[Node | None]) -> None:
        """Read *nodes*, by row, when a key is first requested."""
        self._nodes = nodes
        self._columns: dict[tuple[str, AnnotationReader], Floats] = {}

    def put(self, row: int, annotations: Mapping[str, str]) -> None:
        """Update a row with its node's annotations."""
        for (key, read), column in self._columns.items():
            if row < len(column):
                column[row] = read(annotations.get(key))

    def floats(self, key: str, size: int) -> Floats:
        """Return the values of the first *size* rows under a key, as numbers."""
        return self._column(key, number, size)

    def times(self, key: str, size: int) -> Floats:
        """Return the values of the first *size* rows under a key, as seconds since 1970."""
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
            # Spare rows, so that nodes that join one by one do not reallocate the array each time.
            column = self._columns[key, read] = np.full(size + size // 2 + 1, np.nan)
            column[:size] = said
        return column[:size]
