"""Back-off of the kubelet after a failed pull."""

from typing import Final

FIRST: Final = 10.0
"""Seconds before the first retry of a failed pull; doubled with every failure, up to LONGEST."""
LONGEST: Final = 300.0
"""Longest back-off in seconds. Both values are the kubelet's, which keeps a back-off per pod and image."""


def next_backoff(backoff: float) -> float:
    """Return the back-off in seconds after one more failure."""
    return min(2.0 * backoff, LONGEST) if backoff else FIRST
