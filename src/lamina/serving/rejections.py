"""Rejections of requests and connections: an HTTP status, a message for the client, and a metric label."""

from typing import Final

import msgspec

BAD_REQUEST: Final = "bad request"
TOO_LARGE: Final = "too large"
TOO_SLOW: Final = "too slow"
TOO_BUSY: Final = "too many large requests"
TOO_MANY: Final = "too many connections"
BAD_NAME: Final = "bad client name"
BAD_HANDSHAKE: Final = "bad handshake"

REASONS: Final = (BAD_REQUEST, TOO_LARGE, TOO_SLOW, TOO_BUSY, TOO_MANY, BAD_NAME, BAD_HANDSHAKE)
"""All reasons, as labels of the metric."""


class RequestRejection(msgspec.Struct, frozen=True):
    """A response that closes the connection, because the start of the next request is unknown."""

    status: int
    words: str
    why: str = BAD_REQUEST


class RequestRejectedError(Exception):
    """Raised when a request is rejected while it is read."""

    def __init__(self, refusal: RequestRejection) -> None:
        super().__init__(refusal)
        self.refusal = refusal


def bad(words: str, status: int = 400) -> RequestRejectedError:
    """Return the error for a malformed request."""
    return RequestRejectedError(RequestRejection(status, words))


def too_large(limit: int) -> RequestRejectedError:
    """Return the error for a body that is too large."""
    return RequestRejectedError(
        RequestRejection(413, f"the body has more than {limit} bytes, which is the limit", TOO_LARGE)
    )


def header_too_large(limit: int) -> RequestRejectedError:
    """Return the error for a request head that is too large."""
    return RequestRejectedError(
        RequestRejection(431, f"the request has more than {limit} bytes before its body, which is the limit", TOO_LARGE)
    )


def too_slow(seconds: float) -> RequestRejection:
    """Return the rejection of a request that was not complete in time."""
    return RequestRejection(408, f"the request was not complete within {seconds:g} seconds; send it faster", TOO_SLOW)


def too_late(seconds: float) -> RequestRejection:
    """Return the rejection of a request that the application did not answer in time; the connection stays open."""
    return RequestRejection(504, f"there was no answer within {seconds:g} seconds; retry later", TOO_SLOW)


def too_busy(places: int) -> RequestRejection:
    """Return the rejection of a large request that waited too long for a slot."""
    return RequestRejection(503, f"{places} large requests are in progress, which is the limit; retry later", TOO_BUSY)


def too_many(limit: int) -> RequestRejection:
    """Return the rejection of a connection beyond the limit."""
    return RequestRejection(
        503, f"there are {limit} connections, which is the limit; close some, or retry later", TOO_MANY
    )


def outdated() -> RequestRejection:
    """Return the rejection of a client that was verified with certificates that were replaced meanwhile."""
    return RequestRejection(
        503, "the server's certificates were replaced during the handshake; connect again", BAD_HANDSHAKE
    )


def bad_name(names: list[str]) -> RequestRejection:
    """Return the rejection of a client whose certificate is valid, but has a name that is not accepted."""
    shown = ", ".join(ascii(name)[1:-1] for name in names[:5]) or "none"
    return RequestRejection(403, f"the client certificate has no accepted name; it has: {shown[:500]}", BAD_NAME)
