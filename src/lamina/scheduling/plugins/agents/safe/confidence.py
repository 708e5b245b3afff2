"""
Scores for nodes with little or no usage data.

Missing data is never treated as data: a node without data gets the mean of the feasible nodes with data. A node with
outdated data moves towards that mean as its trust drops. If no node has data, all get the same score.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np

from lamina.scheduling.contract.points import MAX_SCORE
from lamina.scheduling.state.columns import Bools, Floats, Ints

NEITHER: Final = MAX_SCORE / 2
"""The score of all nodes if none has data."""


class ScoresWithConfidence(msgspec.Struct, frozen=True):
    """Scores of some nodes with the trust in each, from 1 down to 0 (no data)."""

    points: Floats
    trust: Floats


def weakest(judged: Sequence[ScoresWithConfidence]) -> ScoresWithConfidence:
    """
    Return each node's lowest score over the resources with data.

    The trust is 1 where at least one resource has data, else 0.
    """
    points, known = judged[0].points, judged[0].trust > 0
    for one in judged[1:]:
        taken = (one.trust > 0) & ((one.points < points) | ~known)
        points, known = np.where(taken, one.points, points), known | taken
    return ScoresWithConfidence(points, known.astype(np.float64))


def mix_in_mean(values: Floats, trust: Floats, feasible: Bools, nothing: float) -> Floats:
    """Replace the untrusted part of each value by the trusted mean of feasible nodes; *nothing* if there is none."""
    if len(trust) and trust.min() >= 1.0:
        return values
    weights = np.where(feasible, trust, 0.0)
    total = float(weights.sum())
    mean = float(weights.dot(values)) / total if total > 0 else nothing
    # Written so that a value with trust 1 stays exactly as it is.
    return trust * values + (1.0 - trust) * mean


def settle(judged: Sequence[ScoresWithConfidence], feasible: Bools) -> Ints:
    """
    Return the final score of each node.

    Trust is applied to each resource before the lowest score decides: an outdated bad reading of one resource must not
    hide a fresh bad reading of another.
    """
    each = [ScoresWithConfidence(mix_in_mean(one.points, one.trust, feasible, NEITHER), one.trust) for one in judged]
    worst = weakest(each)
    return rounded(mix_in_mean(worst.points, worst.trust, feasible, NEITHER))


def rounded(points: Floats) -> Ints:
    """Round half up to integers."""
    scores: Ints = np.floor(points + 0.5).astype(np.int64)
    return scores
