"""
A stream of pods drawn from a seed: which application arrives when, in which version, with which size and duration.

Applications are ranked in a drawn order. Pods are distributed over them by Zipf's law: rank r gets a share proportional
to r to the power of -s. Weights in the order of the catalog replace both. Each random quantity has its own generator,
so a change to one part of a workload does not change the others: twice as many updates leave the arrivals as they were.

Arrivals are a Poisson process. With `diurnal` its rate follows a sine: arrivals are drawn at the highest rate, and each
is kept with the probability of its time of day, so the mean rate over whole periods is the configured one. With bursts,
each arrival is several pods. With `serverless`, arrivals are requests.

Rollouts add Deployments that move to their next versions. Their applications are drawn by popularity among those that
have a next version, and so is the Deployment of each rollout. A rollout is an update event; the Deployment controller
decides which pods it removes when.
"""

import bisect
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Final, Literal

import msgspec

from lamina.model.pod import Container, Owner, Pod, PodUid, total_requests
from lamina.model.resources import Amounts
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.controllers.controller_spec import ControllerSpec
from lamina.simulator.workloads.scenario import CONTROLLER, PodArrival, ScenarioEvent
from lamina.simulator.workloads.serverless import NeededPod, ServerlessAutoscaler

DurationDistribution = Literal["exponential", "lognormal", "fixed"]


class Application(msgspec.Struct, frozen=True):
    """One repository, with the names of its images in the order of the catalog, oldest version first."""

    name: str
    images: tuple[str, ...]


class Diurnal(msgspec.Struct, frozen=True):
    """Daily variation of the arrival rate: a sine around the mean, rising first; its amplitude is *depth* × mean."""

    period: float
    depth: float


class Rollouts(msgspec.Struct, frozen=True, kw_only=True):
    """Deployments that exist from the start and move to their next versions one after the other."""

    deployments: int
    of: tuple[int, int]
    """Smallest and largest number of replicas."""
    every: float
    """Mean seconds between two rollouts."""
    count: int | None = None
    """Number of rollouts; None: until the last pod of the stream arrives."""
    batch: float = 0.25
    """Share of a Deployment's replicas that is replaced at a time."""
    pause: float = 0.0
    """Seconds that a new pod has to run before the rollout goes on."""


class Serverless(msgspec.Struct, frozen=True, kw_only=True):
    """Arrivals are requests, and `serverless` derives the pods from them."""

    requests: int
    idle: float
    concurrency: int = 1


class WorkloadPlan(msgspec.Struct, frozen=True, kw_only=True):
    """All numbers that a stream of pods is drawn from, except the seed; `workload_entries` makes it."""

    name: str
    pods: int
    at: float
    every: float
    """Mean seconds between arrivals; with bursts, between bursts."""
    zipf: float
    weights: tuple[float, ...] = ()
    """Weight of each application in the order of the catalog; empty: by Zipf's law in a drawn order."""
    mean: float
    spread: DurationDistribution
    requests: tuple[tuple[Amounts, float], ...]
    """Requests of pods, each with its weight."""
    burst: tuple[int, int] = (1, 1)
    grouped: bool = False
    """Whether each burst has its own owner, instead of one owner per application."""
    diurnal: Diurnal | None = None
    updates: int = 0
    rollouts: Rollouts | None = None
    serverless: Serverless | None = None
    scheduler: str = ""
    applications: tuple[Application, ...]

    def names(self) -> list[str]:
        """Return the names of the pods; a serverless workload may use only the first of them."""
        return [f"{self.name}{number}" for number in range(1, self.pods + 1)]


def a_pod_of(application: Application, image: str, asked: Amounts, scheduler: str) -> Pod:
    """Return a pod that runs one version of an application; the caller names it."""
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


class WeightedSampler:
    """Draws indices by weight, with the caller's generator; an index with weight 0 is never drawn."""

    def __init__(self, weights: Iterable[float]) -> None:
        """Start with the weight of each index."""
        self._weights = list(weights)
        self._cumulative = list(itertools.accumulate(self._weights))

    def __bool__(self) -> bool:
        """Whether any weight is left."""
        return bool(self._cumulative) and self._cumulative[-1] > 0

    def leave_out(self, number: int) -> None:
        """Set the weight of this index to 0."""
        self._weights[number] = 0.0
        self._cumulative = list(itertools.accumulate(self._weights))

    def draw(self, rng: Random) -> int:
        """Return a drawn index; at least one weight must be above 0."""
        while True:
            number = bisect.bisect(self._cumulative, rng.random() * self._cumulative[-1])
            # Rounding may place the draw at the very end, after the last index with a weight.
            if number < len(self._weights) and self._weights[number]:
                return number


