"""
When looking again may be worth it.

    something happened   a second later, so that what belongs together is seen together, and two at the most
    a pull is going on   every two seconds, so that its progress is seen
    sizes are missing    a second later
    an image is removed  once more after some seconds: events come before what was removed is gone
    nobody listens       every ten to thirty seconds, less and less often
    nothing of this      every five minutes, and then everything is asked for
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
    """Says when; told the time by whoever asks."""

    def __init__(self) -> None:
        self._looked = float("-inf")
        self._whole = float("-inf")
        self._first: float | None = None
        self._last = 0.0
        self._removal = float("inf")
        self._pause = 0.0
        self._deaf = DEAF

    def happened(self, now: float, *, removal: bool = False) -> None:
        """Something makes a look worth while."""
        if self._first is None:
            self._first = now
        self._last = now
        if removal:
            self._removal = now + AFTER_REMOVAL

    def whole_due(self, now: float) -> bool:
        """Whether everything has to be asked for."""
        return now >= self._whole + WHOLE

    def began(self, now: float) -> bool:
        """A look begins, which sees what happened before; whether it is the one that follows a removal."""
        self._first = None
        due = self._removal <= now
        if due:
            self._removal = float("inf")
        return due

    def ended(self, now: float, *, whole: bool, pulling: bool, unfinished: bool, deaf: bool) -> None:
        """A look is at an end, and this is how it went."""
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
        """A look found nobody to ask; everything is open."""
        self._looked = now
        self._whole = float("-inf")
        self._pause = self._deaf
        self._deaf = min(self._deaf * 1.5, DEAFEST)

    def due(self) -> float:
        """When to look again."""
        at = min(self._looked + self._pause, self._removal)
        if self._whole > self._looked - WHOLE:
            at = min(at, max(self._whole + WHOLE, self._looked + QUIET))
        if self._first is not None:
            at = min(at, max(min(self._last + QUIET, self._first + PATIENCE), self._looked + QUIET))
        return at
