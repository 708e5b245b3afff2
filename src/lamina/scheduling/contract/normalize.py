"""Score normalisation shared by upstream's plugins, and raw scores for plugins that score only in `normalize`."""

from functools import lru_cache
from typing import Final

import numpy as np

from lamina.scheduling.contract.points import MAX_SCORE
from lamina.scheduling.state.columns import Bools, Ints

FEW: Final = 256
UNSCORED: Final = -1


@lru_cache(maxsize=4)
def unscored(count: int) -> Ints:
    """Return *count* raw scores of -1, the mark for "not scored yet". The array is read-only and shared."""
    scores = np.full(count, UNSCORED, dtype=np.int64)
    scores.flags.writeable = False
    return scores


def normalized(scores: Ints, feasible: Bools, *, reverse: bool = False) -> Ints:
    """Scale non-negative scores so that the largest feasible one becomes 100; with *reverse*, it becomes 0."""
    largest = int(scores.max(where=feasible, initial=0))
    if largest == 0:
        return np.full(len(scores), MAX_SCORE if reverse else 0, dtype=np.int64)
    if largest < FEW:
        # One table look-up per node is faster than one division per node.
        table = np.arange(largest + 1) * MAX_SCORE // largest
        return (MAX_SCORE - table if reverse else table).take(scores, mode="clip")
    stretched: Ints = np.minimum(scores, largest) * MAX_SCORE // largest
    return MAX_SCORE - stretched if reverse else stretched
