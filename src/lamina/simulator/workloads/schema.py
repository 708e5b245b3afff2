"""
The shape of a scenario file. docs and examples show it filled in; what the fields mean together is in `check`.

One file may include others; each of them has this shape. Unknown fields are mistakes.
"""

from collections.abc import Callable
from typing import Annotated, Any, Final, Literal

import msgspec

from lamina.model.reference import parse_reference
from lamina.model.taints import Taint, Toleration
from lamina.simulator.workloads import units

# Bounds on what one line of a scenario can ask for, so that a slip of the finger is told and not tried.
MOST_NODES: Final = 100_000
MOST_PODS: Final = 1_000_000


def _reads(reader: Callable[[Any], object]) -> msgspec.Meta:
    return msgspec.Meta(extra={"reads": reader})


Duration = Annotated[str | float, _reads(units.seconds)]
Size = Annotated[str | float, _reads(units.size)]
Bandwidth = Annotated[str | float, _reads(units.bandwidth)]
Quantity = Annotated[str | float, _reads(units.resource)]
Name = Annotated[str, _reads(units.object_name)]
Reference = Annotated[str, _reads(parse_reference)]


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
    nodes: tuple[NodeEntry, ...] = ()
    pods: tuple[PodEntry, ...] = ()
    events: tuple[EventEntry, ...] = ()
    profile: str = ""
    until: Duration | None = None
