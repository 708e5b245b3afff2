"""Values in the cells of tables, in the words of ``kubectl get``: ages, selectors, lists of containers."""

from collections.abc import Mapping
from typing import Any, Final

from lamina.simulator.facade.kube_object import KubeObject, part, text
from lamina.simulator.facade.object_fields import mappings, texts
from lamina.wire import timestamps

NONE: Final = "<none>"
UNKNOWN: Final = "<unknown>"
INVALID: Final = "<invalid>"

_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_YEAR: Final = 365 * _DAY
# Upper limit of a row, unit, and the smaller unit that is shown with it; as in kubectl's HumanDuration.
_DURATIONS: Final = (
    (2 * _MINUTE, 1, "s", 0, ""),
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (2 * _DAY, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
    (2 * _YEAR, _DAY, "d", 0, ""),
    (8 * _YEAR, _YEAR, "y", _DAY, "d"),
)


def human_duration(duration: float) -> str:
    """Return seconds as kubectl shows an age: ``90s``, ``5m30s``, ``3d4h``, ``2y10d``."""
    whole = int(duration)
    if whole < -1:
        return INVALID
    whole = max(whole, 0)
    for limit, unit, name, small_unit, small_name in _DURATIONS:
        if whole < limit:
            rest = whole % unit // small_unit if small_unit else 0
            return f"{whole // unit}{name}" + (f"{rest}{small_name}" if rest else "")
    return f"{whole // _YEAR}y"


def timestamp_seconds(value: Any) -> float | None:
    """Return a timestamp in Unix seconds; None if it is missing or not RFC 3339."""
    if not isinstance(value, str) or not value:
        return None
    try:
        return timestamps.seconds(value)
    except ValueError:
        return None


def age(value: Any, now: float) -> str:
    """Return how long ago a timestamp was, as kubectl shows it."""
    if value is None or value == "":
        return UNKNOWN
    at = timestamp_seconds(value)
    return INVALID if at is None else human_duration(now - at)


def object_age(found: KubeObject, now: float) -> str:
    """Return the age of an object."""
    return age(part(found, "metadata").get("creationTimestamp"), now)


def condition_status(found: Mapping[str, Any], kind: str) -> str:
    """Return the status of the condition *kind* in a status object; empty if it is missing."""
    return next((text(each, "status") for each in mappings(found, "conditions") if each.get("type") == kind), "")


def labels_text(labels: Mapping[str, Any]) -> str:
    """Return labels as ``a=1,b=2``, or ``<none>``."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or NONE


def label_selector_text(selector: Any) -> str:
    """Return a label selector object in text form, or ``<none>`` if it selects by nothing."""
    if not isinstance(selector, dict):
        return NONE
    words = [f"{key}={value}" for key, value in sorted(part(selector, "matchLabels").items())]
    for each in mappings(selector, "matchExpressions"):
        key, operator = text(each, "key"), each.get("operator")
        values = ",".join(sorted(texts(each, "values")))
        if operator in ("In", "NotIn"):
            words.append(f"{key} {str(operator).lower()} ({values})")
        else:
            words.append(f"!{key}" if operator == "DoesNotExist" else key)
    return ",".join(words) or NONE


def container_cells(workload: KubeObject) -> list[str]:
    """Return names and images of a workload's containers, each joined by commas."""
    containers = mappings(part(part(part(workload, "spec"), "template"), "spec"), "containers")
    return [",".join(text(each, name) for each in containers) for name in ("name", "image")]
