"""Events of a scenario: the shape of their entries, and the changes they make to the cluster from outside."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from lamina.model.cluster_objects import key_of
from lamina.model.conversion import suggest
from lamina.model.plain import shown
from lamina.simulator.cluster import VirtualNodeSpec
from lamina.simulator.controllers.controller_spec import ControllerSpec
from lamina.simulator.workloads.field_types import (
    Duration,
    EntryStruct,
    Name,
    Period,
    Reference,
)
from lamina.simulator.workloads.node_entries import NodeBuilder, ScenarioNodeEntry
from lamina.simulator.workloads.object_entries import DeleteEntry, ObjectBuilder, ObjectEntry
from lamina.simulator.workloads.pod_entries import Count, PodChecks
from lamina.simulator.workloads.scenario import PodArrival, ScenarioEvent, ScenarioEventKind
from lamina.simulator.workloads.scenario_files import AssemblyState, EntryNoun, ScenarioEntry


class ScaleEntry(EntryStruct, frozen=True, kw_only=True):
    """New number of pods of a controller."""

    name: Name
    to: Count


class UpdateEntry(EntryStruct, frozen=True, kw_only=True):
    """New image of the first container of a controller's pods."""

    name: Name
    image: Reference


class EventEntry(EntryStruct, frozen=True, kw_only=True):
    """One event: exactly one of the fields below *at* names the pod, node or controller that it changes."""

    at: Duration
    remove: Name | None = None
    drop: Name | None = None
    cordon: Name | None = None
    uncordon: Name | None = None
    drain: Name | None = None
    fail: Name | None = None
    lasting: Period | None = msgspec.field(default=None, name="for")
    """How long a node stays failed; unset: until a *recover* event."""
    recover: Name | None = None
    join: ScenarioNodeEntry | None = None
    scale: ScaleEntry | None = None
    update: UpdateEntry | None = None
    apply: ObjectEntry | None = None
    """A manifest: the object is created or replaced."""
    delete: DeleteEntry | None = None


SUBJECTS: Final[Mapping[ScenarioEventKind, EntryNoun]] = {
    "remove": "pod",
    "drop": "node",
    "cordon": "node",
    "uncordon": "node",
    "drain": "node",
    "fail": "node",
    "recover": "node",
    "join": "node",
    "scale": "controller",
    "update": "controller",
}
"""Kinds of events, and the kind of object that each one changes."""

_DONE: Final[Mapping[ScenarioEventKind, str]] = {
    "remove": "removed",
    "drop": "dropped",
    "cordon": "cordoned",
    "uncordon": "uncordoned",
    "drain": "drained",
    "fail": "failed",
    "recover": "recovered",
    "scale": "scaled",
    "update": "updated",
}
_CHANGEABLE: Final = {
    "scale": ("Deployment", "StatefulSet"),
    "update": ("Deployment", "StatefulSet", "DaemonSet"),
}


