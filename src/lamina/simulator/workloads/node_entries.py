"""Nodes and defaults of a scenario: the shape of their entries, and the node specs made from them."""

from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal

import msgspec

from lamina.model import quantity, resources
from lamina.model.errors import Mistake
from lamina.model.resources import CPU, MEMORY, PODS
from lamina.model.taints import Taint
from lamina.simulator.cluster import Delays, VirtualNodeSpec
from lamina.simulator.pulls import NodeImageStore
from lamina.simulator.pulls.runtime_spec import CONTAINERD, RuntimeSpec
from lamina.simulator.workloads.capacity import misplaced_resources
from lamina.simulator.workloads.field_types import (
    Bandwidth,
    Delay,
    Duration,
    EntryStruct,
    Name,
    Period,
    Quantity,
    Reference,
    Size,
)
from lamina.simulator.workloads.pull_entries import (
    DiskEntry,
    Runtimes,
    disk_entry,
    settings_of,
)
from lamina.simulator.workloads.scenario_catalog import ScenarioCatalog
from lamina.simulator.workloads.scenario_files import AssemblyState, ScenarioDocument, ScenarioEntry

MOST_NODES: Final = 100_000
"""Largest number of nodes of a scenario; a typing error is then reported instead of simulated."""


class DefaultsEntry(EntryStruct, frozen=True, kw_only=True):
    """Defaults of nodes and delays; an unset field keeps the value of the included files, or else the built-in one."""

    bandwidth: Bandwidth | None = None
    runtime: str | None = None
    disk: Size | DiskEntry | None = None
    report_delay: Delay | None = None
    report_gap: Duration | None = None
    status_delay: Delay | None = None
    start_delay: Delay | None = None
    stop_delay: Delay | None = None
    bind_delay: Duration | None = None
    provision_delay: Duration | None = None
    restart_delay: Period | None = None
    restart_most: Period | None = None
    notice_delay: Duration | None = None
    evict_after: Duration | None = None


class TaintEntry(EntryStruct, frozen=True, kw_only=True):
    """A taint, as in a node's spec."""

    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"

    def taint(self) -> Taint:
        """Return it in the model of the scheduler."""
        return Taint(self.key, self.value, self.effect)


class ScenarioNodeEntry(EntryStruct, frozen=True, kw_only=True):
    """One node, or *count* equal ones called name1, name2 and so on."""

    name: Name
    count: Annotated[int, msgspec.Meta(ge=1, le=MOST_NODES)] = 1
    cpu: Quantity
    memory: Quantity
    pods: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 110
    resources: dict[str, Quantity] = {}
    bandwidth: Bandwidth | None = None
    holds: tuple[Reference, ...] = ()
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    taints: tuple[TaintEntry, ...] = ()
    runtime: str | None = None
    disk: Size | DiskEntry | None = None
    uplink: str = ""
    zone: str | Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] | None = None
    """Its zone; with several zones, the nodes of one entry are assigned to them in turn."""


BANDWIDTH: Final = 125_000_000.0
"""Bytes per second of a node if neither its entry nor the defaults set them: a gigabit link."""

REALISTIC_DELAYS: Final = Delays(report=1.0, report_gap=10.0, status=(10.0, 20.0, 30.0, 40.0))
"""Delays without settings: node agents report at most every ten seconds, and kubelets publish images with a delay."""

_DELAYS: Final = {
    "report_delay": "report",
    "report_gap": "report_gap",
    "status_delay": "status",
    "start_delay": "start",
    "stop_delay": "stop",
    "bind_delay": "bind",
    "provision_delay": "provision",
    "restart_delay": "restart",
    "restart_most": "restart_most",
    "notice_delay": "notice",
    "evict_after": "evict_after",
}
"""Fields of the entry, and the delays that they set."""


class ScenarioDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """Values of nodes and delays that an entry does not set."""

    bandwidth: float = BANDWIDTH
    runtime: RuntimeSpec = CONTAINERD
    disk: DiskEntry = DiskEntry()
    """Only the fields that files set; a node may set the others."""
    delays: Delays = REALISTIC_DELAYS


