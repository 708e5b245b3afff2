"""
What to make of nodes about which little or nothing is known.

Absence of data is never data: such a node counts as the mean of the feasible nodes about which something is known, as far
as it is not believed itself. Where nothing is known of anybody, all are equal.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np

from lamina.scheduling.contract.points import MAX_SCORE
from lamina.scheduling.state.columns import Bools, Floats, Ints

NEITHER: Final = MAX_SCORE / 2
"""What all nodes get where nothing is known of any."""


class ScoresWithConfidence(msgspec.Struct, frozen=True):
    """Points for some nodes, and how far they are believed: from 1 down to 0, where nothing is known."""

    points: Floats
    trust: Floats


def weakest(judged: Sequence[ScoresWithConfidence]) -> ScoresWithConfidence:
    """
    Let the resource decide that gives a node fewest points, of those of which anything is known.

    The trust is 1 where that is so of one of them at least, and else 0.
    """
    points, known = judged[0].points, judged[0].trust > 0
    for one in judged[1:]:
        taken = (one.trust > 0) & ((one.points < points) | ~known)
        points, known = np.where(taken, one.points, points), known | taken
    return ScoresWithConfidence(points, known.astype(np.float64))


def believed(values: Floats, trust: Floats, feasible: Bools, nothing: float) -> Floats:
    """Return values as far as they are believed, and for the rest the mean of the feasible ones; *nothing*: of no one."""
    if len(trust) and trust.min() >= 1.0:
        return values
    weights = np.where(feasible, trust, 0.0)
    total = float(weights.sum())
    mean = float(weights.dot(values)) / total if total > 0 else nothing
    # Such that what is believed in full stays as it is, to the last digit.
    return trust * values + (1.0 - trust) * mean


def settle(judged: Sequence[ScoresWithConfidence], feasible: Bools) -> Ints:
    """
    Return the final points of each node.

    Resources are believed one by one before the worst of them decides: a bad reading of one that is old, and no longer
    believed, must not stand before a bad one of another that is fresh.
    """
    each = [ScoresWithConfidence(believed(one.points, one.trust, feasible, NEITHER), one.trust) for one in judged]
    worst = weakest(each)
    return rounded(believed(worst.points, worst.trust, feasible, NEITHER))


def rounded(points: Floats) -> Ints:
    """Round half up."""
    scores: Ints = np.floor(points + 0.5).astype(np.int64)
    return scores