class EventBuilder:
    """Makes `ScenarioEvent`s from the entries of all files; nodes that join are made first."""

    def __init__(self, state: AssemblyState, nodes: NodeBuilder, objects: ObjectBuilder) -> None:
        """Make the nodes that join and the objects that are applied: other entries may name them."""
        self._state = state
        self._objects = objects
        self._entries = state.entries("events", EventEntry)
        self.joining: list[tuple[float, VirtualNodeSpec]] = []
        for entry in self._entries:
            if entry.value.join is not None:
                inner = ScenarioEntry(entry.document, (*entry.path, "join"), entry.value.join)
                self.joining += ((entry.value.at, spec) for spec in nodes.make(inner))
        self._applied: list[ScenarioEvent] = []
        for entry in self._entries:
            if entry.value.apply is not None:
                inner = ScenarioEntry(entry.document, (*entry.path, "apply"), entry.value.apply)
                one = objects.read(inner)
                if one is not None:
                    self._applied.append(ScenarioEvent(entry.value.at, "apply", key_of(one.found).name, object=one))

    def build(
        self, arrivals: Mapping[str, PodArrival], controllers: Iterable[ControllerSpec], checks: PodChecks
    ) -> list[ScenarioEvent]:
        """Return the events in the order of the files."""
        self._checks = checks
        self._controllers = {one.name: one for one in controllers}
        self._failures = [(entry.value.fail, entry.value.at) for entry in self._entries if entry.value.fail is not None]
        self._begins: dict[EntryNoun, dict[str, tuple[float, str]]] = {
            "pod": {name: (arrival.at, "arrives") for name, arrival in arrivals.items()},
            "node": {spec.name: (at, "joins") for at, spec in self.joining},
            "controller": {name: (one.at, "is created") for name, one in self._controllers.items()},
        }
        made = [ScenarioEvent(at, "join", spec.name, node=spec) for at, spec in self.joining]
        made += self._applied
        for entry in self._entries:
            made += self._made(entry, entry.value)
        return made

    def _made(self, entry: ScenarioEntry, event: EventEntry) -> list[ScenarioEvent]:
        given = [(kind, value) for kind in SUBJECTS if (value := getattr(event, kind)) is not None]
        of_objects = (event.apply is not None) + (event.delete is not None)
        if len(given) + of_objects != 1:
            kinds = [*SUBJECTS, "apply", "delete"]
            self._state.wrong(entry, f"say exactly one of {', '.join(kinds[:-1])} and {kinds[-1]}")
        if event.lasting is not None and event.fail is None:
            self._state.wrong(entry, "only a failure lasts; say for beside fail", "for")
        at = event.at
        made = []
        key = None if event.delete is None else self._objects.key(entry, event.delete)
        if key is not None:
            made.append(ScenarioEvent(at, "delete", key.name, key=key))
        for kind, value in given:
            if kind != "join":
                made.append(self._one(entry, kind, value, at))
            if kind == "fail" and event.lasting is not None:
                made.append(ScenarioEvent(round(at + event.lasting, 9), "recover", value))
        return made

    def _one(self, entry: ScenarioEntry, kind: ScenarioEventKind, value: Any, at: float) -> ScenarioEvent:
        noun = SUBJECTS[kind]
        name: str = value.name if isinstance(value, ScaleEntry | UpdateEntry) else value
        steps = (kind, "name") if noun == "controller" else (kind,)
        known = self._state.named[noun]
        if name not in known and self._state.complete[noun]:
            what_to_try = suggest(name, known) if known else _LIST_IT[noun]
            self._state.wrong(entry, f"there is no {noun} {shown(name)}; {what_to_try}", *steps)
        begins, does = self._begins[noun].get(name, (0.0, ""))
        if at < begins:
            message = f"{shown(name)} is {_DONE[kind]} at {at:g} s and {does} only at {begins:g} s"
            self._state.wrong(entry, message, "at")
        elif (
            kind == "recover" and name in known and not any(one == name and then <= at for one, then in self._failures)
        ):
            self._state.wrong(entry, f"{shown(name)} has not failed by then; let it fail first", kind)
        spec = self._controllers.get(name) if noun == "controller" else None
        if spec is not None:
            self._check_kind(entry, kind, spec)
        if isinstance(value, UpdateEntry):
            image = self._checks.catalog.find(entry, value.image, kind, "image")
            if (
                spec is not None
                and image is not None
                and (problem := self._checks.disk_capacity.too_small(spec.template, image))
            ):
                self._state.wrong(entry, problem, kind, "image")
            return ScenarioEvent(at, kind, name, image=value.image)
        return ScenarioEvent(at, kind, name, count=value.to if isinstance(value, ScaleEntry) else 0)

    def _check_kind(self, entry: ScenarioEntry, kind: ScenarioEventKind, spec: ControllerSpec) -> None:
        if spec.kind not in _CHANGEABLE[kind]:
            kinds = [f"{one}s" for one in _CHANGEABLE[kind]]
            message = f"{shown(spec.name)} is a {spec.kind}: only {', '.join(kinds[:-1])} and {kinds[-1]} can be {_DONE[kind]}"
            self._state.wrong(entry, message, kind, "name")


_LIST_IT: Final[Mapping[EntryNoun, str]] = {
    "pod": "list it under pods",
    "node": "list it under nodes",
    "controller": "list it under deployments, statefulSets or daemonSets",
}
