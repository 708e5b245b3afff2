"""
Means with confidence intervals, and ratios of paired figures.

Intervals are Student's: over n runs, mean ± t · s / √n, where t is the quantile of n - 1 degrees of freedom. They are
valid for independent runs (each has its own seed) with normally distributed figures. For a handful of runs, the normal
distribution is an assumption, not a finding.

Two profiles under one seed get the same workload, so they are compared pair by pair: the ratio of each pair, the
geometric mean of the ratios, and Student's interval of their logarithms. Ratios are used because twice as much and half
as much must have the same weight. Pairs are used because a workload's effect on both profiles is not a difference
between them.

Sums are exact until the last step, so the result does not depend on the order of the runs.
"""

import functools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

CONFIDENCE: Final = 0.95
"""Fraction of such intervals that contain the true value."""


class Estimate(msgspec.Struct, frozen=True):
    """A mean and its confidence interval."""

    mean: float
    half_width: float | None
    """The interval is ``mean - half_width`` to ``mean + half_width``; None for a single run, which has none."""
    runs: int
    """Number of runs."""


class Ratio(msgspec.Struct, frozen=True):
    """Ratio to the baseline: below 1 is less."""

    ratio: float | None
    """Geometric mean over the pairs; None when no pair has a ratio."""
    low: float | None
    high: float | None
    """Ends of the interval; both are None with fewer than two pairs. Infinite when an end is too large for a float."""
    runs: int
    """Number of pairs with a ratio."""
    left_out: int
    """Pairs without a ratio, because a figure is 0 or missing in one of the two."""

    @property
    def sign(self) -> int:
        """-1 when the whole interval is below 1, 1 when it is above, 0 otherwise."""
        if self.low is None or self.high is None:
            return 0
        return (self.low > 1.0) - (self.high < 1.0)


def estimate(values: Sequence[float]) -> Estimate | None:
    """Return the mean of *values* with its interval; None without values."""
    if not values:
        return None
    return Estimate(statistics.mean(map(float, values)), _half_width(values), len(values))


def paired(values: Mapping[int, float | None], baseline: Mapping[int, float | None]) -> Ratio:
    """Return the ratio of the figures that both have under the same key (a seed)."""
    pairs = [(values[key], baseline[key]) for key in values if key in baseline]
    # The difference of logarithms, because the quotient of two figures may underflow or overflow.
    logs = [math.log(one) - math.log(other) for one, other in pairs if one and other]
    left_out = len(pairs) - len(logs)
    if not logs:
        return Ratio(None, None, None, 0, left_out)
    mean, half = statistics.mean(logs), _half_width(logs)
    if half is None:
        return Ratio(_exp(mean), None, None, len(logs), left_out)
    return Ratio(_exp(mean), _exp(mean - half), _exp(mean + half), len(logs), left_out)


def differing(values: Mapping[int, float | None], baseline: Mapping[int, float | None]) -> Estimate | None:
    """Return the mean difference of pairs with its interval; None when no pair has both figures."""
    pairs = [(values[key], baseline[key]) for key in values if key in baseline]
    return estimate([one - other for one, other in pairs if one is not None and other is not None])


@functools.cache
def student(freedom: int) -> float:
    """Return the two-sided 95 % quantile of Student's t distribution with *freedom* degrees of freedom."""
    if freedom < 1:
        raise ValueError(f"{freedom} degrees of freedom: at least one is needed")
    high = 1.0
    while _within(high, freedom) < CONFIDENCE:
        high *= 2.0
    return _crossing(lambda t: _within(t, freedom), high)


def _within(t: float, freedom: int) -> float:
    """
    Return the probability that abs(variable) < t: the finite sums for whole degrees of freedom.

    Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 (odd) and 26.7.4 (even).
    """
    angle = math.atan2(t, math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term = cosine if odd else 1.0
    total = 0.0
    for k in range(1 + odd, freedom, 2):
        total += term
        term *= cosine * cosine * k / (k + 1)
    return (angle + sine * total) * 2.0 / math.pi if odd else sine * total


def _crossing(rising: Callable[[float], float], high: float) -> float:
    """Return where *rising* reaches CONFIDENCE, by bisection to the last bit."""
    low = 0.0
    while low < (middle := (low + high) / 2.0) < high:
        low, high = (middle, high) if rising(middle) < CONFIDENCE else (low, middle)
    return high


def _half_width(values: Sequence[float]) -> float | None:
    if len(values) < 2:
        return None
    return student(len(values) - 1) * statistics.stdev(map(float, values)) / math.sqrt(len(values))


def _exp(logarithm: float) -> float:
    try:
        return math.exp(logarithm)
    except OverflowError:
        return math.inf
