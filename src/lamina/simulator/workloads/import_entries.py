"""What the files of other tools bring into a scenario: read, named, and checked against what is there already."""

from collections.abc import Iterable
from pathlib import Path

from lamina.model.errors import InputError
from lamina.model.plain import shown
from lamina.model.pod import Pod
from lamina.simulator.cluster import VirtualNodeSpec
from lamina.simulator.controllers.controller_spec import ControllerSpec
from lamina.simulator.workloads import imports
from lamina.simulator.workloads.assembly_state import AssemblyState, EntryNoun
from lamina.simulator.workloads.disk_capacity import DiskCapacityCheck
from lamina.simulator.workloads.imports import ImportContext, Imported, ImportEntry
from lamina.simulator.workloads.lifecycle_entries import is_endless
from lamina.simulator.workloads.pod_entries import PodChecks
from lamina.simulator.workloads.scenario import PodArrival
from lamina.simulator.workloads.scenario_catalog import ScenarioCatalog
from lamina.simulator.workloads.scenario_files import ScenarioEntry


class ImportBuilder:
    """All imports of a scenario; nothing of one that has a mistake is used."""

    def __init__(self, ledger: AssemblyState, catalog: ScenarioCatalog, seed: int, data: Path | None) -> None:
        """Prepare to read what entries name, from the folder *data* or else from where the entry's file is."""
        self._ledger = ledger
        self._catalog = catalog
        self._seed = seed
        self._data = data
        self._entries = ledger.entries("imports", ImportEntry, "node")
        self._brought: list[tuple[ScenarioEntry, Imported]] = []
        if self._entries and not (ledger.complete["node"] and catalog.complete):
            # What pods need and where they fit cannot be judged; the mistakes that led here are told.
            self._entries = []
            self._incomplete()

    def nodes(self, listed: Iterable[VirtualNodeSpec], usual: VirtualNodeSpec) -> list[VirtualNodeSpec]:
        """Read everything, and return the nodes it brings beside those that are *listed*."""
        known = list(listed)
        first = len(known)
        for entry in self._entries:
            context = ImportContext(
                entry=entry, seed=self._seed, images=self._catalog.all_images, nodes=tuple(known), like=usual
            )
            try:
                brought = imports.read(entry.value, self._data or Path(entry.document.source).parent, context)
            except InputError as error:
                self._ledger.mistakes += error.mistakes
                self._incomplete()
            else:
                self._brought.append((entry, brought))
                fresh = self._fresh(entry, "node", (node.name for node in brought.nodes))
                known += (node for node in brought.nodes if node.name in fresh)
        return known[first:]

    def arrivals(self, around: PodChecks) -> dict[str, PodArrival]:
        """Return the pods they bring, by name, and judge them and those that controllers will make."""
        made: dict[str, PodArrival] = {}
        for entry, brought in self._brought:
            fresh = self._fresh(entry, "pod", (one.pod.name for one in brought.arrivals))
            made.update((one.pod.name, one) for one in brought.arrivals if one.pod.name in fresh)
            pods = [one.pod for one in brought.arrivals] + [one.template for one in brought.controllers]
            self._check_disks(entry, pods, around.disk_room)
            again = [one.name for one in brought.controllers if is_endless(one.life, one.kind)]
            again += (one.pod.name for one in brought.arrivals if is_endless(one.life, ""))
            if again and not around.ends:
                self._ledger.wrong(entry, f"{shown(again[0])} is restarted for ever; say until when the scenario runs")
        return made

    def controllers(self) -> list[ControllerSpec]:
        """Return the controllers they bring."""
        made: list[ControllerSpec] = []
        for entry, brought in self._brought:
            fresh = self._fresh(entry, "controller", (one.name for one in brought.controllers))
            made += (one for one in brought.controllers if one.name in fresh)
        return made

    @property
    def notes(self) -> tuple[str, ...]:
        """What they left out or took differently, each with the place that asked for it."""
        return tuple(f"{entry.where}: {note}" for entry, brought in self._brought for note in brought.notes)

    def _fresh(self, entry: ScenarioEntry, noun: EntryNoun, names: Iterable[str]) -> dict[str, None]:
        return dict.fromkeys(self._ledger.take(entry, noun, names, next(iter(entry.value.kinds))))

    def _incomplete(self) -> None:
        """Remember that there may be more of everything."""
        self._ledger.complete.update({"node": False, "pod": False, "controller": False})

    def _check_disks(self, entry: ScenarioEntry, pods: Iterable[Pod], disk_room: DiskCapacityCheck) -> None:
        """Tell of the first pod whose image has room on no disk it may come to; there may be thousands like it."""
        kinds = {(pod.images, pod.requests, pod.tolerations): pod for pod in pods}
        for pod in kinds.values():
            for name in pod.images:
                image = self._catalog.find(entry, name)
                if image is not None and (told := disk_room.too_small(pod, image)):
                    self._ledger.wrong(entry, told)
                    return
