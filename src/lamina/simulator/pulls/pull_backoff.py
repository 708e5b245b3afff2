"""How long a kubelet rests after a pull that failed."""

from typing import Final

FIRST: Final = 10.0
"""Seconds before a failed pull is tried again; doubled each time..."""
LONGEST: Final = 300.0
"""...up to this. Both are kubelet's image back-off, which it keeps for each pod and image."""


def next_backoff(backoff: float) -> float:
    """Say how long to rest after one more failure."""
    return min(2.0 * backoff, LONGEST) if backoff else FIRST
