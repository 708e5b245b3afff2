"""From the entries of Deployments, StatefulSets, DaemonSets and Jobs to controllers."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from lamina.model.pod import PodUid
from lamina.simulator.controllers.controller_spec import ControllerKind, ControllerSpec
from lamina.simulator.workloads import units
from lamina.simulator.workloads.assembly_state import AssemblyState
from lamina.simulator.workloads.pod_entries import PodBuilder, time_of
from lamina.simulator.workloads.pod_schema import (
    MOST_PODS,
    DaemonSetEntry,
    DeploymentEntry,
    JobEntry,
    StatefulSetEntry,
    TemplateEntry,
)
from lamina.simulator.workloads.scenario_files import ScenarioEntry

ControllerSettings = Callable[[Any], dict[str, Any]]


def _deployment(said: DeploymentEntry) -> dict[str, Any]:
    portions = {"surge": units.portion(said.surge), "unavailable": units.portion(said.unavailable)}
    return {"replicas": said.replicas, "min_ready": units.seconds(said.min_ready), **portions}


def _job(said: JobEntry) -> dict[str, Any]:
    return {"replicas": said.completions, "parallelism": said.parallelism, "backoff_limit": said.backoff_limit}


FIELDS: Final[dict[str, tuple[ControllerKind, type[TemplateEntry], ControllerSettings]]] = {
    "deployments": ("Deployment", DeploymentEntry, _deployment),
    "statefulSets": ("StatefulSet", StatefulSetEntry, lambda said: {"replicas": said.replicas}),
    "daemonSets": (
        "DaemonSet",
        DaemonSetEntry,
        lambda said: {"surge": 0, "unavailable": units.portion(said.unavailable)},
    ),
    "jobs": ("Job", JobEntry, _job),
}
"""Which field lists which controllers, in which shape, and what they set beside the template."""


def controllers(ledger: AssemblyState, pods: PodBuilder, already: int) -> Iterator[ControllerSpec]:
    """Yield the controllers of all files; *already* is how many pods there are without them."""
    listed = {field: ledger.entries(field, shape, "controller") for field, (_, shape, _) in FIELDS.items()}
    entries = [entry for field in FIELDS for entry in listed[field]]
    for entry in ledger.bounded(entries, "controller", MOST_PODS, _weight, already):
        kind, _, settings = FIELDS[str(entry.path[0])]
        _check(ledger, entry, kind)
        template, life = pods.template(entry, kind)
        for number, name in enumerate(ledger.names(entry, "controller")):
            labels = entry.value.labels or {"app": name}
            spread = tuple(one.constraint(labels) for one in entry.value.spread)
            copy = msgspec.structs.replace(template, uid=PodUid(name), name=name, labels=labels, spread=spread)
            at = time_of(entry.value, number)
            yield ControllerSpec(kind=kind, name=name, at=at, template=copy, life=life, **settings(entry.value))


def _weight(said: Any) -> int:
    """How many pods an entry stands for, as far as it says."""
    each = getattr(said, "replicas", getattr(said, "completions", 1))
    return int(said.count * max(1, each))


def _check(ledger: AssemblyState, entry: ScenarioEntry, kind: ControllerKind) -> None:
    said = entry.value
    if kind == "Deployment" and not units.portion(said.surge) and not units.portion(said.unavailable):
        ledger.wrong(
            entry, "with neither surge nor unavailable no pod could ever be replaced; allow one of them", "surge"
        )
    if kind == "DaemonSet" and not units.portion(said.unavailable):
        ledger.wrong(entry, "with no pod unavailable none could ever be replaced; write at least 1", "unavailable")
    if kind == "Job" and said.completions and not said.parallelism:
        ledger.wrong(entry, "with no pod at once the job would never end; write at least 1", "parallelism")
    if kind == "Job" and said.duration is None and not said.stages and "simSpec" not in said.annotations:
        ledger.wrong(entry, "the pods of a Job have to end; say their duration, or stages", "duration")
