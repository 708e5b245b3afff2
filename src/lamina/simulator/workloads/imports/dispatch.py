"""
Imports of a scenario: choose the reader for an entry's kind, and check what it returns against the scenario.

Options that the kind does not accept are reported as mistakes.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from lamina.model.cluster_objects import ObjectKey, key_of
from lamina.model.errors import InputError
from lamina.model.plain import shown
from lamina.model.pod import Pod
from lamina.simulator.cluster import VirtualNodeSpec
from lamina.simulator.controllers.controller_spec import ControllerSpec
from lamina.simulator.workloads.batsim_source import BatsimSource
from lamina.simulator.workloads.capacity import DiskCapacityCheck
from lamina.simulator.workloads.imports import (
    alibaba_dlrm,
    alibaba_gpu,
    azure_functions,
    batsim,
    kube_scheduler_simulator,
    manifests,
    qos_workload,
    swf,
)
from lamina.simulator.workloads.imports.import_schema import KINDS, ImportContext, Imported, ImportEntry
from lamina.simulator.workloads.pod_entries import PodChecks, is_endless
from lamina.simulator.workloads.scenario import PodArrival, ScenarioEvent, ScenarioEventKind, ScenarioObject
from lamina.simulator.workloads.scenario_catalog import ScenarioCatalog
from lamina.simulator.workloads.scenario_files import AssemblyState, EntryNoun, ScenarioEntry

ImportReader = Callable[[ImportEntry, Path, ImportContext], Imported]

_ALWAYS: Final = ("name", "at", "scheduler", "limit", "nodes", "image", "popularity")
_WINDOW: Final = ("from", "until")

READERS: Final[dict[str, tuple[ImportReader, tuple[str, ...]]]] = {
    "batsim": (batsim.read, (*_ALWAYS, *_WINDOW, "platform", "cpu", "memory", "speed", "wholeNodes", "externalEvents")),
    "swf": (swf.read, (*_ALWAYS, *_WINDOW, "cpu", "memory", "wholeNodes")),
    "alibabaDlrm": (alibaba_dlrm.read, (*_ALWAYS, *_WINDOW)),
    "alibabaGpu": (alibaba_gpu.read, (*_ALWAYS, *_WINDOW)),
    "azureFunctions": (azure_functions.read, (*_ALWAYS, "functions", "minutes", "keepAlive", "cpu", "memory")),
    "manifests": (manifests.read, ("at", "scheduler", "nodes", "popularity", "unknownImages")),
    "qosWorkload": (qos_workload.read, _ALWAYS),
    "kubeSchedulerSimulator": (
        kube_scheduler_simulator.read,
        ("at", "scheduler", "nodes", "popularity", "unknownImages"),
    ),
}
"""Reader of each kind, and the options that it accepts."""


def read(entry: ImportEntry, folder: Path, context: ImportContext) -> Imported:
    """Return what an entry imports, from files relative to *folder*. Raises InputError with every mistake found."""
    kinds = list(entry.kinds)
    if len(kinds) != 1:
        raise InputError([context.entry.mistake(f"say exactly one of {', '.join(KINDS)}")])
    reader, options = READERS[kinds[0]]
    strange = [name for name in _given_options(entry) if name not in options and name not in KINDS]
    if strange:
        hint = f"{kinds[0]} knows {', '.join(options)}"
        raise InputError([context.entry.mistake(f"means nothing here; {hint}", name) for name in strange])
    return reader(entry, folder, context)


def _given_options(entry: ImportEntry) -> list[str]:
    """Return the names of options that differ from their defaults."""
    fields = msgspec.structs.fields(ImportEntry)
    return [field.encode_name for field in fields if getattr(entry, field.name) != field.default]


class ImportBuilder:
    """All imports of a scenario; an import with a mistake adds nothing."""

    def __init__(self, state: AssemblyState, catalog: ScenarioCatalog, seed: int, data: Path | None) -> None:
        """Prepare to read the entries' files from the folder *data*, or else from the folder of the scenario file."""
        self._state = state
        self._catalog = catalog
        self._seed = seed
        self._data = data
        self._entries = state.entries("imports", ImportEntry, "node")
        self._brought: list[tuple[ScenarioEntry, Imported]] = []
        if self._entries and not (state.complete["node"] and catalog.complete):
            # Without all nodes and images, the checks of pods would report false mistakes.
            self._entries = []
            self._incomplete()

    def nodes(self, listed: Iterable[VirtualNodeSpec], usual: VirtualNodeSpec) -> list[VirtualNodeSpec]:
        """Read all imports, and return their nodes; *listed* nodes exist without them, *usual* fills gaps."""
        known = list(listed)
        first = len(known)
        for entry in self._entries:
            context = ImportContext(
                entry=entry, seed=self._seed, images=self._catalog.all_images, nodes=tuple(known), like=usual
            )
            try:
                brought = read(entry.value, self._data or Path(entry.document.source).parent, context)
            except InputError as error:
                self._state.mistakes += error.mistakes
                self._incomplete()
            else:
                self._brought.append((entry, brought))
                fresh = self._fresh(entry, "node", (node.name for node in brought.nodes))
                known += (node for node in brought.nodes if node.name in fresh)
        return known[first:]

    def arrivals(self, checks: PodChecks) -> dict[str, PodArrival]:
        """Return the imported pods by name; check them and the templates of imported controllers."""
        made: dict[str, PodArrival] = {}
        for entry, brought in self._brought:
            fresh = self._fresh(entry, "pod", (one.pod.name for one in brought.arrivals))
            made.update((one.pod.name, one) for one in brought.arrivals if one.pod.name in fresh)
            pods = [one.pod for one in brought.arrivals] + [one.template for one in brought.controllers]
            self._check_disks(entry, pods, checks.disk_capacity)
            again = [one.name for one in brought.controllers if is_endless(one.life, one.kind)]
            again += (one.pod.name for one in brought.arrivals if is_endless(one.life, ""))
            if again and not checks.ends:
                self._state.wrong(entry, f"{shown(again[0])} is restarted for ever; say until when the scenario runs")
        return made

    def controllers(self) -> list[ControllerSpec]:
        """Return the imported controllers."""
        made: list[ControllerSpec] = []
        for entry, brought in self._brought:
            fresh = self._fresh(entry, "controller", (one.name for one in brought.controllers))
            made += (one for one in brought.controllers if one.name in fresh)
        return made

    @property
    def objects(self) -> list[ScenarioObject]:
        """The imported objects besides nodes, pods and controllers; of two with the same key, the first."""
        found: dict[ObjectKey, ScenarioObject] = {}
        for _, brought in self._brought:
            for one in brought.objects:
                found.setdefault(key_of(one.found), one)
        return list(found.values())

    @property
    def events(self) -> list[ScenarioEvent]:
        """The imported changes of controllers."""
        return [one for _, brought in self._brought for one in brought.events]

    def availability(self, nodes: Sequence[VirtualNodeSpec]) -> list[ScenarioEvent]:
        """Return the imported changes of *nodes*, which are all nodes of the scenario in order."""
        found = []
        for entry, brought in self._brought:
            for change in brought.availability:
                beyond = [number for number in change.hosts if number >= len(nodes)]
                if beyond:
                    message = f"names machine {beyond[0]} on line {change.line}, and there are {len(nodes)} nodes"
                    self._state.wrong(entry, message, "externalEvents")
                    break
                kind: ScenarioEventKind = "uncordon" if change.available else "cordon"
                found += [ScenarioEvent(change.at, kind, nodes[number].name) for number in change.hosts]
        return found

    @property
    def batsim(self) -> tuple[BatsimSource, ...]:
        """The imported Batsim workloads, as written."""
        return tuple(brought.batsim for _, brought in self._brought if brought.batsim is not None)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the imports left out or changed, each with the location of its entry."""
        return tuple(f"{entry.where}: {note}" for entry, brought in self._brought for note in brought.notes)

    def _fresh(self, entry: ScenarioEntry, noun: EntryNoun, names: Iterable[str]) -> dict[str, None]:
        return dict.fromkeys(self._state.take(entry, noun, names, next(iter(entry.value.kinds))))

    def _incomplete(self) -> None:
        """Mark all kinds of names as incomplete."""
        self._state.complete.update({"node": False, "pod": False, "controller": False})

    def _check_disks(self, entry: ScenarioEntry, pods: Iterable[Pod], disk_capacity: DiskCapacityCheck) -> None:
        """Report the first pod whose image does not fit on a disk that it may get; there may be thousands like it."""
        kinds = {(pod.images, pod.requests, pod.tolerations): pod for pod in pods}
        for pod in kinds.values():
            for name in pod.images:
                image = self._catalog.find(entry, name)
                if image is not None and (problem := disk_capacity.too_small(pod, image)):
                    self._state.wrong(entry, problem)
                    return
