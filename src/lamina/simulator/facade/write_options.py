"""Options of a request that writes: dry run, validation of unknown fields, and the API version of its path."""

import msgspec

from lamina.simulator.facade.api_errors import bad_request, invalid
from lamina.simulator.facade.api_messages import ApiRequest
from lamina.simulator.facade.api_paths import ResourcePath
from lamina.simulator.facade.resource_type import join_group_version


class WriteOptions(msgspec.Struct, frozen=True):
    """Options of one write."""

    dry_run: bool = False
    strict: bool = False
    """Whether unknown fields are refused."""
    applied: bool = False
    """Whether the object is the result of server-side apply, which keeps its own record of managers."""
    manager: str = "unknown"
    """Name of the client in managedFields."""
    api_version: str = ""
    """The API version of the path: a legacy view has other defaults."""


def write_options(path: ResourcePath, request: ApiRequest) -> WriteOptions:
    """Return the options of a request that writes. Raises StatusError 400 or 422."""
    parameters = request.parameters()
    validation = parameters.get("fieldValidation") or "Warn"
    if validation not in {"Ignore", "Warn", "Strict"}:
        raise bad_request(f"fieldValidation: {validation!r} is unknown; try Ignore, Warn or Strict")
    return WriteOptions(
        dry_run=is_dry_run(parameters.get("dryRun")),
        strict=validation == "Strict",
        manager=parameters.get("fieldManager") or request.headers.get("user-agent", "").partition("/")[0] or "unknown",
        api_version=join_group_version(path.group, path.version),
    )


def is_dry_run(value: object) -> bool:
    """Return whether ``dryRun`` asks for a dry run. Raises StatusError 422 for an unknown value."""
    if value in (None, "", []):
        return False
    if value in ("All", ["All"]):
        return True
    words = f'Unsupported value: "{value}": supported values: "All"'
    raise invalid("CreateOptions", "meta.k8s.io", "", [("FieldValueNotSupported", words, "dryRun")])
