"""The shape of `workload` and `catalog` in a scenario file: pods and images that are drawn instead of listed."""

from typing import Annotated, Literal

import msgspec

from lamina.simulator.workloads.fields import Duration, Name, Quantity
from lamina.simulator.workloads.generated_catalogue import MOST_IMAGES

Seed = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Burst = Annotated[int, msgspec.Meta(ge=1, le=100_000)]


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What all parts have in common."""


class GenerateEntry(_Part, frozen=True, kw_only=True):
    """A catalogue that is generated; the same for every seed of a run, so that runs can be compared."""

    images: Annotated[int, msgspec.Meta(ge=1, le=MOST_IMAGES)]
    seed: Seed = 0


class CatalogEntry(_Part, frozen=True, kw_only=True):
    """A catalogue that is no file."""

    generate: GenerateEntry


class ArrivalsEntry(_Part, frozen=True, kw_only=True):
    """How often pods come: *every* so often on average, or as often as a *load* of the cluster takes."""

    every: Duration | None = None
    load: Annotated[float, msgspec.Meta(gt=0, le=100)] | None = None


class PopularityEntry(_Part, frozen=True, kw_only=True):
    """How unequally pods are spread over applications."""

    zipf: Annotated[float, msgspec.Meta(ge=0, le=10)] = 1.0


class DurationEntry(_Part, frozen=True, kw_only=True):
    """How long pods run."""

    mean: Duration
    spread: Literal["exponential", "lognormal", "fixed"] = "exponential"


class CpuEntry(_Part, frozen=True, kw_only=True):
    """What a *share* of the pods asks for."""

    amount: Quantity
    share: Annotated[float, msgspec.Meta(gt=0, le=1_000_000)] = 1.0


class BurstsEntry(_Part, frozen=True, kw_only=True):
    """How many pods come at once, at least and at most."""

    of: tuple[Burst, Burst]


class WorkloadEntry(_Part, frozen=True, kw_only=True):
    """A stream of pods, called name1, name2 and so on."""

    name: Name = "w"
    pods: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
    at: Duration = 0
    arrivals: ArrivalsEntry
    popularity: PopularityEntry = PopularityEntry()
    duration: DurationEntry
    cpu: Annotated[tuple[CpuEntry, ...], msgspec.Meta(min_length=1, max_length=100)]
    memory_per_cpu: Quantity = "2Gi"
    bursts: BurstsEntry | None = None
    updates: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0
    scheduler: str = ""