SIGMA: Final = 1.0
"""Sigma of lognormal durations: a sixth of them is above 1.6 times the mean, half of them below 0.61 times."""
DECIMALS: Final = 6
"""Times are rounded to microseconds."""


class DrawnWorkload(msgspec.Struct, frozen=True):
    """Pods, controllers and events drawn from a plan with one seed, each in order of time."""

    arrivals: tuple[PodArrival, ...] = ()
    controllers: tuple[ControllerSpec, ...] = ()
    events: tuple[ScenarioEvent, ...] = ()


class _StreamRequest(msgspec.Struct, frozen=True):
    """One arrival of a pod or request: time, rank of its application, number of its burst."""

    at: float
    rank: int
    burst: int


class _Versions:
    """Current version of each application; time only moves forward."""

    def __init__(self, updates: list[tuple[float, int]], applications: int) -> None:
        self._coming = updates[::-1]
        self._current = [0] * applications

    def pass_until(self, at: float) -> Iterator[int]:
        """Apply the updates up to *at*; yield the rank of each application that got a new version."""
        while self._coming and self._coming[-1][0] <= at:
            rank = self._coming.pop()[1]
            self._current[rank] += 1
            yield rank

    def __getitem__(self, rank: int) -> int:
        return self._current[rank]


class PodStream:
    """Draws the pods of a plan with one seed."""

    def __init__(self, plan: WorkloadPlan, seed: int) -> None:
        """Rank the applications: in a drawn order, or by the weights of the plan."""
        self._plan = plan
        self._seed = seed
        self.ranked = list(plan.applications)
        """Applications, the most popular first; with weights, in the order of the catalog."""
        if plan.weights:
            self._weights = [*plan.weights, *[0.0] * (len(self.ranked) - len(plan.weights))]
        else:
            self._generator("ranks").shuffle(self.ranked)
            self._weights = [rank**-plan.zipf for rank in range(1, len(self.ranked) + 1)]
        self._built: dict[tuple[str, Amounts], Pod] = {}
        self._asked = self._generator("requests")
        self._requests, shares = zip(*plan.requests, strict=True)
        self._shares = tuple(itertools.accumulate(shares))

    def draw(self) -> DrawnWorkload:
        """Return all that the plan describes; call it once per stream."""
        serverless = self._plan.serverless
        calls = list(itertools.islice(self._calls(), serverless.requests if serverless else self._plan.pods))
        versions = _Versions(self._updates(calls[0].at, calls[-1].at), len(self.ranked))
        arrivals = self._served(calls, versions, serverless) if serverless else self._coming(calls, versions)
        controllers, events = draw_rollouts(self._plan, self.ranked, self._weights, calls[-1].at, self._generator)
        return DrawnWorkload(tuple(arrivals), tuple(controllers), tuple(events))

    def arrivals(self) -> list[PodArrival]:
        """Return only the pods of `draw`, in order of arrival."""
        return list(self.draw().arrivals)

    # -- pods or requests --------------------------------------------------------------------------------------------

    def _coming(self, calls: list[_StreamRequest], versions: _Versions) -> Iterator[PodArrival]:
        lasting = self._generator("durations")
        for name, call in zip(self._plan.names(), calls, strict=True):
            for _ in versions.pass_until(call.at):
                pass
            pod = self._pod(name, call, versions[call.rank])
            yield PodArrival(call.at, pod, PodLifecycle(seconds=self._duration(lasting)))

    def _served(self, calls: list[_StreamRequest], versions: _Versions, serverless: Serverless) -> list[PodArrival]:
        lasting = self._generator("durations")
        demand = ServerlessAutoscaler(serverless.idle, serverless.concurrency)
        names = iter(self._plan.names())
        needed: list[tuple[NeededPod, Pod]] = []
        for call in calls:
            for rank in versions.pass_until(call.at):
                demand.retire(rank)
            pod = demand.serve(call.rank, call.at, self._duration(lasting), may_grow=len(needed) < self._plan.pods)
            if pod is not None:
                needed.append((pod, self._pod(next(names), call, versions[call.rank])))
        return [
            PodArrival(one.at, pod, PodLifecycle(seconds=round(demand.seconds(one), DECIMALS))) for one, pod in needed
        ]

    # -- random draws --------------------------------------------------------------------------------------------------

    def _generator(self, what: str) -> Random:
        return Random(f"{what} {self._seed}")

    def _times(self) -> Iterator[float]:
        gaps, kept = self._generator("arrivals"), self._generator("time of day")
        at, diurnal = self._plan.at, self._plan.diurnal
        if diurnal is None:
            while True:
                at += gaps.expovariate(1 / self._plan.every)
                yield at
        highest = 1 + diurnal.depth
        while True:
            at += gaps.expovariate(highest / self._plan.every)
            turn = 2 * math.pi * (at - self._plan.at) / diurnal.period
            if kept.random() * highest < 1 + diurnal.depth * math.sin(turn):
                yield at

    def _calls(self) -> Iterator[_StreamRequest]:
        sizes, popular = self._generator("bursts"), self._generator("applications")
        popularity = WeightedSampler(self._weights)
        for burst, at in enumerate(self._times(), 1):
            rank = popularity.draw(popular)
            for _ in range(sizes.randint(*self._plan.burst)):
                yield _StreamRequest(round(at, DECIMALS), rank, burst)

    def _updates(self, first: float, last: float) -> list[tuple[float, int]]:
        """Return times and ranks of updates, drawn among the applications that have a next version."""
        rng = self._generator("updates")
        times = sorted(rng.uniform(first, last) for _ in range(self._plan.updates))
        left = [len(application.images) - 1 for application in self.ranked]
        sampler = WeightedSampler(weight if more else 0.0 for weight, more in zip(self._weights, left, strict=True))
        drawn: list[tuple[float, int]] = []
        for at in times:
            rank = sampler.draw(rng)
            drawn.append((at, rank))
            left[rank] -= 1
            if not left[rank]:
                sampler.leave_out(rank)
        return drawn

    def _duration(self, rng: Random) -> float:
        mean = self._plan.mean
        if self._plan.spread == "exponential":
            mean = rng.expovariate(1 / mean)
        elif self._plan.spread == "lognormal":
            mean = rng.lognormvariate(math.log(mean) - SIGMA**2 / 2, SIGMA)
        return round(mean, DECIMALS)

    def _pod(self, name: str, call: _StreamRequest, version: int) -> Pod:
        amounts = self._asked.choices(self._requests, cum_weights=self._shares)[0]
        application = self.ranked[call.rank]
        image = application.images[version]
        pod = self._built.get((image, amounts))
        if pod is None:
            pod = self._built[image, amounts] = a_pod_of(application, image, amounts, self._plan.scheduler)
        owner = pod.owner
        if self._plan.grouped:
            group = f"{application.name}-{call.burst}"
            owner = Owner(CONTROLLER, group, group)
        return msgspec.structs.replace(pod, uid=PodUid(name), name=name, created_at=call.at, owner=owner)


