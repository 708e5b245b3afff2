"""A scenario ready to run: names are resolved, times are in seconds, and each pod has its arrival time."""

from typing import Any, Final, Literal

import msgspec

from lamina.model.cluster_objects import ClusterObject, ObjectKey
from lamina.model.digest import Digest
from lamina.model.image import Image
from lamina.model.pod import Pod
from lamina.simulator.cluster import Delays, UsageSpec, VirtualNodeSpec
from lamina.simulator.cluster.pod_lifecycle import RUNS_FOREVER, PodLifecycle
from lamina.simulator.controllers.controller_spec import ControllerSpec
from lamina.simulator.workloads.batsim_source import BatsimSource

CONTROLLER: Final = "ReplicaSet"
"""Kind of the owner of pods that a scenario lists or draws without a controller."""

ScenarioEventKind = Literal[
    "remove", "drop", "cordon", "uncordon", "drain", "fail", "recover", "join", "scale", "update", "apply", "delete"
]


class ScenarioObject(msgspec.Struct, frozen=True):
    """An object besides pods and nodes: what the scheduler reads of it, and its manifest."""

    found: ClusterObject
    manifest: dict[str, Any] = {}
    """Empty: the object was not read from a manifest."""


class PodArrival(msgspec.Struct, frozen=True):
    """A pod and its arrival time in seconds."""

    at: float
    pod: Pod
    """An empty ``scheduler_name`` means the first profile."""
    life: PodLifecycle = RUNS_FOREVER

    @property
    def duration(self) -> float | None:
        """How long the pod runs, in seconds; None: until it is removed or the run ends."""
        return self.life.seconds


class ScenarioEvent(msgspec.Struct, frozen=True):
    """
    A change to the cluster from outside.

    *remove* a pod; *drop*, *cordon*, *uncordon*, *drain*, *fail* or *recover* a node, or let *node* *join*; *scale* a
    controller to *count*, or *update* its pods to *image*; *apply* an *object*, or *delete* the one with *key*.
    """

    at: float
    kind: ScenarioEventKind
    name: str
    count: int = 0
    image: str = ""
    node: VirtualNodeSpec | None = None
    object: ScenarioObject | None = None
    key: ObjectKey | None = None


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a simulated run needs except the scheduler."""

    name: str
    about: str = ""
    images: tuple[Image, ...] = ()
    layer_names: dict[Digest, str] = {}
    """Names of layers in the scenario file, for display."""
    nodes: tuple[VirtualNodeSpec, ...] = ()
    arrivals: tuple[PodArrival, ...] = ()
    """In order of arrival."""
    events: tuple[ScenarioEvent, ...] = ()
    """In order of time."""
    objects: tuple[ScenarioObject, ...] = ()
    """Budgets, claims, volumes, Services and the like; they exist from the start."""
    controllers: tuple[ControllerSpec, ...] = ()
    """In order of creation."""
    registry: float = 0.0
    """Bytes per second that all nodes together can download; 0: unlimited."""
    uplinks: dict[str, float] = {}
    """Bytes per second of the links to the registry that nodes share, by name."""
    delays: Delays = Delays()
    usage: UsageSpec | None = None
    """How node usage is measured and reported to the scheduler; None: it is not measured."""
    batsim: tuple[BatsimSource, ...] = ()
    """The imported Batsim workloads, as written."""
    profile: str = ""
    """The scheduler profile it names; traces and summaries of a run carry this label."""
    scheduler: str = ""
    """The registered foreign scheduler that it names; empty: Lamina schedules."""
    until: float | None = None
    """Time in seconds at which the run ends at the latest."""
    notes: tuple[str, ...] = ()
    """What imports left out or changed, in sentences for the user."""

    def under(self, profile: str) -> "Scenario":
        """Return a copy of the scenario with another profile."""
        return msgspec.structs.replace(self, profile=profile)
