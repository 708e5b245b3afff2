"""Exponential back-off with jitter, never shorter than the server's Retry-After."""

import random
from typing import Final

FIRST: Final = 1.0
"""Shortest first wait in seconds."""
LONGEST: Final = 60.0
FACTOR: Final = 2.0
SPREAD: Final = 0.5
"""Jitter added to a wait, as a share of it, so that nodes that failed together do not retry together."""
LONGEST_ASKED: Final = 300.0
"""Longest Retry-After that is honoured, in seconds."""


class ReportBackoff:
    """Waits of 1 to 60 seconds, each about twice as long as the last."""

    def __init__(self, rng: random.Random, first: float = FIRST, longest: float = LONGEST) -> None:
        """Use *rng* for jitter."""
        self._rng = rng
        self._first, self._longest = first, longest
        self._next = first

    def after_failure(self, asked: float | None = None) -> float:
        """Return the seconds to wait; at least *asked*, the server's Retry-After."""
        wait = min(self._next * (1 + SPREAD * self._rng.random()), self._longest)
        self._next = min(self._next * FACTOR, self._longest)
        return max(wait, min(asked or 0.0, LONGEST_ASKED))

    def went_well(self) -> None:
        """Reset: the next failure starts with the first wait."""
        self._next = self._first
