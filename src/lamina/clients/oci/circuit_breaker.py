"""
Leaves a registry alone that is in trouble.

    closed --5 failures in a row--> open --30 s--> half open --one success--> closed
                                     ^                 |
                                     +---- one failure, twice as long, at most 5 min

A registry that says how long it wants to be left alone (429) gets that, at most the longest time. While half open one
question is let through and the others are not asked. Answers, even refusals, are successes: somebody is there.
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
    """How long it was open the last time; 0: it is closed."""
    trying: bool = False


class CircuitBreaker:
    """Remembers how the hosts are."""

    def __init__(self) -> None:
        """Trust everybody."""
        self._states: OrderedDict[str, _HostState] = OrderedDict()

    def wait(self, host: str, now: float) -> float:
        """Say for how many seconds a host is to be left alone; 0 lets one question through, which must be told of."""
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
        """It answered."""
        self._states.pop(host, None)

    def failed(self, host: str, now: float) -> None:
        """It did not answer, or not as a registry that is well."""
        state = self._state(host)
        state.trying = False
        if state.pause and now < state.open_until:
            return  # an answer to a question that was under way when it opened
        state.failures += 1
        if state.pause or state.failures >= FAILURES:
            state.pause = min(state.pause * 2 or FIRST, LONGEST)
            state.open_until = max(state.open_until, now + state.pause)

    def asked_to_wait(self, host: str, seconds: float, now: float) -> None:
        """It said how long it wants to be left alone."""
        state = self._state(host)
        state.trying = False
        state.pause = min(max(seconds, 1.0), LONGEST)
        state.open_until = max(state.open_until, now + state.pause)

    def given_up(self, host: str) -> None:
        """The question that was let through is over, however it ended."""
        if (state := self._states.get(host)) is not None:
            state.trying = False

    def open(self, now: float) -> int:
        """Count the hosts that are left alone."""
        return sum(1 for state in self._states.values() if state.pause and now < state.open_until)

    def _state(self, host: str) -> _HostState:
        state = self._states.setdefault(host, _HostState())
        self._states.move_to_end(host)
        if len(self._states) > MOST_HOSTS:
            self._states.popitem(last=False)
        return state
