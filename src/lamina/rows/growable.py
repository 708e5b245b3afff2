"""
Arrays with one element per row that grow as rows are added.

The last axis is the rows. An array that is long enough is returned unchanged, so that a caller writes ``self.alive =
grown(self.alive, rows)`` wherever a row may be new.
"""

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T", bound=np.generic)


def grown(array: npt.NDArray[T], rows: int, fill: Any = 0) -> npt.NDArray[T]:  # Any: a number or flag as the array has
    """Return an array with room for *rows*; if it has to grow, it at least doubles. New elements are *fill*."""
    length = array.shape[-1]
    return array if rows <= length else widened(array, max(rows, 2 * length), fill)


def widened(array: npt.NDArray[T], rows: int, fill: Any = 0) -> npt.NDArray[T]:  # Any: as above
    """
    Return an array with room for exactly *rows*, for callers with their own growth policy.

    New elements are *fill*.
    """
    length = array.shape[-1]
    if rows <= length:
        return array
    wide = np.full((*array.shape[:-1], rows), fill, dtype=array.dtype)
    wide[..., :length] = array
    return wide
