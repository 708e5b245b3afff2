"""
Back-off of a controller before it replaces a pod that ended early.

A pod that ended after running normally is replaced at once. A pod that the kubelet rejected, or that failed on start,
would fail again at the same virtual time, for ever. So its replacement waits, twice as long each time. Real ReplicaSets
have no such back-off, because real time passes between two attempts.
"""

import math
from typing import Final

from lamina.simulator.cluster import VirtualPod

FIRST: Final = 1.0
"""Back-off in seconds after the first pod that ended early; doubled with each further one, up to MOST."""
MOST: Final = 300.0
"""Longest back-off in seconds."""
EARLY: Final = 10.0
"""Seconds of running below which a pod ended early."""
CALM: Final = 600.0
"""Seconds without an early end that reset the back-off."""
MOST_TRIES: Final = 30
"""Early ends in a row after which the controller stops until its spec changes; otherwise a run might never end."""

BY_ITSELF: Final = ("finished", "failed", "rejected")
"""Final phases of a pod that was not removed."""


def doubled(times: int, first: float, most: float) -> float:
    """Return first · 2^(times - 1), at most *most*."""
    # More doublings have no effect, and a float could overflow.
    return min(most, first * 2.0 ** min(times - 1, 60))


class ReplacementBackoff:
    """Counts pods that ended early and computes when the next pod may be created."""

    __slots__ = ("_last", "_streak", "ready_at")

    def __init__(self) -> None:
        """Start without a back-off."""
        self._streak = 0
        self._last = -math.inf
        self.ready_at = 0.0
        """Earliest time of the next pod; infinity after MOST_TRIES early ends."""

    def ended(self, pod: VirtualPod, now: float) -> None:
        """Count a pod if it ended early. Pods that end at the same time count once."""
        ran = 0.0 if pod.started is None else now - pod.started
        if pod.phase not in BY_ITSELF or ran >= EARLY or now == self._last:
            return
        if now - max(self._last, self.ready_at) > CALM:
            self._streak = 0
        self._streak += 1
        self._last = now
        tried_enough = self._streak >= MOST_TRIES
        self.ready_at = math.inf if tried_enough else now + doubled(self._streak, FIRST, MOST)

    def forget(self) -> None:
        """Reset the back-off, because the controller's spec has changed."""
        self._streak = 0
        self.ready_at = 0.0
