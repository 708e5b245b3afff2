"""How often a kubelet may begin a pull, and how long it rests after one that failed."""

from typing import Final

from lamina.simulator.pulls.spec import RuntimeSpec

FIRST: Final = 10.0
"""Seconds before a failed pull is tried again; doubled each time..."""
LONGEST: Final = 300.0
"""...up to this. Both are kubelet's image back-off, which it keeps for each pod and image."""


def next_backoff(backoff: float) -> float:
    """Say how long to rest after one more failure."""
    return min(2.0 * backoff, LONGEST) if backoff else FIRST


class Pace:
    """A bucket of tokens: *burst* of them at most, *qps* more each second, one for each pull that begins."""

    __slots__ = ("_at", "_burst", "_qps", "_tokens")

    def __init__(self, spec: RuntimeSpec) -> None:
        """Start with a full bucket."""
        self._qps = spec.pull_qps
        self._burst = float(spec.pull_burst)
        self._tokens = self._burst
        self._at = 0.0

    def take(self, now: float) -> bool:
        """Take a token; false when there is none."""
        if not self._qps:
            return True
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._qps)
        self._at = now
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True
