"""A scenario, ready to run: every name resolved, every time in seconds, every pod with its arrival."""

from typing import Literal

import msgspec

from lamina.model.digest import Digest
from lamina.model.image import Image
from lamina.model.pod import Pod
from lamina.simulator.cluster import Delays, UsageSpec, VirtualNodeSpec
from lamina.simulator.cluster.pod_lifecycle import RUNS_FOREVER, PodLifecycle
from lamina.simulator.controllers.controller_spec import ControllerSpec

ScenarioEventKind = Literal[
    "remove", "drop", "cordon", "uncordon", "drain", "fail", "recover", "join", "scale", "update"
]


class PodArrival(msgspec.Struct, frozen=True):
    """A pod that comes at a time."""

    at: float
    pod: Pod
    """Its ``scheduler_name`` is empty when any profile will do."""
    life: PodLifecycle = RUNS_FOREVER

    @property
    def duration(self) -> float | None:
        """How long it runs; None: until it is removed or the run ends."""
        return self.life.seconds


class ScenarioEvent(msgspec.Struct, frozen=True):
    """
    Something that is done to the cluster from outside.

    *remove* a pod; *drop*, *cordon*, *uncordon*, *drain*, *fail* or *recover* a node, or let *node* *join*; *scale* a
    controller to *count*, or *update* its pods to *image*.
    """

    at: float
    kind: ScenarioEventKind
    name: str
    count: int = 0
    image: str = ""
    node: VirtualNodeSpec | None = None


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is made from, apart from the scheduler."""

    name: str
    about: str = ""
    images: tuple[Image, ...] = ()
    layer_names: dict[Digest, str] = {}
    """What the scenario calls its layers, for whoever shows them to people."""
    nodes: tuple[VirtualNodeSpec, ...] = ()
    arrivals: tuple[PodArrival, ...] = ()
    """In the order they come."""
    happenings: tuple[ScenarioEvent, ...] = ()
    """In the order they come."""
    controllers: tuple[ControllerSpec, ...] = ()
    """In the order they are created."""
    registry: float = 0.0
    """Bytes per second that all nodes together can download; 0: not limited."""
    uplinks: dict[str, float] = {}
    """Bytes per second of links that nodes share on their way to the registry."""
    delays: Delays = Delays()
    usage: UsageSpec | None = None
    """How the use of nodes is measured and told to the scheduler; None: it is not."""
    profile: str = ""
    """The profile it asks for; traces and summaries of a run are labelled with it."""
    until: float | None = None
    """When the run ends at the latest."""
    notes: tuple[str, ...] = ()
    """What was left out or taken differently than imported files say, for whoever shows the scenario to people."""

    def under(self, profile: str) -> "Scenario":
        """Return the same scenario for a run under another profile."""
        return msgspec.structs.replace(self, profile=profile)
