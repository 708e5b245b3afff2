"""
The shape of one of the `imports` of a scenario file: which file of which kind, and how it is to be taken.

Exactly one kind is said. Options stand beside it, and most kinds know only some of them; `options` says which.
"""

from typing import Annotated, Any, Literal

import msgspec

from lamina.simulator.workloads.field_types import Bandwidth, Duration, Name, Quantity, Reference

ImportCount = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
ImportNodeCount = Annotated[int, msgspec.Meta(ge=1, le=100_000)]


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What all parts have in common."""


class GpuFiles(_Part, frozen=True, kw_only=True):
    """The two tables of Alibaba's GPU trace of 2023."""

    pods: str
    nodes: str | None = None


class FunctionFiles(_Part, frozen=True, kw_only=True):
    """The tables of the Azure Functions trace of 2019."""

    invocations: str
    durations: str
    memory: str | None = None


class NodesEntry(_Part, frozen=True, kw_only=True):
    """Equal nodes to run it on, called name1, name2 and so on."""

    count: ImportNodeCount
    name: Name = "node"
    cpu: Quantity = 1
    memory: Quantity = "4Gi"
    pods: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 110
    resources: dict[str, Quantity] = {}
    bandwidth: Bandwidth | None = None


class ImportPopularityEntry(_Part, frozen=True, kw_only=True):
    """Which images are popular: by luck and Zipf's law, or as *weights* or a table say."""

    zipf: Annotated[float, msgspec.Meta(ge=0, le=10)] = 1.0
    weights: dict[str, Annotated[float, msgspec.Meta(gt=0, le=1e15)]] = {}
    """By image or repository."""
    file: str | None = None
    """A CSV table whose first column has images or repositories."""
    column: str | None = None
    """The column of that table with the weights; unset: the second."""


class ImportEntry(_Part, frozen=True, kw_only=True):
    """One import."""

    batsim: str | None = None
    alibaba_dlrm: str | None = None
    alibaba_gpu: GpuFiles | None = None
    azure_functions: FunctionFiles | None = None
    manifests: str | None = None

    name: Name | None = None
    """What the names of its pods begin with."""
    at: Duration = 0
    """Added to the times of the file."""
    scheduler: str = ""
    limit: ImportCount | None = None
    """Only so many pods, the first ones."""
    start: Duration | None = msgspec.field(default=None, name="from")
    """Seconds of the trace that are left out; what was there before is there from the start."""
    until: Duration | None = None
    """Where in the trace to stop."""

    nodes: ImportNodeCount | NodesEntry | None = None
    platform: str | None = None
    """A SimGrid platform whose hosts become nodes."""
    cpu: Quantity | None = None
    """What a resource of a Batsim job, or a worker of a function, asks for."""
    memory: Quantity | None = None
    speed: Annotated[float, msgspec.Meta(gt=0, le=1e21)] | None = None
    """Operations per second of a host, for profiles that count in them."""
    whole_nodes: bool = False
    """Pods that fill a node each, instead of one pod for each resource."""

    functions: ImportCount | None = None
    """How many functions are drawn from the table."""
    minutes: Annotated[int, msgspec.Meta(ge=1, le=1440)] | None = None
    keep_alive: Duration | None = None
    """How long a worker waits for the next call before it ends."""

    image: Reference | None = None
    """One image for all pods."""
    popularity: ImportPopularityEntry | None = None
    unknown_images: Literal["refuse", "popularity"] = "refuse"
    """What becomes of an image in a manifest that the scenario does not have."""

    @property
    def kinds(self) -> dict[str, Any]:
        """What it says to read, by the name of the kind; there should be one."""
        said = {name: getattr(self, field) for name, field in KINDS.items()}
        return {name: value for name, value in said.items() if value is not None}


KINDS = {
    "batsim": "batsim",
    "alibabaDlrm": "alibaba_dlrm",
    "alibabaGpu": "alibaba_gpu",
    "azureFunctions": "azure_functions",
    "manifests": "manifests",
}
"""Each kind as it is written, and the field that has it."""
