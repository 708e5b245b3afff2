"""The normalisation upstream's plugins share, and what is said by those who score only when they normalise."""

from functools import lru_cache
from typing import Final

import numpy as np

from lamina.scheduling.contract.points import MAX_SCORE
from lamina.scheduling.state.columns import Bools, Ints

FEW: Final = 256
UNSCORED: Final = -1


@lru_cache(maxsize=4)
def unscored(count: int) -> Ints:
    """Return raw scores that say nothing yet, for so many nodes; to be read only."""
    scores = np.full(count, UNSCORED, dtype=np.int64)
    scores.flags.writeable = False
    return scores


def normalized(scores: Ints, feasible: Bools, *, reverse: bool = False) -> Ints:
    """Stretch non-negative scores so that the largest feasible one becomes 100; with *reverse*, it becomes 0."""
    largest = int(scores.max(where=feasible, initial=0))
    if largest == 0:
        return np.full(len(scores), MAX_SCORE if reverse else 0, dtype=np.int64)
    if largest < FEW:
        # A small table and one look-up per node, instead of a division per node.
        table = np.arange(largest + 1) * MAX_SCORE // largest
        return (MAX_SCORE - table if reverse else table).take(scores, mode="clip")
    stretched: Ints = np.minimum(scores, largest) * MAX_SCORE // largest
    return MAX_SCORE - stretched if reverse else stretched
