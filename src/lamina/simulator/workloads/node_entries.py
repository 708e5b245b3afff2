"""From the entries of nodes to nodes that can join."""

from typing import Final

import msgspec

from lamina.model import quantity, resources
from lamina.model.resources import CPU, MEMORY, PODS
from lamina.simulator.cluster import VirtualNodeSpec
from lamina.simulator.pulls import NodeImageStore
from lamina.simulator.workloads import units
from lamina.simulator.workloads.assembly_state import AssemblyState
from lamina.simulator.workloads.defaults import ScenarioDefaults
from lamina.simulator.workloads.resource_fields import misplaced_resources
from lamina.simulator.workloads.runtimes import Runtimes
from lamina.simulator.workloads.scenario_catalog import ScenarioCatalog
from lamina.simulator.workloads.scenario_files import ScenarioEntry
from lamina.simulator.workloads.scenario_schema import ScenarioNodeEntry

ZONE: Final = "topology.kubernetes.io/zone"
"""The label by which nodes are told where they stand."""


class NodeBuilder:
    """Makes nodes from what files say about them."""

    def __init__(
        self, ledger: AssemblyState, catalog: ScenarioCatalog, runtimes: Runtimes, defaults: ScenarioDefaults
    ) -> None:
        """Take names from a ledger, and from the rest what entries leave open."""
        self._ledger = ledger
        self._catalog = catalog
        self._runtimes = runtimes
        self._defaults = defaults

    @property
    def usual(self) -> VirtualNodeSpec:
        """What a node without a name is like of which nothing is said."""
        usual, nowhere = self._defaults, ScenarioEntry(self._ledger.parts[-1].document, (), None)
        disk = self._runtimes.disk(nowhere, usual.disk, None)
        return VirtualNodeSpec(name="", allocatable=(), bandwidth=usual.bandwidth, runtime=usual.runtime, disk=disk)

    def make(self, entry: ScenarioEntry) -> list[VirtualNodeSpec]:
        """Return the nodes an entry stands for."""
        node: ScenarioNodeEntry = entry.value
        self._ledger.mistakes += misplaced_resources(entry, node.resources)
        found = [self._catalog.find(entry, name, "holds", index) for index, name in enumerate(node.holds)]
        usual = self._defaults
        spec = VirtualNodeSpec(
            name=node.name,
            allocatable=resources.amounts({**node.resources, CPU: node.cpu, MEMORY: node.memory, PODS: node.pods}),
            bandwidth=usual.bandwidth if node.bandwidth is None else float(units.bandwidth(node.bandwidth)),
            holds=tuple(image for image in found if image is not None),
            labels=node.labels,
            annotations=node.annotations,
            taints=tuple(taint.taint() for taint in node.taints),
            runtime=usual.runtime if node.runtime is None else self._runtimes.runtime(entry, node.runtime),
            disk=self._runtimes.disk(entry, usual.disk, node.disk),
            uplink=self._runtimes.uplink(entry, node.uplink),
        )
        self._check_room(entry, spec)
        zones = self._zones(entry, node)
        made = []
        for number, name in enumerate(self._ledger.names(entry, "node")):
            labels = {**node.labels, ZONE: zones[number % len(zones)]} if zones else node.labels
            made.append(msgspec.structs.replace(spec, name=name, labels=labels))
        return made

    def _zones(self, entry: ScenarioEntry, node: ScenarioNodeEntry) -> tuple[str, ...]:
        if node.zone is not None and ZONE in node.labels:
            self._ledger.wrong(entry, f"say zone or the label {ZONE}, not both", "zone")
        return (node.zone,) if isinstance(node.zone, str) else node.zone or ()

    def _check_room(self, entry: ScenarioEntry, spec: VirtualNodeSpec) -> None:
        """See to it that what a node holds from the start has room on its disk."""
        if spec.disk is None or not spec.holds:
            return
        taken = NodeImageStore(spec.runtime, None, spec.holds).used
        if taken > spec.disk.capacity:
            needs, has = quantity.human_bytes(taken), quantity.human_bytes(spec.disk.capacity)
            self._ledger.wrong(entry, f"what it holds needs {needs}, its disk has {has}", "holds")
