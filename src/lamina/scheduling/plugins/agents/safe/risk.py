"""
Probability that a node's usage exceeds a share of its capacity, given the mean and deviation of usage.

Usage is modelled as a Beta distribution with mean μ and deviation σ:

    k = μ(1 - μ)/σ² - 1     α = μk     β = (1 - μ)k     risk = 1 - I_threshold(α, β)

A mean of 0 has no risk. Without deviation, the risk is 0 or 1, depending on the side of the threshold. No distribution
over 0..1 has a deviation above √(μ(1 - μ)). A larger deviation is capped just below that, or treated as certain
overload (as in the original).

For a fixed deviation, the risk can fall as the mean rises. A node with a low mean and a high deviation must be busy at
times. A node with a higher mean and the same deviation need not be.
"""

from typing import Final

import numpy as np

from lamina.scheduling.plugins.agents.safe import beta
from lamina.scheduling.state.columns import Floats

# Share of the largest possible variance; the value is that of LowRiskOverCommitment upstream.
MOST: Final = 0.99
# Bounds of k, beyond which floats lose precision: a deviation of some 5e-7, and all or nothing.
STEADIEST: Final = 1e12
WILDEST: Final = float(np.finfo(np.float64).eps)
# A smaller mean is treated as 0.
FAINT: Final = 1e-12


def chances(
    mean: Floats, deviation: Floats, threshold: Floats | float, *, capped: bool = True
) -> tuple[Floats, Floats]:
    """
    Return the probabilities that usage stays within *threshold* and that it exceeds it.

    All arguments are shares from 0 to 1.
    """
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
    """Return α and β of the distribution with this mean and variance; the variance must be below mean · (1 - mean)."""
    spread = mean * (1.0 - mean)
    k = np.maximum(spread / np.maximum(variance, spread / STEADIEST) - 1.0, WILDEST)
    return mean * k, (1.0 - mean) * k
