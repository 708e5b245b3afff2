"""
What goes wrong between us and an API server.

    LaminaError
    ├── ApiError                  the server answered, and the answer is no
    └── Unreachable               no answer, or not a whole one
        ├── SilenceError          the connection stands and nothing comes
        └── AnswerTooLongError    the answer does not end where any answer of its kind would

A message is one line: what was asked, what was said. It holds no header, no query and no credential, and of the
server's words no more than `MESSAGE_LIMIT` characters.
"""

from collections.abc import Mapping
from typing import ClassVar, Final

import msgspec

from lamina.model.errors import LaminaError

MESSAGE_LIMIT: Final = 512
"""Characters of a server's words that are kept."""
TOO_LARGE: Final = "ResourceVersionTooLarge"
"""The cause a server gives when we ask for a version it has not reached, as after a restore from a backup."""
TOO_LARGE_WORDS: Final = "Too large resource version"
"""How servers say so that send no cause."""


class ApiError(LaminaError):
    """The API server refused: *status* and *reason* are its own, *retry_after* is in seconds if it named a time."""

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
        """Whether what we go on from is no longer kept: only a new list helps."""
        return self.status == 410 or self.reason in ("Expired", "Gone")

    @property
    def too_large(self) -> bool:
        """Whether we know a version the server has not reached: its history is no longer the one we saw."""
        return TOO_LARGE in self.causes or (self.status == 504 and TOO_LARGE_WORDS in self.message)


class UnreachableError(LaminaError):
    """No whole answer came: refused, reset, timed out, certificate not verified, name not found."""

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, problem: str) -> None:
        super().__init__(what, problem)
        self.what, self.problem = what, problem

    def __str__(self) -> str:
        return f"{self.what}: {self.problem}"


class SilenceError(UnreachableError):
    """A stream that was open brought nothing for longer than a live one does."""


class AnswerTooLongError(UnreachableError):
    """There was more to read than anything we ask for can have."""


class StatusCause(msgspec.Struct, frozen=True):
    """One of ``details.causes``."""

    reason: str | None = None
    message: str | None = None


class StatusDetails(msgspec.Struct, frozen=True, rename="camel"):
    """``details`` of a Status."""

    causes: list[StatusCause] | None = None
    retry_after_seconds: float | None = None


class ApiStatus(msgspec.Struct, frozen=True):
    """A kube Status, as far as we look at it."""

    kind: str | None = None
    message: str | None = None
    reason: str | None = None
    code: int | None = None
    details: StatusDetails | None = None


_STATUS: Final = msgspec.json.Decoder(ApiStatus)


def read_status(data: bytes | msgspec.Raw) -> ApiStatus | None:
    """Read a Status; None when this is something else."""
    try:
        status = _STATUS.decode(data)
    except (ValueError, RecursionError):
        return None
    return status if status.kind == "Status" else None


def from_status(what: str, status: ApiStatus, code: int = 500) -> ApiError:
    """Turn a Status into an error; *code* counts where it names none."""
    details = status.details or StatusDetails()
    causes = tuple(one_line(cause.reason) for cause in (details.causes or ())[:16] if cause.reason)
    reason = one_line(status.reason or "")
    return ApiError(
        what, status.code or code, reason, one_line(status.message or ""), _bounded(details.retry_after_seconds), causes
    )


def from_response(what: str, code: int, phrase: str, headers: Mapping[str, str], body: bytes) -> ApiError:
    """Turn an answer that is not 2xx into an error, with the Status in its body if there is one."""
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
    """Make words of a stranger fit for a line of our own: no breaks, no control characters, not too many."""
    cut = words if len(words) <= MESSAGE_LIMIT else words[: MESSAGE_LIMIT - 1] + "…"
    return " ".join("".join(letter if letter.isprintable() else " " for letter in cut).split())


def _seconds(value: str) -> float | None:
    """Read a Retry-After header; a date, which no API server sends, counts as none."""
    return float(value) if value.isascii() and value.isdigit() and len(value) <= 9 else None


def _bounded(seconds: float | None) -> float | None:
    return seconds if seconds is not None and seconds > 0 else None
