"""Back-off of pods after an attempt, with kube-scheduler's durations and ordering windows."""

import math
from typing import Final

import msgspec

FIRST_BACKOFF: Final = 1.0
LONGEST_BACKOFF: Final = 10.0
# kube-scheduler's backoffQOrderingWindowDuration, in seconds.
WINDOW: Final = 1.0


class PodBackoff(msgspec.Struct, frozen=True):
    """Duration of the back-off after an attempt, in seconds."""

    first: float = FIRST_BACKOFF
    longest: float = LONGEST_BACKOFF

    def after(self, attempts: int) -> float:
        """Return the back-off in seconds after this number of attempts."""
        # The cap is reached long before 2**32; a larger exponent would overflow.
        return min(self.longest, self.first * float(2 ** min(max(attempts, 1) - 1, 32)))


def window_of(at: float) -> float:
    """Return when the window of a time begins, in seconds."""
    return math.floor(at / WINDOW) * WINDOW
