"""
Regularised incomplete beta function I_x(a, b) over arrays: the probability that a Beta(a, b) share is below x.

Implemented here because scipy, which has it, is twice the size of numpy.

    I_x(a, b) = x^a y^b / (a B(a, b)) · fraction(a, b, x)        y = 1 - x

The continued fraction converges fast below the mean; above it the other tail is computed: I_x(a, b) = 1 - I_y(b, a).
Large logarithms would cancel in the first factor, so it is computed without them:

    x^a y^b / B(a, b) = √(ab / 2πn) · exp(s(n) - s(a) - s(b)) · exp(-a g(u) - b g(v))
        n = a + b     u = xn/a - 1     v = yn/b - 1     g(u) = u - log(1 + u)     s: error of Stirling's formula

If both parameters are large, the fraction would take hundreds of steps near the mean. The density is a smooth bell
curve there, and its tail is integrated by Gauss's rule.
"""

from typing import Final

import numpy as np

from lamina.scheduling.state.columns import Bools, Floats

# With both parameters above this, the tail is integrated; the error is below 2e-12 (measured).
LARGE: Final = 100.0
STEPS: Final = 400
# Steps between checks for elements that have converged.
LOOK: Final = 3
SETTLED: Final = 1e-15
# Length of the integrated tail, in standard deviations.
FAR: Final = 8.5
POINTS, WEIGHTS = np.polynomial.legendre.leggauss(24)
# A tail with a first factor below e^-NOTHING is returned as 0.
NOTHING: Final = 100.0
# Coefficients of 1/z, 1/z³, ... in Stirling's series; from SHIFT on, the remainder is below 1e-16.
SERIES: Final = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
SHIFT: Final = 9


def split(a: Floats, b: Floats, x: Floats) -> tuple[Floats, Floats]:
    """
    Return the probabilities that a share is below and above *x* (0..1).

    The smaller one is accurate to its last digits. Both parameters must be positive.
    """
    low, high = np.where(x > 0.0, 1.0, 0.0), np.where(x > 0.0, 0.0, 1.0)
    inside = ((x > 0.0) & (x < 1.0)).nonzero()[0]
    a, b, x = a[inside], b[inside], x[inside]
    y = 1.0 - x
    swap = x * (a + b + 2.0) > a + 1.0
    tail = _tail(np.where(swap, b, a), np.where(swap, a, b), np.where(swap, y, x), np.where(swap, x, y))
    rest = 1.0 - tail
    low[inside], high[inside] = np.where(swap, rest, tail), np.where(swap, tail, rest)
    return low, high


def _tail(a: Floats, b: Floats, x: Floats, y: Floats) -> Floats:
    """Return I_x(a, b) for x up to about the mean."""
    tail = np.zeros(len(a))
    scale = _scale(a, b)
    exponent = scale - _fall(a, b, x, y)
    bell = np.minimum(a, b) > LARGE
    there = exponent > -NOTHING
    some = (there & ~bell).nonzero()[0]
    if len(some):
        tail[some] = np.exp(exponent[some]) * _fraction(a[some], b[some], x[some])
    some = (there & bell).nonzero()[0]
    if len(some):
        tail[some] = _integral(a[some], b[some], x[some], scale[some])
    return np.minimum(tail, 1.0, out=tail)


def _scale(a: Floats, b: Floats) -> Floats:
    """Return the logarithm of the factor before the exponential decay from the mean."""
    n = a + b
    return _stirling(n) - _stirling(a) - _stirling(b) + 0.5 * np.log(a / n * b / (2.0 * np.pi))


def _fall(a: Floats, b: Floats, x: Floats, y: Floats) -> Floats:
    """Return the exponent of the decay: 0 at the mean."""
    ahead = x * b - y * a
    return a * _gap(ahead / a, x, a + b, a) + b * _gap(-ahead / b, y, a + b, b)


def _gap(u: Floats, x: Floats, n: Floats, a: Floats) -> Floats:
    """Return u - log(1 + u), where 1 + u = xn/a."""
    log = np.log1p(np.maximum(u, -0.5))
    # Near -1, log1p loses the digits that matter.
    near = (u < -0.5).nonzero()[0]
    if len(near):
        log[near] = np.log(x[near]) + np.log(n[near] / a[near])
    return np.subtract(u, log, out=log)


def _stirling(z: Floats) -> Floats:
    """Return log Γ(z) - ((z - ½) log z - z + ½ log 2π)."""
    small = (z < SHIFT).nonzero()[0]
    few = z[small]
    shifted = z
    if len(small):
        shifted = z.copy()
        shifted[small] += SHIFT
    inverse = 1.0 / shifted
    square = inverse * inverse
    total = np.full(len(z), SERIES[-1])
    for coefficient in SERIES[-2::-1]:
        total *= square
        total += coefficient
    total *= inverse
    if len(small):
        # Γ(z) = Γ(z + 9) / (z (z + 1) ... (z + 8)).
        product = few.copy()
        for step in range(1, SHIFT):
            product *= few + step
        above = few + SHIFT
        total[small] += (above - 0.5) * np.log(above) - SHIFT - np.log(product) - (few - 0.5) * np.log(few)
    return total


def _fraction(a: Floats, b: Floats, x: Floats) -> Floats:
    """Evaluate the continued fraction, each element until it converges; return it divided by a."""
    result = 1.0 / a
    left = np.arange(len(a))
    n = a + b
    # Numerators and denominators of two convergents, scaled so that the newer denominator is 1.
    older, under = np.ones(len(a)), np.ones(len(a))
    newer = 1.0 / (1.0 - n * x / (a + 1.0))
    under *= newer
    older *= newer
    for step in range(1, STEPS):
        even = a + 2 * step
        term = step * (b - step) * x / ((even - 1.0) * even)
        top, bottom = newer + term * older, 1.0 + term * under
        term = -(a + step) * (n + step) * x / (even * (even + 1.0))
        scaled = 1.0 / (bottom + term)
        before, newer = newer, (top + term * newer) * scaled
        older, under = top * scaled, bottom * scaled
        if step % LOOK:
            continue
        moving: Bools = np.abs(newer - before) > SETTLED * newer
        count = np.count_nonzero(moving)
        if count < len(left):
            done = ~moving
            result[left[done]] *= newer[done]
            if not count:
                break
            left = left[moving]
            a, b, x, n, older, under, newer = (one[moving] for one in (a, b, x, n, older, under, newer))
    else:
        result[left] *= newer
    return result


def _integral(a: Floats, b: Floats, x: Floats, scale: Floats) -> Floats:
    """Integrate the density of the tail up to x."""
    n = a + b
    width = np.minimum(FAR * np.sqrt(a / n * b / n / (n + 1.0)), x)
    total = np.zeros(len(a))
    for point, weight in zip(POINTS.tolist(), WEIGHTS.tolist(), strict=True):
        at = x - width * (0.5 * (1.0 - point))
        rest = 1.0 - at
        total += weight * np.exp(scale - _fall(a, b, at, rest)) / (at * rest)
    return 0.5 * width * total
