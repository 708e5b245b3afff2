"""Errors of the API: HTTP status, machine-readable reason and message, in Kubernetes' words."""

from collections.abc import Iterable
from typing import Any

from lamina.simulator.facade.kube_object import KubeObject

Causes = Iterable[tuple[str, str, str]]
"""Reason, message and field of each cause."""


class StatusError(Exception):
    """A request that is answered with a Status object."""

    def __init__(self, code: int, reason: str, message: str, details: KubeObject | None = None) -> None:
        """Answer with HTTP status *code*."""
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details

    def status(self) -> KubeObject:
        """Return the Status object."""
        found: KubeObject = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            found["reason"] = self.reason
        if self.details is not None:
            found["details"] = self.details
        found["code"] = self.code
        return found


def success(details: KubeObject | None = None, code: int | None = None) -> KubeObject:
    """Return a Status object of a request that succeeded."""
    found: KubeObject = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details is not None:
        found["details"] = details
    if code is not None:
        found["code"] = code
    return found


def _details(name: str, group: str, kind: str, causes: Causes = ()) -> KubeObject:
    found: dict[str, Any] = {key: value for key, value in (("name", name), ("group", group), ("kind", kind)) if value}
    listed = [
        {"reason": reason, "message": message, **({"field": field} if field else {})}
        for reason, message, field in causes
    ]
    if listed:
        found["causes"] = listed
    return found


def _qualified(resource: str, group: str) -> str:
    return f"{resource}.{group}" if group else resource


def not_found(resource: str, group: str, name: str) -> StatusError:
    """Return the error for an object that does not exist."""
    message = f'{_qualified(resource, group)} "{name}" not found'
    return StatusError(404, "NotFound", message, _details(name, group, resource))


def no_such_path() -> StatusError:
    """Return the error for a path that the server does not know."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(resource: str, group: str, name: str, *, deleting: bool = False) -> StatusError:
    """Return the error for a create of an object that exists, and perhaps is being deleted."""
    message = f'{_qualified(resource, group)} "{name}" already exists'
    if deleting:
        message = f"object is being deleted: {message}"
    return StatusError(409, "AlreadyExists", message, _details(name, group, resource))


def conflict(resource: str, group: str, name: str, why: str, causes: Causes = ()) -> StatusError:
    """Return the error for a write that contradicts the stored object."""
    message = f'Operation cannot be fulfilled on {_qualified(resource, group)} "{name}": {why}'
    return StatusError(409, "Conflict", message, _details(name, group, resource, causes))


def invalid(kind: str, group: str, name: str, problems: Iterable[tuple[str, str, str]]) -> StatusError:
    """Return the error for an object with invalid fields; each problem has a reason, a message and a field."""
    listed = list(problems)
    words = [f"{field}: {message}" if field else message for _, message, field in listed]
    joined = words[0] if len(words) == 1 else f"[{', '.join(words)}]"
    message = f'{_qualified(kind, group)} "{name}" is invalid: {joined}'
    return StatusError(422, "Invalid", message, _details(name, group, kind, listed))


def bad_request(message: str) -> StatusError:
    """Return the error for a request that cannot be read."""
    return StatusError(400, "BadRequest", message)


def forbidden(resource: str, group: str, name: str, why: str) -> StatusError:
    """Return the error for a request that admission rejects."""
    message = f'{_qualified(resource, group)} "{name}" is forbidden: {why}'
    return StatusError(403, "Forbidden", message, _details(name, group, resource))


def internal_error(message: str) -> StatusError:
    """Return the error for a request that a real server answers with its own failure, without a reason."""
    return StatusError(500, "", message)


def gone(message: str) -> StatusError:
    """Return the error for a resource version that is no longer kept."""
    return StatusError(410, "Expired", message)


def method_not_allowed(resource: str, group: str, method: str) -> StatusError:
    """Return the error for a verb that a resource does not support."""
    message = f'{method} is not supported on resources of kind "{_qualified(resource, group)}"'
    return StatusError(405, "MethodNotAllowed", message, _details("", group, resource))


def unsupported_media_type(message: str) -> StatusError:
    """Return the error for a body of a type that the server does not read."""
    return StatusError(415, "UnsupportedMediaType", message)


def too_many_requests(message: str, retry_seconds: int = 1, causes: Causes = ()) -> StatusError:
    """Return the error for a request that may succeed later."""
    details = {**_details("", "", "", causes), "retryAfterSeconds": retry_seconds}
    return StatusError(429, "TooManyRequests", message, details)


def too_large(message: str) -> StatusError:
    """Return the error for a body or a result that is too large."""
    return StatusError(413, "RequestEntityTooLarge", message)
