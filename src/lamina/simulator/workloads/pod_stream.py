"""
A stream of pods, drawn from a seed: which application comes when, in which version, how large and for how long.

Applications have ranks in an order of their own, and pods are spread over them by Zipf's law: the one with rank r gets
a share proportional to r to the power of -s. Weights that are given in the order of the catalog take the place of
both. Each kind of luck has a generator of its own, so that a change to one part of a workload leaves the others as they
were: the same arrivals with twice as many updates.

Arrivals are a Poisson process. With a time of day it is one whose rate goes up and down: drawn at the highest rate, each
arrival is kept with the probability of its time, so that over whole periods the mean rate is what was asked for. With
bursts, each arrival is several pods; with `demand`, arrivals are requests; `rollouts` adds Deployments that move on.
"""

import itertools
import math
from collections.abc import Iterator
from random import Random
from typing import Final

import msgspec

from lamina.model.pod import Owner, Pod, PodUid
from lamina.model.resources import Amounts
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.controllers.controller_spec import ControllerSpec
from lamina.simulator.workloads import rollouts
from lamina.simulator.workloads.scenario import PodArrival, ScenarioEvent
from lamina.simulator.workloads.serverless import NeededPod, ServerlessAutoscaler
from lamina.simulator.workloads.weighted_sampler import WeightedSampler
from lamina.simulator.workloads.workload_plan import CONTROLLER, Application, Serverless, WorkloadPlan, a_pod_of

SIGMA: Final = 1.0
"""Of lognormal durations: one in six runs for 1.6 times the mean or longer, half of them for less than 0.61 of it."""
DECIMALS: Final = 6
"""Times are drawn to the microsecond."""

__all__ = ["CONTROLLER", "Application", "DrawnWorkload", "PodStream", "WorkloadPlan"]


class DrawnWorkload(msgspec.Struct, frozen=True):
    """What a plan comes to under one seed, each in the order of time."""

    arrivals: tuple[PodArrival, ...] = ()
    controllers: tuple[ControllerSpec, ...] = ()
    happenings: tuple[ScenarioEvent, ...] = ()


class _StreamRequest(msgspec.Struct, frozen=True):
    """A pod to be, or a request: when, of which application, with whom."""

    at: float
    rank: int
    burst: int


class _Versions:
    """Which version each application has, as time goes on."""

    def __init__(self, updates: list[tuple[float, int]], applications: int) -> None:
        self._coming = updates[::-1]
        self._current = [0] * applications

    def pass_until(self, at: float) -> Iterator[int]:
        """Go on to a time; yield whose version changed."""
        while self._coming and self._coming[-1][0] <= at:
            rank = self._coming.pop()[1]
            self._current[rank] += 1
            yield rank

    def __getitem__(self, rank: int) -> int:
        return self._current[rank]


class PodStream:
    """The pods of a plan under one seed."""

    def __init__(self, plan: WorkloadPlan, seed: int) -> None:
        """Shuffle the applications, unless they have weights."""
        self._plan = plan
        self._seed = seed
        self.ranked = list(plan.applications)
        """The most popular first; with weights in the order of the catalog."""
        if plan.weights:
            self._weights = [*plan.weights, *[0.0] * (len(self.ranked) - len(plan.weights))]
        else:
            self._dice("ranks").shuffle(self.ranked)
            self._weights = [rank**-plan.zipf for rank in range(1, len(self.ranked) + 1)]
        self._built: dict[tuple[str, Amounts], Pod] = {}
        self._asked = self._dice("requests")
        self._requests, shares = zip(*plan.requests, strict=True)
        self._shares = tuple(itertools.accumulate(shares))

    def draw(self) -> DrawnWorkload:
        """Draw everything there is to the plan; once for each stream."""
        serverless = self._plan.serverless
        calls = list(itertools.islice(self._calls(), serverless.requests if serverless else self._plan.pods))
        versions = _Versions(self._updates(calls[0].at, calls[-1].at), len(self.ranked))
        arrivals = self._served(calls, versions, serverless) if serverless else self._coming(calls, versions)
        controllers, happenings = rollouts.draw_rollouts(
            self._plan, self.ranked, self._weights, calls[-1].at, self._dice
        )
        return DrawnWorkload(tuple(arrivals), tuple(controllers), tuple(happenings))

    def arrivals(self) -> list[PodArrival]:
        """Draw all and return the pods, in the order they come."""
        return list(self.draw().arrivals)

    # -- pods or requests --------------------------------------------------------------------------------------------

    def _coming(self, calls: list[_StreamRequest], versions: _Versions) -> Iterator[PodArrival]:
        lasting = self._dice("durations")
        for name, call in zip(self._plan.names(), calls, strict=True):
            for _ in versions.pass_until(call.at):
                pass
            pod = self._pod(name, call, versions[call.rank])
            yield PodArrival(call.at, pod, PodLifecycle(seconds=self._duration(lasting)))

    def _served(self, calls: list[_StreamRequest], versions: _Versions, serverless: Serverless) -> list[PodArrival]:
        lasting = self._dice("durations")
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

    # -- luck --------------------------------------------------------------------------------------------------------

    def _dice(self, what: str) -> Random:
        return Random(f"{what} {self._seed}")

    def _times(self) -> Iterator[float]:
        gaps, kept = self._dice("arrivals"), self._dice("time of day")
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
        sizes, popular = self._dice("bursts"), self._dice("applications")
        popularity = WeightedSampler(self._weights)
        for burst, at in enumerate(self._times(), 1):
            rank = popularity.draw(popular)
            for _ in range(sizes.randint(*self._plan.burst)):
                yield _StreamRequest(round(at, DECIMALS), rank, burst)

    def _updates(self, first: float, last: float) -> list[tuple[float, int]]:
        """Draw when which application moves on, of those that have somewhere to move."""
        dice = self._dice("updates")
        times = sorted(dice.uniform(first, last) for _ in range(self._plan.updates))
        left = [len(application.images) - 1 for application in self.ranked]
        lottery = WeightedSampler(weight if more else 0.0 for weight, more in zip(self._weights, left, strict=True))
        drawn: list[tuple[float, int]] = []
        for at in times:
            rank = lottery.draw(dice)
            drawn.append((at, rank))
            left[rank] -= 1
            if not left[rank]:
                lottery.leave_out(rank)
        return drawn

    def _duration(self, dice: Random) -> float:
        mean = self._plan.mean
        if self._plan.spread == "exponential":
            mean = dice.expovariate(1 / mean)
        elif self._plan.spread == "lognormal":
            mean = dice.lognormvariate(math.log(mean) - SIGMA**2 / 2, SIGMA)
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
