"""
Schedule of looks at a containerd.

    an event             1 s later, so that related events are seen together, at most 2 s after the first
    an active pull       every 2 s, for its progress
    sizes are missing    1 s later
    an image is removed  again after 5 s: its event comes before the content is removed
    no event stream      every 10 to 30 s, with an increasing delay
    none of these        every 5 min, querying everything
"""

from typing import Final

QUIET: Final = 1.0
PATIENCE: Final = 2.0
PULLING: Final = 2.0
UNFINISHED: Final = 1.0
AFTER_REMOVAL: Final = 5.0
DEAF: Final = 10.0
DEAFEST: Final = 30.0
WHOLE: Final = 300.0


class PollSchedule:
    """Computes the next poll time; the caller passes `now`."""

    def __init__(self) -> None:
        self._looked = float("-inf")
        self._whole = float("-inf")
        self._first: float | None = None
        self._last = 0.0
        self._removal = float("inf")
        self._pause = 0.0
        self._deaf = DEAF

    def happened(self, now: float, *, removal: bool = False) -> None:
        """Record an event that makes a look useful."""
        if self._first is None:
            self._first = now
        self._last = now
        if removal:
            self._removal = now + AFTER_REMOVAL

    def whole_due(self, now: float) -> bool:
        """Return whether the next look must query everything."""
        return now >= self._whole + WHOLE

    def began(self, now: float) -> bool:
        """Record the start of a look; return whether it is the one due after a removal."""
        self._first = None
        due = self._removal <= now
        if due:
            self._removal = float("inf")
        return due

    def ended(self, now: float, *, whole: bool, pulling: bool, unfinished: bool, deaf: bool) -> None:
        """Record the end of a look and its result."""
        self._looked = now
        if whole:
            self._whole = now
        self._pause = UNFINISHED if unfinished else PULLING if pulling else WHOLE
        if deaf:
            self._pause = min(self._pause, self._deaf)
            self._deaf = min(self._deaf * 1.5, DEAFEST)
        else:
            self._deaf = DEAF

    def failed(self, now: float) -> None:
        """Record a failed look; the next one queries everything."""
        self._looked = now
        self._whole = float("-inf")
        self._pause = self._deaf
        self._deaf = min(self._deaf * 1.5, DEAFEST)

    def due(self) -> float:
        """Return when to look again."""
        at = min(self._looked + self._pause, self._removal)
        if self._whole > self._looked - WHOLE:
            at = min(at, max(self._whole + WHOLE, self._looked + QUIET))
        if self._first is not None:
            at = min(at, max(min(self._last + QUIET, self._first + PATIENCE), self._looked + QUIET))
        return at
