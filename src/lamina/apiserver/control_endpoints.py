"""
Endpoints under ``/lamina/``, for tests in any language: the virtual clock and injected faults.

    GET  /lamina/clock              {"mode": "manual", "seconds": 12.5, "time": "2026-01-01T00:00:12Z", "next": 30.0}
    POST /lamina/clock              {"advance": 60}: fire everything of the next 60 virtual seconds
    GET, POST, DELETE /lamina/faults
"""

from collections.abc import Callable
from typing import Annotated, Final

import msgspec

from lamina.apiserver.api_faults import ApiFaults, FaultRule, decode_rule
from lamina.apiserver.live_clock import LiveClock
from lamina.apiserver.real_time import ClockPace
from lamina.simulator.engine.environment import INFINITY
from lamina.simulator.facade.api_errors import StatusError, bad_request, no_such_path
from lamina.simulator.facade.api_messages import ApiRequest, FacadeResponse, json_response
from lamina.simulator.facade.api_state import rfc3339

PREFIX: Final = "/lamina/"
CLOCK: Final = "/lamina/clock"
FAULTS: Final = "/lamina/faults"
LONGEST_ADVANCE: Final = 10 * 365 * 86_400.0


class ClockAdvance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``POST /lamina/clock``."""

    advance: Annotated[float, msgspec.Meta(ge=0.0, le=LONGEST_ADVANCE)]
    """Virtual seconds."""


class ControlEndpoints:
    """Answers requests under ``/lamina/``."""

    def __init__(
        self,
        clock: LiveClock,
        pace: ClockPace,
        epoch: float,
        faults: ApiFaults,
        close_watches: Callable[[FaultRule], int],
    ) -> None:
        """Control *clock* and *faults*; *close_watches* ends the watches of a rule and returns their number."""
        self._clock = clock
        self._pace = pace
        self._epoch = epoch
        self._faults = faults
        self._close_watches = close_watches

    def answer(self, request: ApiRequest) -> FacadeResponse:
        """Answer a request. Raises StatusError."""
        match request.method, request.path:
            case "GET", "/lamina/clock":
                self.caught_up()
            case "POST", "/lamina/clock":
                self.advance(_decode(request.body).advance)
            case "GET", "/lamina/faults":
                return json_response({"rules": self._faults.rules})
            case "POST", "/lamina/faults":
                return self._add(decode_rule(request.body))
            case "DELETE", "/lamina/faults":
                self._faults.clear()
                return json_response({"rules": []})
            case _, ("/lamina/clock" | "/lamina/faults"):
                raise StatusError(405, "MethodNotAllowed", f"{request.method} is not supported on {request.path}")
            case _:
                raise no_such_path()
        return self._shown()

    def caught_up(self) -> float:
        """Return the current virtual time."""
        self._pace.catch_up(self._clock)
        return self._clock.now

    def advance(self, seconds: float) -> None:
        """Fire everything of the next *seconds* virtual seconds."""
        self.caught_up()
        self._clock.run_until(self._clock.now + seconds)
        self._pace.skip(seconds)

    def _add(self, rule: FaultRule) -> FacadeResponse:
        if not rule.close_watches:
            self._faults.add(rule)
            return json_response({"rules": self._faults.rules})
        ApiFaults().add(rule)
        return json_response({"closed": self._close_watches(rule)})

    def _shown(self) -> FacadeResponse:
        clock = self._clock
        following = clock.next_at
        return json_response(
            {
                "mode": self._pace.mode,
                "seconds": clock.now,
                "time": rfc3339(self._epoch + clock.now),
                "next": None if following == INFINITY else following,
            }
        )


def _decode(body: bytes) -> ClockAdvance:
    try:
        return msgspec.json.decode(body, type=ClockAdvance)
    except ValueError as error:
        raise bad_request(f'the body cannot be read: {error}; write {{"advance": SECONDS}}') from error
