"""
Relist policy of a reflector: what to do after a connection has ended.

    no version      stream a list ------rejected, or broken three times------> paged lists, for an hour
    has a version   watch from it

    how a watch ended                                     what follows
    ----------------------------------------------------  -----------------------------------------------------
    properly, after events or some seconds                watch again
    properly, at once and without events                  list: the version is probably expired without an error
    410 in any form                                       list
    a version that the server has not reached             list, decode everything: the history is another one
    broken or idle connection                             compare versions, then watch again
    a line that is not an event, twice from one version   list, which skips that line
    any other error                                       wait, then watch again

The reflector reports outcomes to the policy, which only decides and counts.
"""

from typing import Final

import msgspec

from lamina.clients.kube.backoff import RetryBackoff, TimeSource
from lamina.clients.kube.errors import ApiError, SilenceError, UnreachableError
from lamina.clients.kube.reflector_counters import ReflectorCounters
from lamina.clients.kube.watch_connection import BrokenWatchError, NotStreamedError

TOO_SHORT: Final = 2.0
"""Seconds. A watch that the server ends sooner, without events, probably started from an expired version."""
NEXT_SILENT_LIST: Final = 60.0
"""Seconds between lists caused by watches without events; a broken server may end every watch that way."""
STREAM_AGAIN: Final = 3600.0
"""Seconds until a streamed list is tried again after a rejection: the server may have been upgraded."""
STREAM_TRIES: Final = 3
"""Broken streamed lists before paged lists are used."""
BROKEN_TRIES: Final = 2
"""Watches from one version that may break at their first line before a list is used to skip it."""
REFUSALS: Final = frozenset({400, 405, 422, 501})
"""Statuses of servers that do not support streamed lists; those that validate queries return 422."""
PASSING: Final = frozenset({410, 429, 503, 504})
"""Statuses of an ERROR event at the start of a streamed list that are temporary."""


class WatchOutcome(msgspec.Struct):
    """How an attempt ended."""

    streams_list: bool = False
    """Whether a streamed list was requested."""
    opened: bool = False
    """Whether a response began."""
    heard: int = 0
    """Events received."""
    lasted: float = 0.0
    """Seconds."""
    error: ApiError | UnreachableError | None = None
    """Why it ended; None when the server ended it properly."""


class RelistPolicy:
    """Current version and next step of a reflector."""

    def __init__(self, timing: TimeSource, counts: ReflectorCounters) -> None:
        self._timing = timing
        self._counts = counts
        self._backoff = RetryBackoff(timing)
        self._paged_until = float("-inf")
        self._streams_broken = 0
        self._watches_broken = 0
        self._silent_list_at = float("-inf")
        self.version = ""
        """Version to watch from; empty when a list is needed."""
        self.trusting = True
        """Whether an object with a known version is unchanged; False after a restore from a backup."""
        self.doubtful = False
        """Whether to compare versions with the server before the next watch."""

    @property
    def may_stream(self) -> bool:
        """Whether to request a streamed list."""
        return self._timing.clock() >= self._paged_until

    def listed(self) -> None:
        """Record that a list is complete."""
        self.trusting = True
        self.doubtful = False
        self._streams_broken = 0

    def compare(self, current: str) -> None:
        """Compare with the server's version; a lower one means another history, so a list is needed."""
        self.doubtful = False
        if current.isdecimal() and self.version.isdecimal() and int(current) < int(self.version):
            self._need_list("restored", trusting=False)

    def after(self, outcome: WatchOutcome) -> float:
        """Record how an attempt ended; return the seconds to wait before the next one."""
        if not self.version:
            return self._after_list(outcome)
        match outcome.error:
            case None:
                return self._after_close(outcome)
            case ApiError(too_large=True):
                return self._need_list("restored", trusting=False)
            case ApiError(expired=True):
                return self._need_list("expired")
            case ApiError():
                return self._backoff.after_failure(outcome.error.retry_after)
            case _:
                return self._after_break(outcome)

    def _after_list(self, outcome: WatchOutcome) -> float:
        """Handle an incomplete list."""
        if outcome.streams_list and _is_refusal(outcome):
            self._paged_until = self._timing.clock() + STREAM_AGAIN
            return 0.0
        if outcome.streams_list and outcome.opened:
            self._streams_broken += 1
            if self._streams_broken >= STREAM_TRIES:
                self._paged_until = self._timing.clock() + STREAM_AGAIN
                self._streams_broken = 0
        asked = outcome.error.retry_after if isinstance(outcome.error, ApiError) else None
        return self._backoff.after_failure(asked)

    def _after_close(self, outcome: WatchOutcome) -> float:
        if outcome.heard or outcome.lasted >= TOO_SHORT:
            self._watches_broken = 0
            return 0.0
        now = self._timing.clock()
        if now - self._silent_list_at < NEXT_SILENT_LIST:
            return self._backoff.after_failure()
        self._silent_list_at = now
        return self._need_list("silent")

    def _after_break(self, outcome: WatchOutcome) -> float:
        self.doubtful = True
        if outcome.heard:
            self._watches_broken = 0
            return 0.0
        if isinstance(outcome.error, SilenceError):
            return 0.0
        if isinstance(outcome.error, BrokenWatchError):
            self._watches_broken += 1
            if self._watches_broken >= BROKEN_TRIES:
                self._watches_broken = 0
                return self._need_list("broken")
        return self._backoff.after_failure()

    def _need_list(self, reason: str, *, trusting: bool = True) -> float:
        self._counts.relists[reason] += 1
        self.version = ""
        self.trusting = self.trusting and trusting
        # The first relist is delayed too, so that a server whose versions always expire is not listed in a loop.
        return self._backoff.after_failure()


def _is_refusal(outcome: WatchOutcome) -> bool:
    """Return whether the server does not support streamed lists, as opposed to a temporary failure."""
    match outcome.error:
        case NotStreamedError() | SilenceError():
            return True
        case ApiError(status=status):
            return status not in PASSING and not outcome.heard if outcome.opened else status in REFUSALS
        case _:
            return False
