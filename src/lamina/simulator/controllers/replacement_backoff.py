"""
How long a controller waits before it makes a pod again.

A pod that was lost after good work is replaced at once. One that a kubelet refused, or that failed as soon as it ran,
would be refused or fail again at the same instant, for ever; so pods that end early are made again after a wait that
doubles. Real ReplicaSets do not wait; real time passes between two attempts by itself, virtual time does not.
"""

import math
from typing import Final

from lamina.simulator.cluster import VirtualPod

FIRST: Final = 1.0
"""Seconds after the first pod that ended early..."""
MOST: Final = 300.0
"""...doubled with each further one, up to this."""
EARLY: Final = 10.0
"""A pod that did not run for so long ended early."""
CALM: Final = 600.0
"""After so many seconds without trouble the count starts anew."""
MOST_TRIES: Final = 30
"""In a row; then nothing is tried until something changes, or a run in which nothing fits would never end."""

BY_ITSELF: Final = ("finished", "failed", "rejected")
"""How a pod ends that nobody removed."""


def doubled(times: int, first: float, most: float) -> float:
    """Return *first*, doubled for each of *times* after the first one, at most *most*."""
    # No number of doublings beyond this matters, and a float cannot hold all of them.
    return min(most, first * 2.0 ** min(times - 1, 60))


class ReplacementBackoff:
    """Counts pods that ended early, and says when the next one may be made."""

    __slots__ = ("_last", "_streak", "ready_at")

    def __init__(self) -> None:
        """Start without trouble."""
        self._streak = 0
        self._last = -math.inf
        self.ready_at = 0.0
        """No pod is made before; infinite once enough was tried."""

    def ended(self, pod: VirtualPod, now: float) -> None:
        """Look at how a pod ended. Those that end together count as one."""
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
        """Begin anew: something has changed."""
        self._streak = 0
        self.ready_at = 0.0