DrawnRollouts = tuple[list[ControllerSpec], list[ScenarioEvent]]


def draw_rollouts(
    plan: WorkloadPlan, ranked: list[Application], weights: list[float], last: float, generator: Callable[[str], Random]
) -> DrawnRollouts:
    """Return the drawn Deployments of a plan and their updates until *last*; *weights* belong to *ranked*."""
    rollouts = plan.rollouts
    if rollouts is None:
        return [], []
    chosen = _chosen(ranked, weights, rollouts.deployments, generator("deployments"))
    names = [f"{plan.name}-{ranked[rank].name}" for rank in chosen]
    sizes, asked = generator("replicas"), generator("deployment requests")
    amounts, shares = zip(*plan.requests, strict=True)
    specs = [
        ControllerSpec(
            kind="Deployment",
            name=name,
            at=plan.at,
            template=a_pod_of(ranked[rank], ranked[rank].images[0], asked.choices(amounts, shares)[0], plan.scheduler),
            replicas=sizes.randint(*rollouts.of),
            surge=rollouts.batch,
            unavailable=0,
            min_ready=rollouts.pause,
        )
        for rank, name in zip(chosen, names, strict=True)
    ]
    events: list[ScenarioEvent] = []
    current = [0] * len(chosen)
    sampler, rng = WeightedSampler(weights[rank] for rank in chosen), generator("rollouts")
    for at in _times(rollouts, plan.at, last, generator("rollout times")):
        if not sampler:
            break
        number = sampler.draw(rng)
        images = ranked[chosen[number]].images
        current[number] += 1
        events.append(ScenarioEvent(round(at, 6), "update", names[number], image=images[current[number]]))
        if current[number] == len(images) - 1:
            sampler.leave_out(number)
    return specs, events


def _chosen(ranked: list[Application], weights: list[float], count: int, rng: Random) -> list[int]:
    sampler = WeightedSampler(
        weight if len(one.images) > 1 else 0.0 for one, weight in zip(ranked, weights, strict=True)
    )
    chosen: list[int] = []
    while sampler and len(chosen) < count:
        chosen.append(sampler.draw(rng))
        sampler.leave_out(chosen[-1])
    return chosen


def _times(rollouts: Rollouts, at: float, last: float, rng: Random) -> Iterator[float]:
    for number in itertools.count():
        at += rng.expovariate(1 / rollouts.every)
        if number == rollouts.count or (rollouts.count is None and at > last):
            return
        yield at
