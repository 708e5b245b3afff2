"""
Tables of objects, as the API server renders them for ``kubectl get``.

Every row has all columns; a column with a priority above 0 is shown by ``kubectl get -o wide`` only. Ages are counted
from the time that the caller passes, which is the simulated one.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from lamina.simulator.facade.json_paths import find_values
from lamina.simulator.facade.kube_object import KubeObject, part, text
from lamina.simulator.facade.pod_table import pod_cells
from lamina.simulator.facade.resource_types import PrinterColumn, ResourceType
from lamina.simulator.facade.table_rows import (
    config_map_cells,
    cron_job_cells,
    daemon_set_cells,
    deployment_cells,
    event_cells,
    job_cells,
    lease_cells,
    namespace_cells,
    node_cells,
    pod_disruption_budget_cells,
    priority_class_cells,
    replica_set_cells,
    secret_cells,
    service_cells,
    stateful_set_cells,
)
from lamina.simulator.facade.table_values import INVALID, UNKNOWN, age, object_age

_Cells = Callable[[KubeObject, float], list[Any]]
_API_VERSION: Final = "meta.k8s.io/v1"
_NAME: Final = "Name:name"
_WIDE_CONTAINERS: Final = ("Containers*", "Images*")
# Kind, function and headers; a header is "Title", "Title:format" or "Title#integer", with a star if it is wide only.
_RESOURCES: Final[dict[tuple[str, str], tuple[_Cells, tuple[str, ...]]]] = {
    ("", "pods"): (
        pod_cells,
        (_NAME, "Ready", "Status", "Restarts", "Age", "IP*", "Node*", "Nominated Node*", "Readiness Gates*"),
    ),
    ("", "nodes"): (
        node_cells,
        (
            *(_NAME, "Status", "Roles", "Age", "Version"),
            *("Internal-IP*", "External-IP*", "OS-Image*", "Kernel-Version*", "Container-Runtime*"),
        ),
    ),
    ("", "namespaces"): (namespace_cells, (_NAME, "Status", "Age")),
    ("", "configmaps"): (config_map_cells, (_NAME, "Data", "Age")),
    ("", "secrets"): (secret_cells, (_NAME, "Type", "Data", "Age")),
    ("", "services"): (
        service_cells,
        (_NAME, "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "Selector*"),
    ),
    ("", "replicationcontrollers"): (
        replica_set_cells,
        (_NAME, "Desired#integer", "Current#integer", "Ready#integer", "Age", *_WIDE_CONTAINERS, "Selector*"),
    ),
    ("", "events"): (
        event_cells,
        (
            *("Last Seen", "Type", "Reason", "Object", "Subobject*", "Source*", "Message"),
            *("First Seen*", "Count*", "Name*:name"),
        ),
    ),
    ("apps", "deployments"): (
        deployment_cells,
        (_NAME, "Ready", "Up-to-date", "Available", "Age", *_WIDE_CONTAINERS, "Selector*"),
    ),
    ("apps", "replicasets"): (
        replica_set_cells,
        (_NAME, "Desired#integer", "Current#integer", "Ready#integer", "Age", *_WIDE_CONTAINERS, "Selector*"),
    ),
    ("apps", "statefulsets"): (stateful_set_cells, (_NAME, "Ready", "Age", *_WIDE_CONTAINERS)),
    ("apps", "daemonsets"): (
        daemon_set_cells,
        (
            *(_NAME, "Desired#integer", "Current#integer", "Ready#integer", "Up-to-date#integer"),
            *("Available#integer", "Node Selector", "Age", *_WIDE_CONTAINERS, "Selector*"),
        ),
    ),
    ("batch", "jobs"): (
        job_cells,
        (_NAME, "Status", "Completions", "Duration", "Age", *_WIDE_CONTAINERS, "Selector*"),
    ),
    ("batch", "cronjobs"): (
        cron_job_cells,
        (
            *(_NAME, "Schedule", "Timezone", "Suspend#boolean", "Active#integer", "Last Schedule", "Age"),
            *(*_WIDE_CONTAINERS, "Selector*"),
        ),
    ),
    ("policy", "poddisruptionbudgets"): (
        pod_disruption_budget_cells,
        (_NAME, "Min Available", "Max Unavailable", "Allowed Disruptions#integer", "Age"),
    ),
    ("scheduling.k8s.io", "priorityclasses"): (
        priority_class_cells,
        (_NAME, "Value#integer", "Global-Default#boolean", "Age", "PreemptionPolicy"),
    ),
    ("coordination.k8s.io", "leases"): (lease_cells, (_NAME, "Holder", "Age")),
}
_RESOURCES[("events.k8s.io", "events")] = _RESOURCES[("", "events")]


def render_table(
    type_: ResourceType, objects: Iterable[KubeObject], list_metadata: KubeObject, now: float, include_object: str
) -> KubeObject:
    """
    Return *objects* as a Table.

    *now* is the current time in Unix seconds. *include_object* is what each row carries beside its cells: ``Object``,
    ``Metadata`` or ``None``; the real server's default is ``Metadata``.
    """
    cells, definitions = _table_of(type_)
    rows = [_row(found, cells(found, now), include_object) for found in objects]
    return {
        "kind": "Table",
        "apiVersion": _API_VERSION,
        "metadata": list_metadata,
        "columnDefinitions": definitions,
        "rows": rows,
    }


def _table_of(type_: ResourceType) -> tuple[_Cells, list[KubeObject]]:
    if type_.custom:
        columns = type_.columns_of(type_.version)
        if columns:
            return _custom_cells(columns), [_definition(_NAME), *map(_custom_definition, columns)]
        return _plain_cells, [_definition(_NAME), _definition("Age#date")]
    found = _RESOURCES.get((type_.group, type_.resource))
    if found is None:
        return _plain_cells, [_definition(_NAME), _definition("Age")]
    return found[0], [_definition(header) for header in found[1]]


def _definition(header: str) -> KubeObject:
    title, _, form = header.partition(":")
    title, _, kind = title.partition("#")
    return {
        "name": title.rstrip("*"),
        "type": kind or "string",
        "format": form,
        "description": "",
        "priority": int(title.endswith("*")),
    }


def _custom_definition(column: PrinterColumn) -> KubeObject:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }


def _row(found: KubeObject, cells: list[Any], include_object: str) -> KubeObject:
    if include_object == "None":
        return {"cells": cells}
    if include_object == "Object":
        return {"cells": cells, "object": found}
    metadata = {"kind": "PartialObjectMetadata", "apiVersion": _API_VERSION, "metadata": part(found, "metadata")}
    return {"cells": cells, "object": metadata}


def _plain_cells(found: KubeObject, now: float) -> list[Any]:
    return [text(part(found, "metadata"), "name"), object_age(found, now)]


def _custom_cells(columns: tuple[PrinterColumn, ...]) -> _Cells:
    def cells(found: KubeObject, now: float) -> list[Any]:
        return [text(part(found, "metadata"), "name"), *(_custom_cell(found, column, now) for column in columns)]

    return cells


def _custom_cell(found: KubeObject, column: PrinterColumn, now: float) -> Any:
    values = find_values(found, column.json_path)
    if not values or values[0] is None:
        return UNKNOWN if column.type == "date" and column.json_path == ".metadata.creationTimestamp" else None
    first = values[0]
    match column.type:
        case "date":
            return age(first, now)
        case "integer":
            return int(first) if isinstance(first, int | float) else INVALID
        case "number":
            return first if isinstance(first, int | float) else INVALID
        case "boolean":
            return first if isinstance(first, bool) else INVALID
    return " ".join(value if isinstance(value, str) else _shown(value) for value in values)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
