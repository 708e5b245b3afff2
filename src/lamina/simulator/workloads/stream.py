"""
A stream of pods, drawn from a seed: which application comes when, in which version, how large and for how long.

Applications have ranks in an order of their own, and pods are spread over them by Zipf's law: the one with rank r gets
a share proportional to r to the power of -s. Each kind of luck has a generator of its own, so that a change to one
part of a workload leaves the others as they were: the same arrivals with twice as many updates.
"""

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator
from random import Random
from typing import Final, Literal

import msgspec

from lamina.model.pod import Container, Owner, Pod, PodUid, total_requests
from lamina.model.resources import Amounts
from lamina.simulator.workloads.scenario import Arrival

Spread = Literal["exponential", "lognormal", "fixed"]

SIGMA: Final = 1.0
"""Of lognormal durations: one in six runs for 1.6 times the mean or longer, half of them for less than 0.61 of it."""
DECIMALS: Final = 6
"""Times are drawn to the microsecond."""
CONTROLLER: Final = "ReplicaSet"


class Application(msgspec.Struct, frozen=True):
    """One repository: the names of its images in the order of the catalogue, each the next version."""

    name: str
    images: tuple[str, ...]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is drawn from, in plain numbers; `planning` makes one from what a file says."""

    name: str
    pods: int
    at: float
    every: float
    """Mean seconds between arrivals; with bursts, between bursts."""
    zipf: float
    mean: float
    spread: Spread
    requests: tuple[tuple[Amounts, float], ...]
    """What pods ask for, and how often."""
    burst: tuple[int, int] = (1, 1)
    grouped: bool = False
    """Whether the pods of a burst have an owner of their own, not that of their application."""
    updates: int = 0
    scheduler: str = ""
    applications: tuple[Application, ...]

    def names(self) -> list[str]:
        """List the names the pods will have."""
        return [f"{self.name}{number}" for number in range(1, self.pods + 1)]


class _Call(msgspec.Struct, frozen=True):
    """A pod to be: when, of which application, with whom."""

    at: float
    rank: int
    burst: int


class _Lottery:
    """Draws numbers by their weights."""

    def __init__(self, weights: Iterable[float]) -> None:
        self._weights = list(weights)
        self._cumulative = list(itertools.accumulate(self._weights))

    def leave_out(self, number: int) -> None:
        self._weights[number] = 0.0
        self._cumulative = list(itertools.accumulate(self._weights))

    def draw(self, dice: Random) -> int:
        while True:
            number = bisect.bisect(self._cumulative, dice.random() * self._cumulative[-1])
            # By a rounding the draw may land on the very end, behind the last number that counts.
            if number < len(self._weights) and self._weights[number]:
                return number


class Stream:
    """The pods of a plan under one seed."""

    def __init__(self, plan: Plan, seed: int) -> None:
        """Shuffle the applications."""
        self._plan = plan
        self._seed = seed
        self.ranked = list(plan.applications)
        """The most popular first."""
        self._dice("ranks").shuffle(self.ranked)
        self._weights = [rank**-plan.zipf for rank in range(1, len(self.ranked) + 1)]
        self._built: dict[tuple[str, Amounts], Pod] = {}

    def arrivals(self) -> list[Arrival]:
        """Draw all pods, in the order they come."""
        calls = list(itertools.islice(self._calls(), self._plan.pods))
        updates = self._updates(calls[0].at, calls[-1].at)[::-1]
        version = [0] * len(self.ranked)
        asked, lasting = self._dice("requests"), self._dice("durations")
        requests, shares = zip(*self._plan.requests, strict=True)
        shares = tuple(itertools.accumulate(shares))
        drawn: list[Arrival] = []
        for name, call in zip(self._plan.names(), calls, strict=True):
            while updates and updates[-1][0] <= call.at:
                version[updates.pop()[1]] += 1
            amounts = asked.choices(requests, cum_weights=shares)[0]
            pod = self._pod(name, call, version[call.rank], amounts)
            drawn.append(Arrival(call.at, pod, self._duration(lasting)))
        return drawn

    def _dice(self, what: str) -> Random:
        return Random(f"{what} {self._seed}")

    def _calls(self) -> Iterator[_Call]:
        gaps, sizes, popular = self._dice("arrivals"), self._dice("bursts"), self._dice("applications")
        popularity = _Lottery(self._weights)
        at = self._plan.at
        for burst in itertools.count(1):
            at += gaps.expovariate(1 / self._plan.every)
            rank = popularity.draw(popular)
            for _ in range(sizes.randint(*self._plan.burst)):
                yield _Call(round(at, DECIMALS), rank, burst)

    def _updates(self, first: float, last: float) -> list[tuple[float, int]]:
        """Draw when which application moves on, of those that have somewhere to move."""
        dice = self._dice("updates")
        times = sorted(dice.uniform(first, last) for _ in range(self._plan.updates))
        left = [len(application.images) - 1 for application in self.ranked]
        lottery = _Lottery(weight if more else 0.0 for weight, more in zip(self._weights, left, strict=True))
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

    def _pod(self, name: str, call: _Call, version: int, amounts: Amounts) -> Pod:
        application = self.ranked[call.rank]
        image = application.images[version]
        if (image, amounts) not in self._built:
            containers = (Container(image, amounts),)
            requests, ranked = total_requests(containers)
            self._built[image, amounts] = Pod(
                uid=PodUid(name),
                name=name,
                containers=containers,
                requests=requests,
                scoring_requests=ranked,
                labels={"app": application.name},
                scheduler_name=self._plan.scheduler,
                owner=Owner(CONTROLLER, application.name, application.name),
            )
        pod = self._built[image, amounts]
        owner = pod.owner
        if self._plan.grouped:
            group = f"{application.name}-{call.burst}"
            owner = Owner(CONTROLLER, group, group)
        return msgspec.structs.replace(pod, uid=PodUid(name), name=name, created_at=call.at, owner=owner)
