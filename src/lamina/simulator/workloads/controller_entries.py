"""Deployments, StatefulSets, DaemonSets and Jobs of a scenario: the shape of entries, and specs made from them."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from lamina.model.pod import PodUid
from lamina.simulator.controllers.controller_spec import ClaimTemplate, ControllerKind, ControllerSpec
from lamina.simulator.workloads.field_types import Duration, EntryStruct, Name, Portion, Size
from lamina.simulator.workloads.pod_entries import (
    MOST_PODS,
    Count,
    PodBuilder,
    TemplateEntry,
)
from lamina.simulator.workloads.qos_entries import with_promise
from lamina.simulator.workloads.scenario_files import AssemblyState, ScenarioEntry


class DeploymentEntry(TemplateEntry, frozen=True, kw_only=True):
    """A Deployment: keeps *replicas* pods, and replaces them step by step when its template changes."""

    replicas: Count = 1
    surge: Portion = 0.25
    unavailable: Portion = 0.25
    min_ready: Duration = 0.0
    """How long a new pod has to run before the rollout goes on."""


class ClaimTemplateEntry(EntryStruct, frozen=True, kw_only=True):
    """A claim that each pod of a StatefulSet gets, called after both: data-db-0."""

    name: Name
    storage: Size
    storage_class: str = ""
    access_modes: tuple[str, ...] = ("ReadWriteOnce",)

    def template(self) -> ClaimTemplate:
        """Return it in the model of the controller."""
        return ClaimTemplate(self.name, self.storage, self.storage_class, self.access_modes)


class StatefulSetEntry(TemplateEntry, frozen=True, kw_only=True):
    """A StatefulSet: keeps *replicas* pods, created and removed in the order of their numbers."""

    replicas: Count = 1
    claim_templates: tuple[ClaimTemplateEntry, ...] = ()


class DaemonSetEntry(TemplateEntry, frozen=True, kw_only=True):
    """A DaemonSet: keeps one pod on every node."""

    unavailable: Portion = 1


class JobEntry(TemplateEntry, frozen=True, kw_only=True):
    """A Job: creates pods until *completions* of them have succeeded."""

    completions: Count = 1
    parallelism: Count = 1
    backoff_limit: Count = 6
    ignore_disruptions: bool = False
    """Whether preempted and evicted pods are replaced at once and do not count as failed."""


ControllerSettings = Callable[[Any], dict[str, Any]]


def _deployment(given: DeploymentEntry) -> dict[str, Any]:
    portions = {"surge": given.surge, "unavailable": given.unavailable}
    return {"replicas": given.replicas, "min_ready": given.min_ready, **portions}


def _stateful_set(given: StatefulSetEntry) -> dict[str, Any]:
    return {"replicas": given.replicas, "claims": tuple(one.template() for one in given.claim_templates)}


def _job(given: JobEntry) -> dict[str, Any]:
    return {
        "replicas": given.completions,
        "parallelism": given.parallelism,
        "backoff_limit": given.backoff_limit,
        "ignore_disruptions": given.ignore_disruptions,
    }


FIELDS: Final[dict[str, tuple[ControllerKind, type[TemplateEntry], ControllerSettings]]] = {
    "deployments": ("Deployment", DeploymentEntry, _deployment),
    "statefulSets": ("StatefulSet", StatefulSetEntry, _stateful_set),
    "daemonSets": (
        "DaemonSet",
        DaemonSetEntry,
        lambda given: {"surge": 0, "unavailable": given.unavailable},
    ),
    "jobs": ("Job", JobEntry, _job),
}
"""Per field of a scenario file: kind and struct of its controllers, and the settings they add to the pod template."""


def controllers(state: AssemblyState, pods: PodBuilder, already: int) -> Iterator[ControllerSpec]:
    """Yield the controllers of all files; *already* is the number of pods without them."""
    times = pods.times
    listed = {field: state.entries(field, shape, "controller") for field, (_, shape, _) in FIELDS.items()}
    entries = [entry for field in FIELDS for entry in listed[field]]
    for entry in state.bounded(entries, "controller", MOST_PODS, _weight, already):
        kind, _, settings = FIELDS[str(entry.path[0])]
        _check(state, entry, kind)
        template, life = pods.template(entry, kind)
        for number, name in enumerate(state.names(entry, "controller")):
            labels = entry.value.labels or {"app": name}
            spread = tuple(one.constraint(labels) for one in entry.value.spread)
            copy = msgspec.structs.replace(template, uid=PodUid(name), name=name, labels=labels, spread=spread)
            if entry.value.qos is not None:
                copy = with_promise(copy, name, entry.value.qos)
            at = times.of(entry, number)
            yield ControllerSpec(kind=kind, name=name, at=at, template=copy, life=life, **settings(entry.value))


def _weight(given: Any) -> int:
    """Return how many pods an entry stands for; a DaemonSet, whose number depends on nodes, weighs one per copy."""
    each = getattr(given, "replicas", getattr(given, "completions", 1))
    return int(given.count * max(1, each))


def _check(state: AssemblyState, entry: ScenarioEntry, kind: ControllerKind) -> None:
    given = entry.value
    if kind == "Deployment" and not given.surge and not given.unavailable:
        state.wrong(
            entry, "with neither surge nor unavailable no pod could ever be replaced; allow one of them", "surge"
        )
    if kind == "DaemonSet" and not given.unavailable:
        state.wrong(entry, "with no pod unavailable none could ever be replaced; write at least 1", "unavailable")
    if kind == "Job" and given.completions and not given.parallelism:
        state.wrong(entry, "with no pod at once the job would never end; write at least 1", "parallelism")
    if kind == "Job" and given.duration is None and not given.stages and "simSpec" not in given.annotations:
        state.wrong(entry, "the pods of a Job have to end; say their duration, or stages", "duration")
