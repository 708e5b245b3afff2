"""
From a scenario file to a `Scenario`: the shape of the file, `load_scenario`, and the assembly of all included files.

docs/scenarios.md and the examples show the shape filled in. Unknown fields are mistakes. All mistakes are reported
together, each with file, line and field. The assembly goes through the entries of all files, included files first:
defaults, nodes, imports, pods, controllers, the drawn workload, and last the events, which may name any of them.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lamina.model.errors import InputError, Mistake
from lamina.model.plain import shown
from lamina.simulator.cluster import UsageSpec, VirtualNodeSpec
from lamina.simulator.controllers.controller_spec import ControllerSpec
from lamina.simulator.workloads.arrival_times import ArrivalTimes
from lamina.simulator.workloads.capacity import DiskCapacityCheck, NodeCapacityCheck
from lamina.simulator.workloads.controller_entries import (
    FIELDS,
    DaemonSetEntry,
    DeploymentEntry,
    JobEntry,
    StatefulSetEntry,
    controllers,
)
from lamina.simulator.workloads.event_entries import EventBuilder, EventEntry
from lamina.simulator.workloads.field_types import Bandwidth, Duration, EntryStruct, Interval, Reference, Size
from lamina.simulator.workloads.imports.dispatch import ImportBuilder
from lamina.simulator.workloads.imports.import_schema import ImportEntry
from lamina.simulator.workloads.node_entries import (
    MOST_NODES,
    DefaultsEntry,
    NodeBuilder,
    ScenarioNodeEntry,
    join_defaults,
)
from lamina.simulator.workloads.object_entries import ObjectBuilder, ObjectEntry
from lamina.simulator.workloads.pod_entries import MOST_PODS, PodBuilder, PodChecks, PodEntry
from lamina.simulator.workloads.pull_entries import RegistryEntry, Runtimes, ScenarioRuntimeEntry
from lamina.simulator.workloads.scenario import PodArrival, Scenario, ScenarioEvent, ScenarioObject
from lamina.simulator.workloads.scenario_catalog import CatalogEntry, ScenarioCatalog
from lamina.simulator.workloads.scenario_files import AssemblyState, ScenarioDocument, ScenarioEntry, ScenarioReader
from lamina.simulator.workloads.workload_entries import WorkloadEntry, draw_workload


class UsageEntry(EntryStruct, frozen=True, kw_only=True):
    """How the usage of nodes is measured and reported to the scheduler."""

    every: Interval = 60.0
    window: Interval = 900.0


class ScenarioFile(EntryStruct, frozen=True, kw_only=True):
    """The shape of a scenario file."""

    name: str = ""
    about: str = ""
    include: tuple[str, ...] = ()
    defaults: DefaultsEntry = DefaultsEntry()
    registry: RegistryEntry | None = None
    uplinks: dict[str, Bandwidth] = {}
    runtimes: dict[str, ScenarioRuntimeEntry] = {}
    layers: dict[str, Size] = {}
    images: dict[Reference, tuple[str, ...] | dict[str, Size]] = {}
    """Layers bottom first: by name, or each with its size."""
    catalog: str | CatalogEntry | None = None
    """More images: a catalog file, or the parameters of a generated catalog."""
    nodes: tuple[ScenarioNodeEntry, ...] = ()
    objects: tuple[ObjectEntry, ...] = ()
    """Budgets, claims, volumes, Services and the like, as Kubernetes manifests."""
    pods: tuple[PodEntry, ...] = ()
    deployments: tuple[DeploymentEntry, ...] = ()
    stateful_sets: tuple[StatefulSetEntry, ...] = ()
    daemon_sets: tuple[DaemonSetEntry, ...] = ()
    jobs: tuple[JobEntry, ...] = ()
    workload: WorkloadEntry | None = None
    """Pods that are drawn from the seed of the run, in addition to the listed ones."""
    imports: tuple[ImportEntry, ...] = ()
    """Nodes, pods and controllers from files of other tools."""
    usage: UsageEntry | None = None
    """Unset: node usage is not measured."""
    events: tuple[EventEntry, ...] = ()
    profile: str = ""
    scheduler: str = ""
    """A registered foreign scheduler, such as ``kube-scheduler``; never a command."""
    until: Duration | None = None


def load_scenario(path: str | Path, seed: int = 0, data: str | Path | None = None) -> Scenario:
    """
    Return the scenario of a file and the files it includes; random choices are drawn from *seed*.

    Imported files are searched in the folder *data*, or else beside the file that names them. Raises InputError
    with every mistake.
    """
    if data is not None and not Path(data).is_dir():
        raise InputError.one(str(data), "there is no such folder for data; name the one that imports are in")
    reader = ScenarioReader(ScenarioFile)
    reader.read(Path(path))
    parts = reader.parts
    mistakes = [*reader.unreadable, *(mistake for part in parts for mistake in part.mistakes)]
    if reader.unreadable:
        # Names may be defined in the missing files, so further checks would report false mistakes.
        raise InputError(mistakes)
    assembly = Assembly(parts, seed, None if data is None else Path(data))
    mistakes += assembly.mistakes
    if mistakes:
        # Files of the scenario in the order they were read, then those they import.
        order = {source: number for number, source in enumerate(dict.fromkeys(part.document.source for part in parts))}
        raise InputError(sorted(mistakes, key=lambda one: (order.get(one.source, len(order)), one.line)))
    file: ScenarioFile = parts[-1].file
    return Scenario(
        name=file.name or Path(path).stem,
        about=file.about,
        images=assembly.catalog.all_images,
        layer_names=assembly.catalog.layer_names,
        nodes=tuple(assembly.nodes),
        arrivals=tuple(sorted(assembly.arrivals.values(), key=lambda arrival: arrival.at)),
        objects=tuple(assembly.objects),
        events=tuple(sorted(assembly.events, key=lambda event: event.at)),
        controllers=tuple(sorted(assembly.controllers, key=lambda controller: controller.at)),
        registry=assembly.registry,
        uplinks=assembly.uplinks,
        delays=assembly.defaults.delays,
        usage=assembly.usage,
        batsim=assembly.batsim,
        profile=_last(parts, "profile") or "",
        scheduler=_last(parts, "scheduler") or "",
        until=_last(parts, "until"),
        notes=assembly.notes,
    )


def place_of(path: str | Path, field: str) -> tuple[str, int]:
    """Return the file and the line that decide a single value such as ``profile``; line 0 where none does."""
    reader = ScenarioReader(ScenarioFile)
    reader.read(Path(path))
    for part in reversed(reader.parts):
        if field in part.document.root.inside:
            return part.document.source, part.document.line((field,))
    return str(path), 0


def _last(parts: Iterable[ScenarioDocument], field: str) -> Any:
    """Return the value of a field; the including file overrides the files it includes."""
    given = [getattr(part.file, field) for part in parts if field in part.document.root.inside]
    return given[-1] if given else None


class Assembly:
    """Combines the entries of all files into nodes, pods, controllers, events and images."""

    def __init__(self, parts: Iterable[ScenarioDocument], seed: int, data: Path | None = None) -> None:
        """Combine *parts*; *seed* is that of random draws, *data* the folder of imported files."""
        self._state = state = AssemblyState(parts)
        self.catalog = ScenarioCatalog(state.parts)
        self._runtimes = Runtimes(state.parts)
        self.defaults, mistakes = join_defaults(state.parts, self._runtimes)
        state.mistakes += mistakes
        maker = NodeBuilder(state, self.catalog, self._runtimes, self.defaults)
        listed = state.bounded(
            state.entries("nodes", ScenarioNodeEntry, "node"), "node", MOST_NODES, lambda given: given.count
        )
        self.nodes: list[VirtualNodeSpec] = [node for entry in listed for node in maker.make(entry)]
        objects = ObjectBuilder(state)
        self.objects: list[ScenarioObject] = objects.listed()
        events = EventBuilder(state, maker, objects)
        joining = [node for _, node in events.joining]
        imports = ImportBuilder(state, self.catalog, seed, data)
        self.nodes += imports.nodes([*self.nodes, *joining], maker.usual)
        self._checks = checks = self._pod_checks([*self.nodes, *joining])
        entries = state.entries("pods", PodEntry, "pod")
        timed = [*entries, *(one for field, (_, shape, _) in FIELDS.items() for one in state.entries(field, shape))]
        pods = PodBuilder(state, checks, ArrivalTimes(state, timed, seed))
        self.arrivals: dict[str, PodArrival] = {}
        for entry in state.bounded(entries, "pod", MOST_PODS, lambda given: given.count):
            self.arrivals.update(pods.arrivals(entry))
        self.arrivals |= imports.arrivals(checks)
        self.controllers: list[ControllerSpec] = [
            *controllers(state, pods, len(self.arrivals)),
            *imports.controllers(),
        ]
        self.objects += objects.imported(imports.objects)
        objects.check_claims(pods.named_claims)
        self.notes = imports.notes
        more = draw_workload(state, checks, self.nodes, len(self.arrivals), seed)
        self.arrivals.update((one.pod.name, one) for one in more.arrivals)
        self.controllers += more.controllers
        self._check_names()
        self.usage = usage_spec(state)
        self.events: list[ScenarioEvent] = [
            *events.build(self.arrivals, self.controllers, checks),
            *more.events,
            *imports.events,
            *imports.availability(self.nodes),
        ]
        self.batsim = imports.batsim
        if state.complete["node"] and not self.nodes:
            last = state.parts[-1].document
            state.mistakes.append(ScenarioEntry(last, ("nodes",), None).mistake("there is no node; list at least one"))

    @property
    def mistakes(self) -> list[Mistake]:
        """Mistakes of all entries."""
        return [*self._state.mistakes, *self._runtimes.mistakes, *self.catalog.mistakes]

    @property
    def uplinks(self) -> dict[str, float]:
        """Bytes per second of the links that nodes share, by name."""
        return self._runtimes.uplinks

    @property
    def registry(self) -> float:
        """Bytes per second that all nodes together can download; the including file wins; 0: unlimited."""
        given = [entry for part in self._state.parts if (entry := part.single("registry", RegistryEntry)) is not None]
        return float(given[-1].value.rate) if given else 0.0

    def _pod_checks(self, nodes: list[VirtualNodeSpec]) -> PodChecks:
        known = self._state.complete["node"] and bool(nodes)
        ends = any(part.document.root.inside.get("until") is not None for part in self._state.parts)
        return PodChecks(
            catalog=self.catalog,
            capacity=NodeCapacityCheck(nodes) if known else None,
            disk_capacity=DiskCapacityCheck(nodes),
            ends=ends,
        )

    def _check_names(self) -> None:
        """Report a pod whose name a controller would give to one of its pods."""
        for name in self.arrivals:
            maker, _, number = name.rpartition("-")
            entry = self._state.named["controller"].get(maker)
            if entry is not None and number.isdecimal() and str(int(number)) == number:
                before = self._state.named["pod"][name].where
                self._state.wrong(entry, f"its pods have names like {shown(name)}, which is taken in {before}", "name")
                return


def usage_spec(state: AssemblyState) -> UsageSpec | None:
    """Return the `usage` of the including file; None if no file sets it, or the including file unsets it."""
    given = [part for part in state.parts if "usage" in part.document.root.inside]
    entry = given[-1].single("usage", UsageEntry) if given else None
    if entry is None:
        return None
    usage: UsageEntry = entry.value
    every, window = usage.every, usage.window
    if window < every:
        message = f"is shorter than the time between two reports ({every:g} s), so that some use would never be seen"
        state.wrong(entry, f"{message}; write at least that", "window")
    return UsageSpec(every=every, window=window)