def join_defaults(parts: Iterable[ScenarioDocument], runtimes: Runtimes) -> tuple[ScenarioDefaults, list[Mistake]]:
    """Return the defaults of all files, joined field by field; the including file overrides the included files."""
    mistakes: list[Mistake] = []
    settings: dict[str, Any] = {}
    delays: dict[str, Any] = {}
    disk = DiskEntry()
    for entry in filter(None, (part.single("defaults", DefaultsEntry) for part in parts)):
        given: DefaultsEntry = entry.value
        if given.bandwidth is not None:
            settings["bandwidth"] = given.bandwidth
        if given.runtime is not None:
            settings["runtime"] = runtimes.runtime(entry, given.runtime)
        if given.disk is not None:
            disk = _over(disk, disk_entry(given.disk))
            runtimes.check_disk(entry, settings_of(disk), settings_of(disk_entry(given.disk)))
        delays |= {name: value for field, name in _DELAYS.items() if (value := getattr(given, field)) is not None}
        first, most = (
            delays.get("restart", REALISTIC_DELAYS.restart),
            delays.get("restart_most", REALISTIC_DELAYS.restart_most),
        )
        if first > most:
            message = f"the first restart would wait longer ({first:g} s) than any may ({most:g} s); raise restartMost"
            mistakes.append(entry.mistake(message, "restartDelay"))
    return ScenarioDefaults(**settings, disk=disk, delays=msgspec.structs.replace(REALISTIC_DELAYS, **delays)), mistakes


def _over(below: DiskEntry, above: DiskEntry) -> DiskEntry:
    """Return *below* with the fields that *above* sets."""
    given = {name: value for name, value in msgspec.structs.asdict(above).items() if value is not None}
    return msgspec.structs.replace(below, **given)


ZONE: Final = "topology.kubernetes.io/zone"
"""Label with the zone of a node."""


class NodeBuilder:
    """Makes node specs from the node entries of all files."""

    def __init__(
        self, state: AssemblyState, catalog: ScenarioCatalog, runtimes: Runtimes, defaults: ScenarioDefaults
    ) -> None:
        """Take names from *state*, and values that entries do not set from *defaults*."""
        self._state = state
        self._catalog = catalog
        self._runtimes = runtimes
        self._defaults = defaults

    @property
    def usual(self) -> VirtualNodeSpec:
        """The spec of a node whose entry sets nothing; it has no name."""
        usual, nowhere = self._defaults, ScenarioEntry(self._state.parts[-1].document, (), None)
        disk = self._runtimes.disk(nowhere, usual.disk, None)
        return VirtualNodeSpec(name="", allocatable=(), bandwidth=usual.bandwidth, runtime=usual.runtime, disk=disk)

    def make(self, entry: ScenarioEntry) -> list[VirtualNodeSpec]:
        """Return the nodes that an entry stands for."""
        node: ScenarioNodeEntry = entry.value
        self._state.mistakes += misplaced_resources(entry, node.resources)
        found = [self._catalog.find(entry, name, "holds", index) for index, name in enumerate(node.holds)]
        usual = self._defaults
        spec = VirtualNodeSpec(
            name=node.name,
            allocatable=resources.amounts({**node.resources, CPU: node.cpu, MEMORY: node.memory, PODS: node.pods}),
            bandwidth=usual.bandwidth if node.bandwidth is None else node.bandwidth,
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
        for number, name in enumerate(self._state.names(entry, "node")):
            labels = {**node.labels, ZONE: zones[number % len(zones)]} if zones else node.labels
            made.append(msgspec.structs.replace(spec, name=name, labels=labels))
        return made

    def _zones(self, entry: ScenarioEntry, node: ScenarioNodeEntry) -> tuple[str, ...]:
        if node.zone is not None and ZONE in node.labels:
            self._state.wrong(entry, f"say zone or the label {ZONE}, not both", "zone")
        return (node.zone,) if isinstance(node.zone, str) else node.zone or ()

    def _check_room(self, entry: ScenarioEntry, spec: VirtualNodeSpec) -> None:
        """Report a mistake if the images that a node holds from the start exceed its disk."""
        if spec.disk is None or not spec.holds:
            return
        taken = NodeImageStore(spec.runtime, None, spec.holds).used
        if taken > spec.disk.capacity:
            needs, has = quantity.human_bytes(taken), quantity.human_bytes(spec.disk.capacity)
            self._state.wrong(entry, f"what it holds needs {needs}, its disk has {has}", "holds")
