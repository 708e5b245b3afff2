"""What a stream of pods is drawn from, in plain numbers; `planning` makes it from what a file says."""

from typing import Final, Literal

import msgspec

from lamina.model.pod import Container, Owner, Pod, PodUid, total_requests
from lamina.model.resources import Amounts

DurationDistribution = Literal["exponential", "lognormal", "fixed"]

CONTROLLER: Final = "ReplicaSet"


class Application(msgspec.Struct, frozen=True):
    """One repository: the names of its images in the order of the catalog, each the next version."""

    name: str
    images: tuple[str, ...]


class Diurnal(msgspec.Struct, frozen=True):
    """How the rate goes up and down: a sine around its mean, up first, by *depth* of the mean."""

    period: float
    depth: float


class Rollouts(msgspec.Struct, frozen=True, kw_only=True):
    """Deployments that are there from the start and are rolled to their next versions one after the other."""

    deployments: int
    of: tuple[int, int]
    """Replicas, at least and at most."""
    every: float
    """Mean seconds between two rollouts."""
    count: int | None = None
    """How many rollouts; None: as many as come before the last pod of the stream."""
    batch: float = 0.25
    """The share of a Deployment's replicas that is rolled at a time."""
    pause: float = 0.0
    """Seconds a new pod has to run before the rollout goes on."""


class Serverless(msgspec.Struct, frozen=True, kw_only=True):
    """Requests instead of pods: see `demand`."""

    requests: int
    idle: float
    concurrency: int = 1


class WorkloadPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything but the seed."""

    name: str
    pods: int
    at: float
    every: float
    """Mean seconds between arrivals; with bursts, between bursts."""
    zipf: float
    weights: tuple[float, ...] = ()
    """How popular each application is, in the order of the catalog; empty: by Zipf's law in an order of its own."""
    mean: float
    spread: DurationDistribution
    requests: tuple[tuple[Amounts, float], ...]
    """What pods ask for, and how often."""
    burst: tuple[int, int] = (1, 1)
    grouped: bool = False
    """Whether the pods of a burst have an owner of their own, not that of their application."""
    diurnal: Diurnal | None = None
    updates: int = 0
    rollouts: Rollouts | None = None
    serverless: Serverless | None = None
    scheduler: str = ""
    applications: tuple[Application, ...]

    def names(self) -> list[str]:
        """List the names the pods will have; with requests instead of pods, at most these."""
        return [f"{self.name}{number}" for number in range(1, self.pods + 1)]


def a_pod_of(application: Application, image: str, asked: Amounts, scheduler: str) -> Pod:
    """Return a pod of an application in one version, to be named."""
    containers = (Container(image, asked),)
    requests, ranked = total_requests(containers)
    return Pod(
        uid=PodUid(application.name),
        name=application.name,
        containers=containers,
        requests=requests,
        scoring_requests=ranked,
        labels={"app": application.name},
        scheduler_name=scheduler,
        owner=Owner(CONTROLLER, application.name, application.name),
    )
