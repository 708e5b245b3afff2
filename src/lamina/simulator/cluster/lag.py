"""
Random delays that are equal under every scheduler profile.

A lag is one number, or a list of measured values that are equally likely. A drawn lag depends only on the seed, its
purpose and the object it applies to. So the same pod waits equally long under every profile, and runs can be compared
pod by pod.
"""

from collections.abc import Callable
from hashlib import blake2b
from typing import Final

Lag = float | tuple[float, ...]
"""Seconds, or a list of seconds to draw from."""

DrawLag = Callable[[Lag, str, str], float]
"""Draws the seconds of a lag; arguments: lag, purpose, name of the object."""


def lag_sampler(seed: int) -> DrawLag:
    """Return a function that draws lags under *seed*."""

    def draw(lag: Lag, purpose: str, name: str) -> float:
        if not isinstance(lag, tuple):
            return lag
        # A hash, because seeding a Python random generator for one number takes ten times as long.
        drawn = blake2b(f"{seed}/{purpose}/{name}".encode(), digest_size=8).digest()
        return lag[int.from_bytes(drawn, "big") % len(lag)]

    return draw


UNSEEDED: Final = lag_sampler(0)
"""Sampler with seed 0, for callers without a seed."""
