"""
How congested a node is: one number from 0 (not at all) to 100.

Each *part* is the share of time or of bandwidth that something was short, from 0 to 1:

    cpu, memory, io    time in which somebody waited for it (pressure stall information)
    network            the busiest direction of the busiest device, of what that device can take
    disk               time in which the busiest device had something to do

A share says nothing up to where it *begins* to matter and everything from where it is *full*; between them it counts in a
straight line. What is worst decides: a node whose disk is at its end is congested, however idle its network.

    raw = 100 · max over parts of clamp((share - begin) / (full - begin), 0, 1)

A part that nobody measures is left out, and a node without any has no number. What comes of it is smoothed, rising
quickly and falling slowly, so that a spike is noticed and its end is waited for:

    level ← level + (1 - 2^(-elapsed / halving)) · (raw - level)

What is written follows in steps (`planning`), so that a level that wavers does not. Pure.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

RISING: Final = 30.0
"""Seconds in which half of the way up is gone."""
FALLING: Final = 120.0
"""And half of the way down."""
MOST: Final = 100.0


class PressureRange(msgspec.Struct, frozen=True):
    """From which share on something counts, and from which on it counts in full."""

    begin: float
    full: float

    def weigh(self, share: float) -> float:
        """Say how much a share counts, from 0 to 1."""
        return min(max((share - self.begin) / (self.full - self.begin), 0.0), 1.0)


# Waiting for a processor now and then is life; for memory it never is. A device is slow long before it is full, and one
# that serves many requests at once may have something to do all the time and yet take more.
PRESSURE_RANGES: Final[dict[str, PressureRange]] = {
    "cpu": PressureRange(0.10, 0.60),
    "memory": PressureRange(0.02, 0.20),
    "io": PressureRange(0.10, 0.60),
    "network": PressureRange(0.50, 0.95),
    "disk": PressureRange(0.70, 1.00),
}


def current_congestion(shares: Mapping[str, float]) -> float | None:
    """Say how congested a node is right now, 0 to 100; None when nothing is known."""
    weighed = [PRESSURE_RANGES[name].weigh(share) for name, share in shares.items() if name in PRESSURE_RANGES]
    return MOST * max(weighed) if weighed else None


class CongestionLevel(msgspec.Struct, frozen=True, gc=False):
    """How congested a node has been of late."""

    value: float
    at: float
    """When; a clock that goes back stands still here."""

    def follow(self, now: float, target: float) -> "CongestionLevel":
        """Go towards what is so now."""
        elapsed = max(now - self.at, 0.0)
        halving = RISING if target > self.value else FALLING
        return CongestionLevel(self.value + (1 - 0.5 ** (elapsed / halving)) * (target - self.value), now)
