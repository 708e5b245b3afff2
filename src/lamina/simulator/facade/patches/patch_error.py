"""The error of a patch that cannot be applied, with what an API server answers to its sender."""

from typing import Final, NamedTuple

_REASONS: Final = {
    400: "BadRequest",
    409: "Conflict",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
}


class PatchCause(NamedTuple):
    """One cause of a refused patch, for the details of a Status object."""

    reason: str
    message: str
    field: str


class PatchError(ValueError):
    """A patch that is refused; the text is the message of the Status object."""

    def __init__(self, status_code: int, message: str, causes: tuple[PatchCause, ...] = ()) -> None:
        """Refuse a patch with an HTTP status."""
        super().__init__(message)
        self.status_code = status_code
        self.message = message
        self.causes = causes

    @property
    def reason(self) -> str:
        """The machine-readable reason that belongs to the HTTP status."""
        return _REASONS.get(self.status_code, "InternalError")
