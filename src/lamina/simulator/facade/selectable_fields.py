"""
The fields that a field selector may name, for each resource, and where they are in an object.

The API server has a fixed list for a few resources. All others can be selected by name and namespace only. Each list
refuses an unknown field in its own words.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

NOT_SUPPORTED: Final = "field label not supported: {label}"
_NOT_KNOWN: Final = '"{label}" is not a known field selector: only "metadata.name", "metadata.namespace"'
_NOT_SUPPORTED_FOR_JOB: Final = 'field label "{label}" not supported for Job'
_NOT_SUPPORTED_FOR_SLICE: Final = "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {label}"


class SelectableField(msgspec.Struct, frozen=True):
    """One field: its name in selectors, its path in an object, and the text that stands for a missing value."""

    name: str
    path: tuple[str, ...]
    """Without parts, the field reads as missing in every object."""
    fallback: tuple[str, ...] = ()
    """Path that is read if the value under `path` is missing or empty."""
    missing: str = ""

    def reader(self) -> Callable[[Mapping[str, Any]], str]:
        """Return a function that reads the field of an object as text; booleans read as `true` and `false`."""
        path, fallback, missing = self.path, self.fallback, self.missing
        if fallback:
            return lambda obj: _text(_value(obj, path), "") or _text(_value(obj, fallback), missing)
        if len(path) == 2:
            return _nested_reader(path[0], path[1], missing)
        return lambda obj: _text(_value(obj, path), missing)


class SelectableFields(msgspec.Struct, frozen=True):
    """All fields that a selector may name for one resource."""

    fields: dict[str, SelectableField]
    """By the label that a request uses. Two labels may name one field: `spec.host` is an old name."""
    refusal: str = NOT_SUPPORTED
    """Message for an unknown label, which replaces `{label}`."""


@lru_cache(maxsize=1024)
def selectable_fields(group: str, resource: str) -> SelectableFields:
    """Return the fields of a built-in resource, given by its group and its plural name."""
    return _TABLE.get((group, resource), _NAMES_ONLY)


def custom_selectable_fields(namespaced: bool, json_paths: Iterable[str] = ()) -> SelectableFields:
    """Return the fields of a custom resource; *json_paths* are those of its `selectableFields`, such as `.spec.color`."""
    names = [
        "metadata.name",
        *(["metadata.namespace"] if namespaced else []),
        *(path.lstrip(".") for path in json_paths),
    ]
    return SelectableFields(_plain(*names))


def _plain(*names: str, missing: str = "") -> dict[str, SelectableField]:
    return {name: SelectableField(name, tuple(name.split(".")), missing=missing) for name in names}


def _references(field: str) -> dict[str, SelectableField]:
    parts = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    return _plain(*(f"{field}.{part}" for part in parts))


_NAME: Final = _plain("metadata.name")
_BOTH: Final = _plain("metadata.name", "metadata.namespace")
_NAMES_ONLY: Final = SelectableFields(_BOTH, _NOT_KNOWN)
_POD: Final = (
    _BOTH
    | _plain("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName")
    | _plain("spec.hostNetwork", missing="false")
    | _plain("status.phase", "status.podIP", "status.nominatedNodeName")
    # The API server accepts this label and then finds no value for it.
    | {"status.podIPs": SelectableField("status.podIPs", ())}
    | {"spec.host": SelectableField("spec.nodeName", ("spec", "nodeName"))}
)
_EVENT_SOURCE: Final = SelectableField("source", ("source", "component"), fallback=("reportingComponent",))

_TABLE: Final = {
    ("", "pods"): SelectableFields(_POD),
    ("", "nodes"): SelectableFields(_NAME | _plain("spec.unschedulable", missing="false")),
    ("", "namespaces"): SelectableFields(_NAME | _plain("status.phase")),
    ("", "secrets"): SelectableFields(_BOTH | _plain("type")),
    ("", "services"): SelectableFields(_BOTH | _plain("spec.clusterIP", "spec.type")),
    ("", "replicationcontrollers"): SelectableFields(_BOTH | _plain("status.replicas", missing="0")),
    ("", "events"): SelectableFields(
        _BOTH
        | _references("involvedObject")
        | _plain("reason", "reportingComponent", "type")
        | {"source": _EVENT_SOURCE}
    ),
    ("events.k8s.io", "events"): SelectableFields(
        _BOTH | _references("regarding") | _plain("reason", "reportingController", "type")
    ),
    ("batch", "jobs"): SelectableFields(
        _BOTH | {"status.successful": SelectableField("status.successful", ("status", "succeeded"), missing="0")},
        _NOT_SUPPORTED_FOR_JOB,
    ),
    ("resource.k8s.io", "resourceslices"): SelectableFields(
        _NAME | _plain("spec.nodeName", "spec.driver"), _NOT_SUPPORTED_FOR_SLICE
    ),
}


def _nested_reader(outer: str, inner: str, missing: str) -> Callable[[Mapping[str, Any]], str]:
    """Return a reader for the common case, which a watch calls for every event."""

    def read(obj: Mapping[str, Any]) -> str:
        holder = obj.get(outer)
        value = holder.get(inner) if isinstance(holder, dict) else None
        return value if isinstance(value, str) else _text(value, missing)

    return read


def _value(obj: Any, path: tuple[str, ...]) -> Any:
    if not path:
        return None
    for name in path:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(name)
    return obj


def _text(value: Any, missing: str) -> str:
    if value is None:
        return missing
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
