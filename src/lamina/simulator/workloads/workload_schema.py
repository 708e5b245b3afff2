"""The shape of `workload` and `catalog` in a scenario file: pods and images that are drawn instead of listed."""

from typing import Annotated, Literal

import msgspec

from lamina.simulator.workloads.field_types import Duration, Name, Quantity
from lamina.simulator.workloads.generated_catalog import MOST_IMAGES

Seed = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Burst = Annotated[int, msgspec.Meta(ge=1, le=100_000)]
Replicas = Annotated[int, msgspec.Meta(ge=0, le=100_000)]
Weight = Annotated[float, msgspec.Meta(ge=0, le=1e12)]


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What all parts have in common."""


class GenerateEntry(_Part, frozen=True, kw_only=True):
    """A catalog that is generated; the same for every seed of a run, so that runs can be compared."""

    images: Annotated[int, msgspec.Meta(ge=1, le=MOST_IMAGES)]
    seed: Seed = 0


class CatalogEntry(_Part, frozen=True, kw_only=True):
    """A catalog that is no file."""

    generate: GenerateEntry


class ArrivalsEntry(_Part, frozen=True, kw_only=True):
    """How often pods come: *every* so often on average, or as often as a *load* of the cluster takes."""

    every: Duration | None = None
    load: Annotated[float, msgspec.Meta(gt=0, le=100)] | None = None


class WorkloadPopularityEntry(_Part, frozen=True, kw_only=True):
    """
    How unequally pods are spread over applications.

    By Zipf's law with this exponent (unset: 1) in an order that is drawn, or by *weights* in the order of the catalog;
    applications without a weight get no pods.
    """

    zipf: Annotated[float, msgspec.Meta(ge=0, le=10)] | None = None
    weights: Annotated[tuple[Weight, ...], msgspec.Meta(max_length=MOST_IMAGES)] = ()


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


class DiurnalEntry(_Part, frozen=True, kw_only=True):
    """How the rate of arrivals goes up and down in a *period*, by *depth* of its mean; it begins at the mean, rising."""

    period: Duration = "24h"
    depth: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.8


class RolloutsEntry(_Part, frozen=True, kw_only=True):
    """
    Deployments beside the pods, one each of so many applications (fewer if fewer have a next version).

    They are there from the beginning, with *of* replicas at least and at most. *Every* so often on average one of them
    goes to its next version, *count* times (unset: until the last pod of the stream has come), a share of its replicas
    (*batches*) at a time; the next ones follow when the new ones have run for *pause*.
    """

    deployments: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 10
    of: tuple[Replicas, Replicas]
    every: Duration
    count: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] | None = None
    batches: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.25
    pause: Duration = 0


class ServerlessEntry(_Part, frozen=True, kw_only=True):
    """
    Requests instead of pods: arrivals and durations are those of requests, applications are functions.

    A pod serves *concurrency* requests at once and is kept while it has work and for *idle* afterwards. It ends after so
    many *requests*; what would need more pods than the workload's own number is lost.
    """

    requests: Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]
    idle: Duration = "5m"
    concurrency: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 1


class WorkloadEntry(_Part, frozen=True, kw_only=True):
    """A stream of pods, called name1, name2 and so on."""

    name: Name = "w"
    pods: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
    at: Duration = 0
    arrivals: ArrivalsEntry
    popularity: WorkloadPopularityEntry = WorkloadPopularityEntry()
    duration: DurationEntry
    cpu: Annotated[tuple[CpuEntry, ...], msgspec.Meta(min_length=1, max_length=100)]
    memory_per_cpu: Quantity = "2Gi"
    bursts: BurstsEntry | None = None
    diurnal: DiurnalEntry | None = None
    rollouts: RolloutsEntry | None = None
    serverless: ServerlessEntry | None = None
    updates: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0
    scheduler: str = ""
