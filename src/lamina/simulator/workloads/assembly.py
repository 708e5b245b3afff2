"""
From the files of a scenario to one that can run, or to everything that does not fit together in them.

Goes through the entries of all files, included ones first: what nodes are made of, nodes, pods, controllers, what is
drawn, what is imported, and last the events, which may name any of them.
"""

from collections.abc import Iterable
from pathlib import Path

from lamina.model.errors import Mistake
from lamina.model.plain import shown
from lamina.simulator.cluster import VirtualNodeSpec
from lamina.simulator.controllers.controller_spec import ControllerSpec
from lamina.simulator.workloads import defaults, units
from lamina.simulator.workloads.assembly_state import AssemblyState
from lamina.simulator.workloads.controller_entries import controllers
from lamina.simulator.workloads.disk_capacity import DiskCapacityCheck
from lamina.simulator.workloads.event_entries import EventBuilder
from lamina.simulator.workloads.import_entries import ImportBuilder
from lamina.simulator.workloads.node_capacity import NodeCapacityCheck
from lamina.simulator.workloads.node_entries import NodeBuilder
from lamina.simulator.workloads.pod_entries import PodBuilder, PodChecks
from lamina.simulator.workloads.pod_schema import MOST_PODS, PodEntry
from lamina.simulator.workloads.pull_schema import RegistryEntry
from lamina.simulator.workloads.runtimes import Runtimes
from lamina.simulator.workloads.scenario import PodArrival, ScenarioEvent
from lamina.simulator.workloads.scenario_catalog import ScenarioCatalog
from lamina.simulator.workloads.scenario_files import ScenarioDocument, ScenarioEntry
from lamina.simulator.workloads.scenario_schema import MOST_NODES, ScenarioNodeEntry
from lamina.simulator.workloads.usage_entries import usage_spec
from lamina.simulator.workloads.workload_entries import draw_workload


class Assembly:
    """Nodes, pods, controllers and events of all files, and the images they name."""

    def __init__(self, parts: Iterable[ScenarioDocument], seed: int, data: Path | None = None) -> None:
        """Put them together; *seed* is for what is drawn, *data* the folder that imports are in."""
        self._ledger = ledger = AssemblyState(parts)
        self.catalog = ScenarioCatalog(ledger.parts)
        self._runtimes = Runtimes(ledger.parts)
        self.defaults, mistakes = defaults.join_defaults(ledger.parts, self._runtimes)
        ledger.mistakes += mistakes
        maker = NodeBuilder(ledger, self.catalog, self._runtimes, self.defaults)
        listed = ledger.bounded(
            ledger.entries("nodes", ScenarioNodeEntry, "node"), "node", MOST_NODES, lambda said: said.count
        )
        self.nodes: list[VirtualNodeSpec] = [node for entry in listed for node in maker.make(entry)]
        events = EventBuilder(ledger, maker)
        joining = [node for _, node in events.joining]
        imports = ImportBuilder(ledger, self.catalog, seed, data)
        self.nodes += imports.nodes([*self.nodes, *joining], maker.usual)
        self._around = around = self._look_around([*self.nodes, *joining])
        pods = PodBuilder(ledger, around)
        entries = ledger.entries("pods", PodEntry, "pod")
        self.arrivals: dict[str, PodArrival] = {}
        for entry in ledger.bounded(entries, "pod", MOST_PODS, lambda said: said.count):
            self.arrivals.update(pods.arrivals(entry))
        self.arrivals |= imports.arrivals(around)
        self.controllers: list[ControllerSpec] = [
            *controllers(ledger, pods, len(self.arrivals)),
            *imports.controllers(),
        ]
        self.notes = imports.notes
        more = draw_workload(ledger, around, self.nodes, len(self.arrivals), seed)
        self.arrivals.update((one.pod.name, one) for one in more.arrivals)
        self.controllers += more.controllers
        self._check_names()
        self.usage = usage_spec(ledger)
        self.happenings: list[ScenarioEvent] = [
            *events.happenings(self.arrivals, self.controllers, around),
            *more.happenings,
        ]
        if ledger.complete["node"] and not self.nodes:
            last = ledger.parts[-1].document
            ledger.mistakes.append(ScenarioEntry(last, ("nodes",), None).mistake("there is no node; list at least one"))

    @property
    def mistakes(self) -> list[Mistake]:
        """Everything that does not fit together."""
        return [*self._ledger.mistakes, *self._runtimes.mistakes, *self.catalog.mistakes]

    @property
    def uplinks(self) -> dict[str, float]:
        """The links that nodes share, with their bytes per second."""
        return self._runtimes.uplinks

    @property
    def registry(self) -> float:
        """Bytes per second that all nodes together can download; that of the including file counts, 0: any number."""
        said = [entry for part in self._ledger.parts if (entry := part.single("registry", RegistryEntry)) is not None]
        return float(units.rate(said[-1].value.rate)) if said else 0.0

    def _look_around(self, nodes: list[VirtualNodeSpec]) -> PodChecks:
        known = self._ledger.complete["node"] and bool(nodes)
        ends = any(part.document.root.inside.get("until") is not None for part in self._ledger.parts)
        return PodChecks(
            catalog=self.catalog,
            room=NodeCapacityCheck(nodes) if known else None,
            disk_room=DiskCapacityCheck(nodes),
            ends=ends,
        )

    def _check_names(self) -> None:
        """See to it that no pod has a name that a controller gives."""
        for name in self.arrivals:
            maker, _, number = name.rpartition("-")
            entry = self._ledger.named["controller"].get(maker)
            if entry is not None and number.isdecimal() and str(int(number)) == number:
                before = self._ledger.named["pod"][name].where
                self._ledger.wrong(entry, f"its pods have names like {shown(name)}, which is taken in {before}", "name")
                return
