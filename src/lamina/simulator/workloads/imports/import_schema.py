"""
The shape of one entry under `imports`, the context that an import reader receives, and the result it returns.

An entry names exactly one kind of file. Its options stand beside the kind, and most kinds accept only some of them;
`dispatch` lists which.
"""

from typing import Annotated, Any, Literal, Protocol

import msgspec

from lamina.model.errors import Mistake
from lamina.model.image import Image
from lamina.simulator.cluster import VirtualNodeSpec
from lamina.simulator.controllers.controller_spec import ControllerSpec
from lamina.simulator.workloads.batsim_source import BatsimSource, HostAvailability
from lamina.simulator.workloads.field_types import Bandwidth, Duration, EntryStruct, Name, Quantity, Reference
from lamina.simulator.workloads.scenario import PodArrival, ScenarioEvent, ScenarioObject

ImportCount = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
ImportNodeCount = Annotated[int, msgspec.Meta(ge=1, le=100_000)]


class GpuFiles(EntryStruct, frozen=True, kw_only=True):
    """The two tables of Alibaba's GPU trace of 2023."""

    pods: str
    nodes: str | None = None


class FunctionFiles(EntryStruct, frozen=True, kw_only=True):
    """The tables of the Azure Functions trace of 2019."""

    invocations: str
    durations: str
    memory: str | None = None


class NodesEntry(EntryStruct, frozen=True, kw_only=True):
    """Equal nodes to run the import on, called name1, name2 and so on."""

    count: ImportNodeCount
    name: Name = "node"
    cpu: Quantity = 1
    memory: Quantity = "4Gi"
    pods: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 110
    resources: dict[str, Quantity] = {}
    bandwidth: Bandwidth | None = None


class ImportPopularityEntry(EntryStruct, frozen=True, kw_only=True):
    """Popularity of images: by Zipf's law in a drawn order, or by *weights* or a table."""

    zipf: Annotated[float, msgspec.Meta(ge=0, le=10)] = 1.0
    weights: dict[str, Annotated[float, msgspec.Meta(gt=0, le=1e15)]] = {}
    """By image or repository."""
    file: str | None = None
    """A CSV table whose first column has images or repositories."""
    column: str | None = None
    """The column of that table with the weights; unset: the second."""


class ImportEntry(EntryStruct, frozen=True, kw_only=True):
    """One import: exactly one kind of file, and its options."""

    batsim: str | None = None
    swf: str | None = None
    alibaba_dlrm: str | None = None
    alibaba_gpu: GpuFiles | None = None
    azure_functions: FunctionFiles | None = None
    manifests: str | None = None
    qos_workload: str | None = None
    kube_scheduler_simulator: str | None = None
    """A snapshot or a record."""

    name: Name | None = None
    """Prefix of the names of its pods."""
    at: Duration = 0.0
    """Added to the times of the file."""
    scheduler: str = ""
    limit: ImportCount | None = None
    """Number of pods to import, the first ones; unset: all."""
    start: Duration | None = msgspec.field(default=None, name="from")
    """Where in the trace to begin; pods that run at that time arrive at the start."""
    until: Duration | None = None
    """Where in the trace to stop."""

    nodes: ImportNodeCount | NodesEntry | None = None
    platform: str | None = None
    """A SimGrid platform whose hosts become nodes."""
    cpu: Quantity | None = None
    """CPU request of a resource of a Batsim or SWF job, or of a worker of a function."""
    memory: Quantity | None = None
    speed: Annotated[float, msgspec.Meta(gt=0, le=1e21)] | None = None
    """Operations per second of a host, for profiles that count operations."""
    external_events: str | None = None
    """Batsim's file of machines that become unavailable and available again."""
    whole_nodes: bool = False
    """Pods that fill a node each, instead of one pod for each resource."""

    functions: ImportCount | None = None
    """Number of functions that are drawn from the table; unset: all."""
    minutes: Annotated[int, msgspec.Meta(ge=1, le=1440)] | None = None
    keep_alive: Duration | None = None
    """How long an idle worker waits for the next call before it ends."""

    image: Reference | None = None
    """One image for all pods."""
    popularity: ImportPopularityEntry | None = None
    unknown_images: Literal["refuse", "popularity"] = "refuse"
    """Whether an image in a manifest that the scenario does not have is a mistake, or is replaced by popularity."""

    @property
    def kinds(self) -> dict[str, Any]:
        """The kinds that the entry sets, by name; a valid entry sets one."""
        given = {name: getattr(self, field) for name, field in KINDS.items()}
        return {name: value for name, value in given.items() if value is not None}


KINDS = {
    "batsim": "batsim",
    "swf": "swf",
    "alibabaDlrm": "alibaba_dlrm",
    "alibabaGpu": "alibaba_gpu",
    "azureFunctions": "azure_functions",
    "manifests": "manifests",
    "qosWorkload": "qos_workload",
    "kubeSchedulerSimulator": "kube_scheduler_simulator",
}
"""Kinds as written in a scenario file, and their attributes."""

MOST_PODS = 1_000_000
"""Largest number of pods of one import."""


class MistakeLocation(Protocol):
    """Location of an entry for mistakes; `ScenarioEntry` implements it."""

    def mistake(self, message: str, *steps: str | int) -> Mistake:
        """Return a mistake located at the entry, or *steps* inside it."""


class ImportContext(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of the scenario that an import reader needs."""

    entry: MistakeLocation
    seed: int = 0
    images: tuple[Image, ...] = ()
    """Images that can be pulled, in the order of the catalog."""
    nodes: tuple[VirtualNodeSpec, ...] = ()
    """Nodes that the scenario has without this import; a pod that fits on no node is a mistake."""
    like: VirtualNodeSpec = VirtualNodeSpec(name="", allocatable=(), bandwidth=125_000_000.0)
    """Values of imported nodes that their file does not set: bandwidth, runtime, disk, uplink."""


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What an import adds to a scenario."""

    nodes: tuple[VirtualNodeSpec, ...] = ()
    arrivals: tuple[PodArrival, ...] = ()
    """In order of arrival."""
    controllers: tuple[ControllerSpec, ...] = ()
    objects: tuple[ScenarioObject, ...] = ()
    events: tuple[ScenarioEvent, ...] = ()
    """Changes of its controllers."""
    availability: tuple[HostAvailability, ...] = ()
    """Changes of nodes, by their numbers in the run; in order of time."""
    batsim: BatsimSource | None = None
    notes: tuple[str, ...] = ()
    """What was left out or changed, in sentences for the user."""
