"""
The shape of a scenario file. docs and examples show it filled in; what the fields mean together is in `assembly`.

One file may include others; each of them has this shape. Unknown fields are mistakes. Pods, pulls, workloads and
imports have modules of their own.
"""

from typing import Annotated, Final, Literal

import msgspec

from lamina.model.taints import Taint
from lamina.simulator.workloads.field_types import (
    Bandwidth,
    Delay,
    Duration,
    Interval,
    Name,
    Period,
    Quantity,
    Reference,
    Size,
)
from lamina.simulator.workloads.imports.import_schema import ImportEntry
from lamina.simulator.workloads.pod_schema import (
    Count,
    DaemonSetEntry,
    DeploymentEntry,
    JobEntry,
    PodEntry,
    StatefulSetEntry,
)
from lamina.simulator.workloads.pull_schema import DiskEntry, RegistryEntry, ScenarioRuntimeEntry
from lamina.simulator.workloads.workload_schema import CatalogEntry, WorkloadEntry

MOST_NODES: Final = 100_000
"""A bound on what one line of a scenario can ask for, so that a slip of the finger is told and not tried."""


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What all parts have in common."""


class DefaultsEntry(_Part, frozen=True, kw_only=True):
    """What holds where nothing else is said; unset means what the included files say, or else the usual."""

    bandwidth: Bandwidth | None = None
    runtime: str | None = None
    disk: Size | DiskEntry | None = None
    report_delay: Delay | None = None
    report_gap: Duration | None = None
    status_delay: Delay | None = None
    start_delay: Delay | None = None
    stop_delay: Delay | None = None
    bind_delay: Duration | None = None
    restart_delay: Period | None = None
    restart_most: Period | None = None
    notice_delay: Duration | None = None
    evict_after: Duration | None = None


class TaintEntry(_Part, frozen=True, kw_only=True):
    """A taint, as in a node's spec."""

    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"

    def taint(self) -> Taint:
        """Return it as the scheduler knows it."""
        return Taint(self.key, self.value, self.effect)


class ScenarioNodeEntry(_Part, frozen=True, kw_only=True):
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
    """Where it stands; of several zones the nodes of one entry take turns."""


class UsageEntry(_Part, frozen=True, kw_only=True):
    """How what nodes are really used for is measured, and told to the scheduler."""

    every: Interval = "60s"
    window: Interval = "15m"


class ScaleEntry(_Part, frozen=True, kw_only=True):
    """How many pods a controller is to have from then on."""

    name: Name
    to: Count


class UpdateEntry(_Part, frozen=True, kw_only=True):
    """Which image the first container of a controller's pods is to have from then on."""

    name: Name
    image: Reference


class EventEntry(_Part, frozen=True, kw_only=True):
    """Something that happens to a pod, a node or a controller."""

    at: Duration
    remove: Name | None = None
    drop: Name | None = None
    cordon: Name | None = None
    uncordon: Name | None = None
    drain: Name | None = None
    fail: Name | None = None
    lasting: Period | None = msgspec.field(default=None, name="for")
    """How long a node stays failed; unset: until something lets it recover."""
    recover: Name | None = None
    join: ScenarioNodeEntry | None = None
    scale: ScaleEntry | None = None
    update: UpdateEntry | None = None


class ScenarioFile(_Part, frozen=True, kw_only=True):
    """A whole file."""

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
    """More images: a catalog file, or how to generate one."""
    nodes: tuple[ScenarioNodeEntry, ...] = ()
    pods: tuple[PodEntry, ...] = ()
    deployments: tuple[DeploymentEntry, ...] = ()
    stateful_sets: tuple[StatefulSetEntry, ...] = ()
    daemon_sets: tuple[DaemonSetEntry, ...] = ()
    jobs: tuple[JobEntry, ...] = ()
    workload: WorkloadEntry | None = None
    """More pods, drawn from the seed of the run."""
    imports: tuple[ImportEntry, ...] = ()
    """More of everything, from files of other tools."""
    usage: UsageEntry | None = None
    """Unset: nobody measures what nodes are used for."""
    events: tuple[EventEntry, ...] = ()
    profile: str = ""
    until: Duration | None = None
