"""
Errors of the Kubernetes API client.

    LaminaError
    ├── ApiError                  the server returned an error status
    └── UnreachableError          no complete response
        ├── SilenceError          an open stream sent nothing for too long
        └── AnswerTooLongError    the response exceeds its size limit

A message is one line: the request and the problem. It contains no header, query or credential, and at most
`MESSAGE_LIMIT` characters of the server's own message.
"""

from collections.abc import Mapping
from typing import ClassVar, Final

import msgspec

from lamina.model.errors import LaminaError

MESSAGE_LIMIT: Final = 512
"""Characters of a server's message that are kept."""
TOO_LARGE: Final = "ResourceVersionTooLarge"
"""Status cause when a client asks for a resourceVersion the server has not reached, as after a restore from backup."""
TOO_LARGE_WORDS: Final = "Too large resource version"
"""Message of servers that send no cause."""


class ApiError(LaminaError):
    """The API server returned an error; *status* and *reason* are its own, *retry_after* is in seconds or None."""

    exit_code: ClassVar[int] = 1

    def __init__(
        self,
        what: str,
        status: int,
        reason: str = "",
        message: str = "",
        retry_after: float | None = None,
        causes: tuple[str, ...] = (),
    ) -> None:
        super().__init__(what, status, reason, message, retry_after, causes)
        self.what, self.status, self.reason, self.message = what, status, reason, message
        self.retry_after, self.causes = retry_after, causes

    def __str__(self) -> str:
        said = f"{self.status} {self.reason}".rstrip()
        return f"{self.what}: {said}: {self.message}" if self.message else f"{self.what}: {said}"

    @property
    def expired(self) -> bool:
        """Whether the requested resourceVersion was compacted: a new list is needed."""
        return self.status == 410 or self.reason in ("Expired", "Gone")

    @property
    def too_large(self) -> bool:
        """Whether the server has not reached our resourceVersion: its history is not the one we saw."""
        return TOO_LARGE in self.causes or (self.status == 504 and TOO_LARGE_WORDS in self.message)


class UnreachableError(LaminaError):
    """No complete response: connection refused, reset or timed out, certificate rejected, or name not found."""

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, problem: str) -> None:
        super().__init__(what, problem)
        self.what, self.problem = what, problem

    def __str__(self) -> str:
        return f"{self.what}: {self.problem}"


class SilenceError(UnreachableError):
    """An open stream sent nothing for longer than a live one would."""


class AnswerTooLongError(UnreachableError):
    """A response exceeds its size limit."""


class StatusCause(msgspec.Struct, frozen=True):
    """One of ``details.causes``."""

    reason: str | None = None
    message: str | None = None


class StatusDetails(msgspec.Struct, frozen=True, rename="camel"):
    """``details`` of a Status."""

    causes: list[StatusCause] | None = None
    retry_after_seconds: float | None = None


class ApiStatus(msgspec.Struct, frozen=True):
    """The fields we read of a Kubernetes Status."""

    kind: str | None = None
    message: str | None = None
    reason: str | None = None
    code: int | None = None
    details: StatusDetails | None = None


_STATUS: Final = msgspec.json.Decoder(ApiStatus)


def read_status(data: bytes | msgspec.Raw) -> ApiStatus | None:
    """Decode a Status; None for any other content."""
    try:
        status = _STATUS.decode(data)
    except (ValueError, RecursionError):
        return None
    return status if status.kind == "Status" else None


def from_status(what: str, status: ApiStatus, code: int = 500) -> ApiError:
    """Convert a Status to an error; *code* is used when the Status has none."""
    details = status.details or StatusDetails()
    causes = tuple(one_line(cause.reason) for cause in (details.causes or ())[:16] if cause.reason)
    reason = one_line(status.reason or "")
    return ApiError(
        what, status.code or code, reason, one_line(status.message or ""), _bounded(details.retry_after_seconds), causes
    )


def from_response(what: str, code: int, phrase: str, headers: Mapping[str, str], body: bytes) -> ApiError:
    """Convert a response that is not 2xx to an error, using the Status in its body if there is one."""
    status = read_status(body)
    error = (
        from_status(what, status, code)
        if status is not None
        else ApiError(what, code, one_line(phrase), one_line(body.decode("utf-8", "replace")))
    )
    if error.retry_after is not None:
        return error
    asked = _seconds(headers.get("Retry-After") or headers.get("retry-after", ""))
    return ApiError(what, error.status, error.reason, error.message, asked, error.causes)


def one_line(words: str) -> str:
    """Return untrusted text as one printable line of at most `MESSAGE_LIMIT` characters."""
    cut = words if len(words) <= MESSAGE_LIMIT else words[: MESSAGE_LIMIT - 1] + "…"
    return " ".join("".join(letter if letter.isprintable() else " " for letter in cut).split())


def _seconds(value: str) -> float | None:
    """Parse a Retry-After header in seconds; a date, which API servers never send, gives None."""
    return float(value) if value.isascii() and value.isdigit() and len(value) <= 9 else None


def _bounded(seconds: float | None) -> float | None:
    return seconds if seconds is not None and seconds > 0 else None
