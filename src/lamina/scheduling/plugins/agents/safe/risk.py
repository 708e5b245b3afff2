"""
How likely a node is to be used for more than a share of what it has, given the mean and deviation of its use.

The use is taken to be Beta distributed with that mean μ and deviation σ:

    k = μ(1 - μ)/σ² - 1     α = μk     β = (1 - μ)k     risk = 1 - I_threshold(α, β)

No use at all is no risk; with no deviation it is certain which side of the threshold the mean is on. No distribution over
0..1 deviates more than √(μ(1 - μ)): a larger deviation counts as just below that, or (as the original has it) as certain
overload.

For one deviation the risk need not grow with the mean. A node that is hardly used and deviates much must be busy at times;
one with a higher mean and the same deviation need not.
"""

from typing import Final

import numpy as np

from lamina.scheduling.plugins.agents.safe import beta
from lamina.scheduling.state.columns import Floats

# Of the largest variance there can be; the number is that of LowRiskOverCommitment upstream.
MOST: Final = 0.99
# What k is at most and at least; beyond that floats tell no more. The first is a deviation of some 5e-7, the last all or nothing.
STEADIEST: Final = 1e12
WILDEST: Final = float(np.finfo(np.float64).eps)
# A mean this small is none.
FAINT: Final = 1e-12


def chances(
    mean: Floats, deviation: Floats, threshold: Floats | float, *, capped: bool = True
) -> tuple[Floats, Floats]:
    """Return how likely use is to stay within *threshold*, and to exceed it; all as shares within 0..1."""
    threshold = np.broadcast_to(np.asarray(threshold, dtype=np.float64), mean.shape)
    spread = mean * (1.0 - mean)
    variance = deviation * deviation
    if capped:
        variance = np.minimum(variance, MOST * spread)
    within = np.where((mean <= threshold) | (mean <= FAINT), 1.0, 0.0)
    exceeds = 1.0 - within
    uncertain = (mean > FAINT) & (variance > 0.0)
    beyond = uncertain & (variance >= spread)
    within[beyond], exceeds[beyond] = 0.0, 1.0
    some = (uncertain & ~beyond).nonzero()[0]
    if len(some):
        within[some], exceeds[some] = beta.split(*fit(mean[some], variance[some]), threshold[some])
    return within, exceeds


def fit(mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Return α and β of the distribution with this mean and variance, which is less than mean · (1 - mean)."""
    spread = mean * (1.0 - mean)
    k = np.maximum(spread / np.maximum(variance, spread / STEADIEST) - 1.0, WILDEST)
    return mean * k, (1.0 - mean) * k
