"""How long to wait before trying again: after every failure longer, never the same for all nodes, never less than asked."""

import random
from typing import Final

FIRST: Final = 1.0
"""Seconds the first wait lasts at least."""
LONGEST: Final = 60.0
FACTOR: Final = 2.0
SPREAD: Final = 0.5
"""By how much of itself a wait may be longer; a thousand nodes that failed together come back one by one."""
LONGEST_ASKED: Final = 300.0
"""Seconds that a server's Retry-After is honoured for."""


class ReportBackoff:
    """Waits of 1 to 60 seconds, each about twice the one before."""

    def __init__(self, rng: random.Random, first: float = FIRST, longest: float = LONGEST) -> None:
        """Throw *rng*'s dice."""
        self._rng = rng
        self._first, self._longest = first, longest
        self._next = first

    def after_failure(self, asked: float | None = None) -> float:
        """Say how many seconds to wait; *asked* is what the server wants, and the least it gets."""
        wait = min(self._next * (1 + SPREAD * self._rng.random()), self._longest)
        self._next = min(self._next * FACTOR, self._longest)
        return max(wait, min(asked or 0.0, LONGEST_ASKED))

    def went_well(self) -> None:
        """Begin anew: the next failure counts as the first."""
        self._next = self._first
