"""
Fault injection: lets a client's test see the errors that a real API server gives now and then.

A rule applies to the next requests whose method and path match. It delays them, answers them with an error, or both.
Open watches can be ended as well: cleanly, or with an error event such as 410.

    {"method": "GET", "path": "/api/v1/pods", "status": 429, "times": 2}
    {"path": "/api/v1/*", "delay": 1.5}
    {"close_watches": true, "status": 410}
"""

import fnmatch
from typing import Annotated, Final

import msgspec

from lamina.simulator.facade.api_errors import StatusError, bad_request

REASONS: Final = {
    400: ("BadRequest", "injected fault"),
    401: ("Unauthorized", "Unauthorized"),
    403: ("Forbidden", "injected fault"),
    404: ("NotFound", "the server could not find the requested resource"),
    409: ("Conflict", "the object has been modified; please apply your changes to the latest version and try again"),
    410: ("Expired", "too old resource version"),
    422: ("Invalid", "injected fault"),
    429: ("TooManyRequests", "too many requests, please try again later"),
    500: ("InternalError", "Internal error occurred: injected fault"),
    502: ("InternalError", "injected fault: bad gateway"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: ("Timeout", "the request did not complete within the allotted timeout"),
}
"""Reason and message by HTTP status, in Kubernetes' words."""
RETRIED: Final = frozenset({429, 503, 504})
"""Statuses that tell the client when to try again."""
MOST_RULES: Final = 1_000
MOST_TIMES: Final = 1_000_000
LONGEST_DELAY: Final = 30.0


class FaultRule(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Which requests fail, and how."""

    method: str = ""
    """HTTP method; empty: any."""
    path: str = "*"
    """Path without the query; ``*`` stands for any characters, also for slashes."""
    watch: bool | None = None
    """Only watches, or only other requests; None: both."""
    status: int = 0
    """HTTP status of the error; 0: the request is answered as usual, after the delay."""
    message: str = ""
    """Message of the error; empty: Kubernetes' own."""
    times: Annotated[int, msgspec.Meta(ge=1, le=MOST_TIMES)] = 1
    """Number of requests that the rule still applies to."""
    delay: Annotated[float, msgspec.Meta(ge=0.0, le=LONGEST_DELAY)] = 0.0
    """Real seconds before the answer."""
    retry_after: Annotated[int, msgspec.Meta(ge=0, le=3600)] = 1
    """``Retry-After`` in seconds, for 429, 503 and 504."""
    close_watches: bool = False
    """End all open watches on *path* now instead; with *status*, each gets an error event first."""

    def error(self) -> StatusError:
        """Return the error of this rule."""
        reason, message = REASONS[self.status]
        details = {"retryAfterSeconds": self.retry_after} if self.status in RETRIED else None
        return StatusError(self.status, reason, self.message or message, details)

    def matches_path(self, path: str) -> bool:
        """Return whether the rule is about *path*."""
        return fnmatch.fnmatchcase(path, self.path)


class ApiFaults:
    """The fault rules of one server, in the order in which they were added."""

    def __init__(self) -> None:
        """Start without rules."""
        self.rules: list[FaultRule] = []

    def add(self, rule: FaultRule) -> None:
        """Add a rule. Raises StatusError 400."""
        if rule.status and rule.status not in REASONS:
            known = ", ".join(map(str, REASONS))
            raise bad_request(f"status: {rule.status} is no error that the server can give; use one of {known}")
        if not rule.status and not rule.delay and not rule.close_watches:
            raise bad_request("the rule has no effect; give it a status, a delay or close_watches")
        if rule.close_watches and rule.delay:
            raise bad_request("close_watches: it acts at once; remove the delay")
        if rule.method and rule.method != rule.method.upper():
            raise bad_request(f"method: {rule.method[:20]!r} has lower case letters; write {rule.method.upper()[:20]}")
        if len(self.rules) >= MOST_RULES:
            raise bad_request(f"there are {MOST_RULES} rules, which is the limit; send DELETE /lamina/faults first")
        self.rules.append(rule)

    def take(self, method: str, path: str, *, watch: bool) -> FaultRule | None:
        """Return the first rule for a request, and count it."""
        for place, rule in enumerate(self.rules):
            if rule.method not in {"", method} or rule.watch not in {None, watch} or not rule.matches_path(path):
                continue
            rule.times -= 1
            if rule.times <= 0:
                del self.rules[place]
            return rule
        return None

    def clear(self) -> None:
        """Remove all rules."""
        self.rules.clear()


def decode_rule(body: bytes) -> FaultRule:
    """Return the rule of a request body. Raises StatusError 400."""
    try:
        return msgspec.json.decode(body, type=FaultRule)
    except ValueError as error:
        raise bad_request(f"the fault rule cannot be read: {error}") from error
