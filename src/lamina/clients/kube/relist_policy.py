"""
What a reflector does next, judged by how its last connection ended.

    a list is needed     stream it -------refused, or it broke off three times-------> by pages, for an hour
    a list is there      watch from the version we have

    how a watch ended                                     what follows
    ----------------------------------------------------  -----------------------------------------------------
    properly, after something came or some seconds        watch on
    properly, at once and without a word                  list: our version is too old, and nobody says so
    410 in any form                                       list
    a version that the server has not reached             list, and believe no version: history was rewritten
    broken connection, silence                            compare histories, then watch on
    a line that is no event, twice from one version       list, which goes round it
    any other answer                                      wait, then watch on

Told about endings by the reflector; does nothing itself but count.
"""

from typing import Final

import msgspec

from lamina.clients.kube.backoff import RetryBackoff, TimeSource
from lamina.clients.kube.errors import ApiError, SilenceError, UnreachableError
from lamina.clients.kube.reflector_counters import ReflectorCounters
from lamina.clients.kube.watch_connection import BrokenWatchError, NotStreamedError

TOO_SHORT: Final = 2.0
"""A watch that the server ends within so many seconds without a word went on from a version it no longer has."""
NEXT_SILENT_LIST: Final = 60.0
"""Seconds before watches that end without a word cause another list; a broken server may do nothing else."""
STREAM_AGAIN: Final = 3600.0
"""Seconds until a server that does not stream lists is asked once more: it may have been upgraded."""
STREAM_TRIES: Final = 3
"""Streamed lists that may break off before pages are tried: to get on is better than to insist."""
BROKEN_TRIES: Final = 2
"""Watches from one version that may break at their first line before a list goes round it."""
REFUSALS: Final = frozenset({400, 405, 422, 501})
"""Answers of servers that do not know how to stream a list; those that check their queries say 422."""
PASSING: Final = frozenset({410, 429, 503, 504})
"""What an ERROR event at the beginning of a streamed list may say without meaning that there never will be one."""


class WatchOutcome(msgspec.Struct):
    """How an attempt went."""

    streams_list: bool = False
    """Whether a streamed list was asked for."""
    opened: bool = False
    """Whether the server began to answer."""
    heard: int = 0
    """Events that came."""
    lasted: float = 0.0
    """Seconds."""
    error: ApiError | UnreachableError | None = None
    """What ended it; None when the server ended it properly."""


class RelistPolicy:
    """Where we are in the server's history and how to get on."""

    def __init__(self, timing: TimeSource, counts: ReflectorCounters) -> None:
        self._timing = timing
        self._counts = counts
        self._backoff = RetryBackoff(timing)
        self._paged_until = float("-inf")
        self._streams_broken = 0
        self._watches_broken = 0
        self._silent_list_at = float("-inf")
        self.version = ""
        """Where to watch on from; empty when a list is needed."""
        self.trusting = True
        """Whether an object with the version that is known is the object that is known."""
        self.doubtful = False
        """Whether to compare histories first."""

    @property
    def may_stream(self) -> bool:
        """Whether to ask for a streamed list."""
        return self._timing.clock() >= self._paged_until

    def listed(self) -> None:
        """Hear that a list is complete."""
        self.trusting = True
        self.doubtful = False
        self._streams_broken = 0

    def compare(self, current: str) -> None:
        """Hear how far the server's history has come: when not as far as ours, it is another one."""
        self.doubtful = False
        if current.isdecimal() and self.version.isdecimal() and int(current) < int(self.version):
            self._need_list("restored", trusting=False)

    def after(self, ending: WatchOutcome) -> float:
        """Judge an ending; return how long to wait before the next attempt."""
        if not self.version:
            return self._after_list(ending)
        match ending.error:
            case None:
                return self._after_close(ending)
            case ApiError(too_large=True):
                return self._need_list("restored", trusting=False)
            case ApiError(expired=True):
                return self._need_list("expired")
            case ApiError():
                return self._backoff.after_failure(ending.error.retry_after)
            case _:
                return self._after_break(ending)

    def _after_list(self, ending: WatchOutcome) -> float:
        """A list was asked for and is not complete."""
        if ending.streams_list and _is_refusal(ending):
            self._paged_until = self._timing.clock() + STREAM_AGAIN
            return 0.0
        if ending.streams_list and ending.opened:
            self._streams_broken += 1
            if self._streams_broken >= STREAM_TRIES:
                self._paged_until = self._timing.clock() + STREAM_AGAIN
                self._streams_broken = 0
        asked = ending.error.retry_after if isinstance(ending.error, ApiError) else None
        return self._backoff.after_failure(asked)

    def _after_close(self, ending: WatchOutcome) -> float:
        if ending.heard or ending.lasted >= TOO_SHORT:
            self._watches_broken = 0
            return 0.0
        now = self._timing.clock()
        if now - self._silent_list_at < NEXT_SILENT_LIST:
            return self._backoff.after_failure()
        self._silent_list_at = now
        return self._need_list("silent")

    def _after_break(self, ending: WatchOutcome) -> float:
        self.doubtful = True
        if ending.heard:
            self._watches_broken = 0
            return 0.0
        if isinstance(ending.error, SilenceError):
            return 0.0
        if isinstance(ending.error, BrokenWatchError):
            self._watches_broken += 1
            if self._watches_broken >= BROKEN_TRIES:
                self._watches_broken = 0
                return self._need_list("broken")
        return self._backoff.after_failure()

    def _need_list(self, reason: str, *, trusting: bool = True) -> float:
        self._counts.relists[reason] += 1
        self.version = ""
        self.trusting = self.trusting and trusting
        # Even the first one waits a moment: a server that keeps forgetting must not be listed as fast as it answers.
        return self._backoff.after_failure()


def _is_refusal(ending: WatchOutcome) -> bool:
    """Whether the server does not stream lists, as opposed to having failed to."""
    match ending.error:
        case NotStreamedError() | SilenceError():
            return True
        case ApiError(status=status):
            return status not in PASSING and not ending.heard if ending.opened else status in REFUSALS
        case _:
            return False
