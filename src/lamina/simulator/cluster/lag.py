"""
Delays that are not always the same.

A lag is one number, or a list of values that were seen, each as likely as any other. A drawn lag depends on the seed,
on what it is for and on whom it is for, and on nothing else: the same pod waits as long under every policy, so that
runs can be compared pod by pod.
"""

from collections.abc import Callable
from hashlib import blake2b
from typing import Final

Lag = float | tuple[float, ...]
"""Seconds, or values to draw from."""

DrawLag = Callable[[Lag, str, str], float]
"""Returns a lag's length: lag, what it is for, whom it is for."""


def lag_sampler(seed: int) -> DrawLag:
    """Return a way to draw lags under *seed*."""

    def draw(lag: Lag, what: str, who: str) -> float:
        if not isinstance(lag, tuple):
            return lag
        # A hash instead of a generator: seeding one of Python's for a single number takes ten times as long.
        drawn = blake2b(f"{seed}/{what}/{who}".encode(), digest_size=8).digest()
        return lag[int.from_bytes(drawn, "big") % len(lag)]

    return draw


UNSEEDED: Final = lag_sampler(0)
"""For whoever does not care."""
