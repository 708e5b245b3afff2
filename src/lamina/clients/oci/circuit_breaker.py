"""
Circuit breaker for registry hosts.

    closed --5 failures in a row--> open --30 s--> half open --one success--> closed
                                     ^                 |
                                     +---- one failure: open twice as long, at most 5 min

After a 429, the breaker opens for the host's Retry-After, at most 5 minutes. While half open, one request is let
through and the others fail. Every response except a server error (5xx) is a success: the host works.
"""

from collections import OrderedDict
from typing import Final

import msgspec

FAILURES: Final = 5
FIRST: Final = 30.0
LONGEST: Final = 300.0
MOST_HOSTS: Final = 1_000


class _HostState(msgspec.Struct):
    failures: int = 0
    open_until: float = 0.0
    pause: float = 0.0
    """How long it was open the last time, in seconds; 0 while closed."""
    trying: bool = False


class CircuitBreaker:
    """Breaker state of each host."""

    def __init__(self) -> None:
        """Start with all hosts closed."""
        self._states: OrderedDict[str, _HostState] = OrderedDict()

    def wait(self, host: str, now: float) -> float:
        """Return the seconds until a request is allowed; 0 allows one, whose outcome the caller must report."""
        state = self._states.get(host)
        if state is None or not state.pause:
            return 0.0
        if now < state.open_until:
            return state.open_until - now
        if state.trying:
            return 1.0
        state.trying = True
        return 0.0

    def succeeded(self, host: str) -> None:
        """Record that the host responded."""
        self._states.pop(host, None)

    def failed(self, host: str, now: float) -> None:
        """Record that the host did not respond, or responded with a server error."""
        state = self._state(host)
        state.trying = False
        if state.pause and now < state.open_until:
            return  # a request that was in flight when the breaker opened
        state.failures += 1
        if state.pause or state.failures >= FAILURES:
            state.pause = min(state.pause * 2 or FIRST, LONGEST)
            state.open_until = max(state.open_until, now + state.pause)

    def asked_to_wait(self, host: str, seconds: float, now: float) -> None:
        """Record the host's Retry-After."""
        state = self._state(host)
        state.trying = False
        state.pause = min(max(seconds, 1.0), LONGEST)
        state.open_until = max(state.open_until, now + state.pause)

    def given_up(self, host: str) -> None:
        """Record that the half-open request has ended, whatever its outcome."""
        if (state := self._states.get(host)) is not None:
            state.trying = False

    def open(self, now: float) -> int:
        """Return the number of hosts whose breaker is open."""
        return sum(1 for state in self._states.values() if state.pause and now < state.open_until)

    def _state(self, host: str) -> _HostState:
        state = self._states.setdefault(host, _HostState())
        self._states.move_to_end(host)
        if len(self._states) > MOST_HOSTS:
            self._states.popitem(last=False)
        return state
