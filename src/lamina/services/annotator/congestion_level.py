"""
Congestion level of a node: one number from 0 (none) to 100.

Each *part* is a share of time or bandwidth, from 0 to 1:

    cpu, memory, io    time in which some task waited for it (pressure stall information)
    network            the busiest direction of the busiest device, relative to its speed
    disk               time in which the busiest device was busy

Below *begin* a share counts as 0, above *full* as 1, and linearly between them. The worst part decides: a node with a
saturated disk is congested, however idle its network is.

    raw = 100 · max over parts of clamp((share - begin) / (full - begin), 0, 1)

A part without data is left out; a node without any part has no level. The level is smoothed and rises faster than it
falls:

    level ← level + (1 - 2^(-elapsed / halving)) · (raw - level)

The annotation follows in steps (`annotation_plan`), so small variations are not written. Pure.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

RISING: Final = 30.0
"""Seconds for half of the way up."""
FALLING: Final = 120.0
"""Seconds for half of the way down."""
MOST: Final = 100.0


class PressureRange(msgspec.Struct, frozen=True):
    """The share at which a part begins to count, and the share at which it counts fully."""

    begin: float
    full: float

    def weigh(self, share: float) -> float:
        """Return how much a share counts, from 0 to 1."""
        return min(max((share - self.begin) / (self.full - self.begin), 0.0), 1.0)


# Tasks normally wait for a processor at times, but not for memory. A device is slow before it is fully used; one that
# serves many requests in parallel may be busy all the time and still accept more.
PRESSURE_RANGES: Final[dict[str, PressureRange]] = {
    "cpu": PressureRange(0.10, 0.60),
    "memory": PressureRange(0.02, 0.20),
    "io": PressureRange(0.10, 0.60),
    "network": PressureRange(0.50, 0.95),
    "disk": PressureRange(0.70, 1.00),
}


def current_congestion(shares: Mapping[str, float]) -> float | None:
    """Return the current congestion of a node, 0 to 100; None without data."""
    weighed = [PRESSURE_RANGES[name].weigh(share) for name, share in shares.items() if name in PRESSURE_RANGES]
    return MOST * max(weighed) if weighed else None


class CongestionLevel(msgspec.Struct, frozen=True, gc=False):
    """Smoothed congestion of a node."""

    value: float
    at: float
    """Time of the value in seconds; a clock that goes back does not change the value."""

    def follow(self, now: float, target: float) -> "CongestionLevel":
        """Return the level after it has moved towards *target* until *now*."""
        elapsed = max(now - self.at, 0.0)
        halving = RISING if target > self.value else FALLING
        return CongestionLevel(self.value + (1 - 0.5 ** (elapsed / halving)) * (target - self.value), now)
