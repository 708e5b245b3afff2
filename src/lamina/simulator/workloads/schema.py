"""
The shape of a scenario file. docs and examples show it filled in; what the fields mean together is in `assembly`.

One file may include others; each of them has this shape. Unknown fields are mistakes.
"""

from typing import Annotated, Final, Literal

import msgspec

from lamina.model.pod import SpreadConstraint
from lamina.model.selectors import LabelSelector
from lamina.model.taints import Taint, Toleration
from lamina.simulator.workloads.fields import Bandwidth, Duration, Name, Quantity, Reference, Size
from lamina.simulator.workloads.workload_schema import CatalogEntry, WorkloadEntry

# Bounds on what one line of a scenario can ask for, so that a slip of the finger is told and not tried.
MOST_NODES: Final = 100_000
MOST_PODS: Final = 1_000_000


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What all parts have in common."""


class DefaultsEntry(_Part, frozen=True, kw_only=True):
    """What holds where nothing else is said; unset means what the included files say, or else the usual."""

    bandwidth: Bandwidth | None = None
    report_delay: Duration | None = None
    status_delay: Duration | None = None
    start_delay: Duration | None = None
    bind_delay: Duration | None = None


class TaintEntry(_Part, frozen=True, kw_only=True):
    """A taint, as in a node's spec."""

    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"

    def taint(self) -> Taint:
        """Return it as the scheduler knows it."""
        return Taint(self.key, self.value, self.effect)


class TolerationEntry(_Part, frozen=True, kw_only=True):
    """A toleration, as in a pod's spec."""

    key: str = ""
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str = ""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""

    def toleration(self) -> Toleration:
        """Return it as the scheduler knows it."""
        return Toleration(self.key, self.operator, self.value, self.effect)


class SpreadEntry(_Part, frozen=True, kw_only=True):
    """A topology spread constraint, as in a pod's spec; pods with these *labels* are counted, or with the pod's own."""

    key: str
    max_skew: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] = 1
    when: Literal["DoNotSchedule", "ScheduleAnyway"] = "DoNotSchedule"
    labels: dict[str, str] | None = None

    def constraint(self, own: dict[str, str]) -> SpreadConstraint:
        """Return it as the scheduler knows it, on a pod with its *own* labels."""
        counted = own if self.labels is None else self.labels
        return SpreadConstraint(self.max_skew, self.key, self.when, LabelSelector(tuple(sorted(counted.items()))))


class NodeEntry(_Part, frozen=True, kw_only=True):
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
    taints: tuple[TaintEntry, ...] = ()


class PodEntry(_Part, frozen=True, kw_only=True):
    """One pod, or *count* equal ones called name1, name2 and so on, coming *every* so often."""

    name: Name
    count: Annotated[int, msgspec.Meta(ge=1, le=MOST_PODS)] = 1
    at: Duration = 0
    every: Duration = 0
    image: Reference | None = None
    images: tuple[Reference, ...] = ()
    init: tuple[Reference, ...] = ()
    cpu: Quantity | None = None
    memory: Quantity | None = None
    resources: dict[str, Quantity] = {}
    duration: Duration | None = None
    """How long it runs; unset: until the end."""
    priority: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)] = 0
    scheduler: str = ""
    """Which of the configuration's profiles places it; empty: the first."""
    tolerations: tuple[TolerationEntry, ...] = ()
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner: Name | None = None
    """Pods with the same owner belong to one controller."""
    spread: tuple[SpreadEntry, ...] = ()


class EventEntry(_Part, frozen=True, kw_only=True):
    """Something that happens to one pod or node."""

    at: Duration
    remove: Name | None = None
    drop: Name | None = None
    cordon: Name | None = None


class ScenarioFile(_Part, frozen=True, kw_only=True):
    """A whole file."""

    name: str = ""
    about: str = ""
    include: tuple[str, ...] = ()
    defaults: DefaultsEntry = DefaultsEntry()
    layers: dict[str, Size] = {}
    images: dict[Reference, tuple[str, ...] | dict[str, Size]] = {}
    """Layers bottom first: by name, or each with its size."""
    catalog: str | CatalogEntry | None = None
    """More images: a catalogue file, or how to generate one."""
    nodes: tuple[NodeEntry, ...] = ()
    pods: tuple[PodEntry, ...] = ()
    workload: WorkloadEntry | None = None
    """More pods, drawn from the seed of the run."""
    events: tuple[EventEntry, ...] = ()
    profile: str = ""
    until: Duration | None = None
