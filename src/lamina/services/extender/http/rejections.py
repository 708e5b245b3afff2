"""Why the server turns somebody away: a status, a line that says what to do about it, and a word for a counter."""

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
"""Every word there is, for whoever counts them."""


class RequestRejection(msgspec.Struct, frozen=True):
    """An answer that ends the connection: what came after it could not be told from what came before."""

    status: int
    words: str
    why: str = BAD_REQUEST


class RequestRejectedError(Exception):
    """A request is refused while it is read."""

    def __init__(self, refusal: RequestRejection) -> None:
        super().__init__(refusal)
        self.refusal = refusal


def bad(words: str, status: int = 400) -> RequestRejectedError:
    """Refuse a request for its form."""
    return RequestRejectedError(RequestRejection(status, words))


def too_large(limit: int) -> RequestRejectedError:
    """Refuse a body for its size."""
    return RequestRejectedError(
        RequestRejection(413, f"the body has more than {limit} bytes, which is the most that is read", TOO_LARGE)
    )


def header_too_large(limit: int) -> RequestRejectedError:
    """Refuse a head for its size."""
    return RequestRejectedError(
        RequestRejection(431, f"the request has more than {limit} bytes before its body; send less", TOO_LARGE)
    )


def too_slow(seconds: float) -> RequestRejection:
    """Give up on a request that does not come to its end."""
    return RequestRejection(408, f"the request was not whole within {seconds:g} seconds; send it at once", TOO_SLOW)


def too_busy(places: int) -> RequestRejection:
    """Give up on waiting for a place for a large body."""
    return RequestRejection(
        503, f"{places} large requests are being answered, which is the most; try again later", TOO_BUSY
    )


def too_many(limit: int) -> RequestRejection:
    """Turn a connection away."""
    return RequestRejection(
        503, f"there are {limit} connections, which is the most; close some, or try again later", TOO_MANY
    )


def outdated() -> RequestRejection:
    """Turn a caller away whose certificate was looked at by authorities that have been replaced meanwhile."""
    return RequestRejection(
        503, "the server's certificates were replaced during the handshake; connect again", BAD_HANDSHAKE
    )


def bad_name(names: list[str]) -> RequestRejection:
    """Turn a caller away whose certificate is good, and somebody else's."""
    shown = ", ".join(ascii(name)[1:-1] for name in names[:5]) or "nobody"
    return RequestRejection(403, f"the client certificate is for {shown[:500]}, who may not ask here", BAD_NAME)
