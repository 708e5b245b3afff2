"""
Seventeen clusters for comparing placement policies, on real catalogs.

Catalogs, the applications' lifetimes of scenario 6 and the popularity of functions are real. Other arrivals, durations,
requests and the mapping from application to image are drawn from the seed alone: every profile gets the same pods at
the same times. Called by policy.py; independent of profiles.
"""

import csv
import gzip
import itertools
import math
import random
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

import msgspec

from _real_data import (
    APPLICATIONS,
    FUNCTIONS,
    OFFICIAL,
    PUBLIC,
    SNAPSHOT,
    distinct,
    machine_learning,
    official,
    one_of_each,
    public,
    snapshot,
)
from lamina.model.image import Image
from lamina.model.pod import Container, Owner, Pod, PodUid, total_requests
from lamina.model.resources import CPU, MEMORY, PODS
from lamina.simulator.cluster import Delays, VirtualNodeSpec
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.pulls.runtime_spec import DiskSpec, RuntimeSpec
from lamina.simulator.workloads import PodArrival, Scenario, ScenarioEvent

NEEDED = (*PUBLIC, *OFFICIAL, *SNAPSHOT, *APPLICATIONS, *FUNCTIONS)

GB = 10**9
GIB = 1024**3
MBIT = 125_000.0
DAY = 86_400.0
FAST = 100e6
"""Bytes per second: 0.8 Gbit/s."""

RUNTIME = RuntimeSpec(slots=1, unpack_rate=100e6, layer_overhead=0.04, ratio=2.3, reuse="set")
"""One image and one layer at a time, in order; one thread unpacks during later downloads; blobs are kept."""
DELAYS = Delays(report=1.0, report_gap=10.0, status=(10.0, 20.0, 30.0, 40.0), start=0.5)

Sizes = tuple[tuple[float, float], ...]
"""Cpu requests, and the relative number of pods with each."""
LARGE: Sizes = ((1, 4), (2, 3), (4, 1))
MIDDLE: Sizes = ((0.5, 4), (1, 3), (2, 1))
SMALL: Sizes = ((0.25, 4), (0.5, 3), (1, 1))


def nodes(count: int, cpu: int, disk: int, rate: Callable[[int], float]) -> tuple[VirtualNodeSpec, ...]:
    """Return *count* equal nodes; GC counts bytes really freed, and removes all unused images if needed."""
    spec = DiskSpec(capacity=disk * GB, accounting="real", evict_below=0.05, evict_every=1.0)
    amounts = ((CPU, cpu * 1000), (MEMORY, cpu * 4 * GIB), (PODS, 1000))
    return tuple(
        VirtualNodeSpec(name=f"n{number}", allocatable=amounts, bandwidth=rate(number), runtime=RUNTIME, disk=spec)
        for number in range(1, count + 1)
    )


def steady(rate: float) -> Callable[[int], float]:
    """Give every node the same link."""
    return lambda _number: rate


class Dice:
    """One random stream for each kind of draw, so that they do not affect each other."""

    def __init__(self, name: str, seed: int) -> None:
        self.images, self.arrivals, self.lasting, self.sizes, self.choice = (
            random.Random(f"{name}/{seed}/{kind}") for kind in ("images", "arrivals", "lasting", "sizes", "choice")
        )


def a_pod(name: str, image: Image, cpu: float, at: float, owner: str = "", memory: float = 0.0) -> Pod:
    """Return a pod of one container that requests *cpu*, and 2 GiB of memory per cpu."""
    amounts = ((CPU, round(cpu * 1000)), (MEMORY, round((memory or cpu * 2) * GIB)))
    containers = (Container(image.names[0], amounts),)
    requests, ranked = total_requests(containers)
    return Pod(
        uid=PodUid(name),
        name=name,
        containers=containers,
        requests=requests,
        scoring_requests=ranked,
        scheduler_name="",
        labels={"app": owner} if owner else {},
        owner=Owner("ReplicaSet", owner, owner) if owner else None,
        created_at=at,
    )


def zipf(count: int, power: float) -> list[float]:
    """Return weights that fall with the rank."""
    return list(itertools.accumulate(rank**-power for rank in range(1, count + 1)))


def mean_cpu(sizes: Sizes) -> float:
    """Return the mean cpu request of a pod."""
    return sum(cpu * share for cpu, share in sizes) / sum(share for _, share in sizes)


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """The demand on a cluster."""

    pods: int
    capacity: float
    """Cpu of all nodes together."""
    load: float
    """Share of the capacity that is requested on average."""
    mean: float
    """Mean run time of pods in seconds."""
    sizes: Sizes = LARGE
    lognormal: bool = False
    burst: tuple[int, int] | None = None


def stream(dice: Dice, demand: Demand, images: Callable[[float], Image]) -> tuple[PodArrival, ...]:
    """Draw pods; *images* returns the image of a pod that arrives at a time."""
    mean, sizes, burst = demand.mean, demand.sizes, demand.burst
    together = 1.0 if burst is None else (burst[0] + burst[1]) / 2
    gap = mean * mean_cpu(sizes) * together / (demand.load * demand.capacity)
    drawn: list[PodArrival] = []
    at = 0.0
    for number in itertools.count():
        at += dice.arrivals.expovariate(1 / gap)
        image, owner = images(at), f"burst-{number}" if burst else ""
        cpu = dice.sizes.choices([one for one, _ in sizes], [share for _, share in sizes])[0]
        for _ in range(dice.arrivals.randint(*burst) if burst else 1):
            seconds = (
                dice.lasting.lognormvariate(math.log(mean) - 0.5, 1.0)
                if demand.lognormal
                else dice.lasting.expovariate(1 / mean)
            )
            pod = a_pod(f"p{len(drawn)}", image, cpu, round(at, 3), owner)
            drawn.append(PodArrival(round(at, 3), pod, PodLifecycle(seconds=round(seconds, 3))))
            if len(drawn) == demand.pods:
                return tuple(drawn)
    raise AssertionError("itertools.count does not end")


def popular(dice: Dice, images: list[Image], weights: list[float]) -> Callable[[float], Image]:
    """Choose images by popularity; ranks are in random order."""
    ranked = dice.images.sample(images, len(images))
    return lambda _at: dice.choice.choices(ranked, cum_weights=weights[: len(ranked)])[0]


# -- the scenarios ---------------------------------------------------------------------------------------------------


def mixed(name: str, seed: int, folder: Path, load: float, burst: tuple[int, int] | None = None) -> Scenario:
    """1a to 1d: one image each of 400 public repositories."""
    dice = Dice(name[0], seed)
    images = one_of_each(_public(folder), 400, dice.images)
    choose = popular(dice, images, zipf(len(images), 1.0))
    arrivals = stream(dice, Demand(pods=20_000, capacity=1600, load=load, mean=600, burst=burst), choose)
    return _scenario(name, images, nodes(100, 16, 100, steady(FAST)), arrivals)


def learning(name: str, seed: int, folder: Path, load: float, disk: int) -> Scenario:
    """2a and 2b: machine learning images, two of a repository where there are two."""
    dice = Dice(name[0], seed)
    chosen = {repo: found for repo, found in _public(folder).items() if repo in _learning(folder)}
    pairs = [dice.images.sample(found, min(len(found), 3)) for _, found in sorted(chosen.items())]
    images = distinct(list(itertools.chain(*pairs)))[:186]
    choose = popular(dice, images, zipf(len(images), 0.9))
    arrivals = stream(dice, Demand(pods=8_000, capacity=960, load=load, mean=1800), choose)
    return _scenario(name, images, nodes(60, 16, disk, steady(FAST)), arrivals)


def churn(name: str, seed: int, folder: Path, updates: int) -> Scenario:
    """3a to 3c: official images with a history, whose tags move on during the run."""
    dice = Dice(name[0], seed)
    histories = _histories(folder)
    ranked = dice.images.sample(histories, len(histories))
    weights = zipf(len(ranked), 1.0)
    pods, mean, load = 20_000, 600, 0.6
    horizon = pods * mean * mean_cpu(MIDDLE) / (load * 960)
    moves = sorted(dice.images.uniform(0, horizon) for _ in range(updates))
    version = [0] * len(ranked)
    following = iter([*moves, math.inf])
    due = [next(following)]

    def choose(at: float) -> Image:
        while due[0] <= at:
            due[0] = next(following)
            left = [rank for rank, images in enumerate(ranked) if version[rank] + 1 < len(images)]
            if left:
                version[dice.images.choices(left, [1 / (rank + 1) for rank in left])[0]] += 1
        rank = dice.choice.choices(range(len(ranked)), cum_weights=weights)[0]
        return ranked[rank][version[rank]]

    demand = Demand(pods=pods, capacity=960, load=load, mean=mean, sizes=MIDDLE)
    arrivals = stream(dice, demand, choose)
    images = distinct([image for history in histories for image in history])
    return _scenario(name, images, nodes(60, 16, 20, steady(FAST)), arrivals)


def rolling(name: str, seed: int, folder: Path) -> Scenario:
    """3d: deployments of 2 to 45 replicas, replaced a quarter at a time every 20 s, 4 to 14 versions each."""
    dice = Dice(name[0], seed)
    histories = [images for images in _histories(folder) if len(images) >= 14]
    arrivals: list[PodArrival] = []
    events: list[ScenarioEvent] = []
    for number, history in enumerate(dice.images.sample(histories, 32)):
        replicas, versions = dice.sizes.randint(2, 45), dice.sizes.randint(4, 14)
        cpu = dice.sizes.choices([one for one, _ in LARGE], [share for _, share in MIDDLE])[0] * 0.55
        quarter = max(1, math.ceil(replicas / 4))
        begin = dice.arrivals.uniform(0, 600)
        for version in range(versions):
            for index in range(replicas):
                at = round(begin + 20.0 * (index // quarter), 3)
                name_of = f"d{number}-v{version}-{index}"
                pod = a_pod(name_of, history[version], round(cpu, 2), at, f"d{number}")
                arrivals.append(PodArrival(at, pod))
                if version:
                    # The one it replaces goes when it has had its time to come up.
                    events.append(ScenarioEvent(at + 20.0, "remove", f"d{number}-v{version - 1}-{index}"))
            begin += 120.0 + dice.arrivals.expovariate(1 / 480.0)
    arrivals.sort(key=lambda arrival: arrival.at)
    events.sort(key=lambda happening: happening.at)
    images = distinct([image for history in histories for image in history])
    return _scenario(name, images, nodes(70, 16, 20, steady(FAST)), tuple(arrivals), tuple(events))


def serverless(name: str, seed: int, folder: Path, pods: int, mean: float) -> Scenario:
    """4a and 4b: short pods, functions as popular as on one day of 2019."""
    dice = Dice(name[0], seed)
    everything = [image for _, found in sorted(_snapshot(folder).items()) for image in found]
    images = distinct(dice.images.sample(everything, 600))
    counts = sorted(_calls(folder), reverse=True)
    weights = list(itertools.accumulate(max(1, count) ** 0.6 for count in counts))
    choose = popular(dice, images, weights)
    demand = Demand(pods=pods, capacity=800, load=0.6, mean=mean, sizes=SMALL, lognormal=True)
    arrivals = stream(dice, demand, choose)
    return _scenario(name, images, nodes(50, 16, 40, steady(FAST)), arrivals)


def edge(name: str, seed: int, folder: Path, size: tuple[int, int, int], *, from_public: bool) -> Scenario:
    """5a and 5b: small nodes behind links of 50 to 100 Mbit/s; *size* is nodes, pods and GB of disk."""
    count, pods, disk = size
    dice = Dice(name[0], seed)
    # An image has to fit unpacked on a small disk, beside others.
    source = _public(folder) if from_public else _snapshot(folder)
    small = {repo: [one for one in found if one.size * 3.3 < 0.5 * disk * GB] for repo, found in source.items()}
    small = {repo: found for repo, found in small.items() if found}
    if from_public:
        images = one_of_each(small, 200, dice.images)
    else:
        images = distinct(dice.images.sample([one for _, found in sorted(small.items()) for one in found], 200))
    choose = popular(dice, images, zipf(len(images), 1.0))
    links = [dice.images.uniform(50, 100) * MBIT for _ in range(count)]
    demand = Demand(pods=pods, capacity=4 * count, load=0.6, mean=600, sizes=SMALL)
    arrivals = stream(dice, demand, choose)
    return _scenario(name, images, nodes(count, 4, disk, lambda number: links[number - 1]), arrivals)


def recommendation(name: str, seed: int, folder: Path) -> Scenario:
    """
    6: a month of recommendation models: real applications, requests and lifetimes; nodes for a peak load of 0.7.

    Pods that existed before the trace begins arrive during the day before.
    """
    dice = Dice(name[0], seed)
    with gzip.open(folder / APPLICATIONS[0], "rt", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    apps = list(dict.fromkeys(row["app_name"] for row in rows))
    images = one_of_each(_public(folder), len(apps), dice.images)
    image_of = dict(zip(apps, images, strict=True))
    arrivals = []
    for row in rows:
        before = dice.arrivals.uniform(0, DAY)
        at = DAY + float(row["creation_time"]) if row["creation_time"] else round(before, 3)
        ends = DAY + float(row["deletion_time"]) if row["deletion_time"] else None
        pod = a_pod(
            row["instance_sn"].replace("_", "-"),
            image_of[row["app_name"]],
            float(row["cpu_request"]),
            at,
            row["app_name"].replace("_", "-"),
            float(row["memory_request"]),
        )
        arrivals.append(PodArrival(at, pod, PodLifecycle(seconds=None if ends is None else max(ends - at, 1.0))))
    arrivals.sort(key=lambda arrival: arrival.at)
    spec = DiskSpec(capacity=200 * GB, accounting="real", evict_below=0.05, evict_every=1.0)
    amounts = ((CPU, 256_000), (MEMORY, 2048 * GIB), (PODS, 1000))
    machines = tuple(
        VirtualNodeSpec(name=f"n{number}", allocatable=amounts, bandwidth=1000 * MBIT, runtime=RUNTIME, disk=spec)
        for number in range(1, 2359)
    )
    return _scenario(name, images, machines, tuple(arrivals))


def cold(name: str, seed: int, folder: Path, count: int) -> Scenario:
    """7a and 7b: an empty cluster gets 300 rollouts in an hour, each of 50 replicas within 2.5 seconds."""
    dice = Dice(name[0], seed)
    images = one_of_each(_public(folder), 300, dice.images)
    arrivals = []
    for number, image in enumerate(images):
        begin = dice.arrivals.uniform(0, 3600)
        cpu = dice.sizes.choices([0.5, 1.0], [2, 1])[0]
        for index in range(50):
            at = round(begin + 0.05 * index, 3)
            pod = a_pod(f"r{number}-{index}", image, cpu, at, f"r{number}")
            arrivals.append(PodArrival(at, pod, PodLifecycle(seconds=7200.0)))
    arrivals.sort(key=lambda arrival: arrival.at)
    return _scenario(name, images, nodes(count, 16, 100, steady(FAST)), tuple(arrivals))


def _scenario(
    name: str,
    images: list[Image],
    machines: tuple[VirtualNodeSpec, ...],
    arrivals: tuple[PodArrival, ...],
    events: tuple[ScenarioEvent, ...] = (),
) -> Scenario:
    return Scenario(name=name, images=tuple(images), nodes=machines, arrivals=arrivals, events=events, delays=DELAYS)


# -- data, read once in each process ---------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _public(folder: Path) -> dict[str, list[Image]]:
    # Omit images that would not fit on the smallest disk.
    found = {repo: [one for one in images if one.size < 12 * GB] for repo, images in public(folder).items()}
    return {repo: images for repo, images in found.items() if images}


@lru_cache(maxsize=1)
def _learning(folder: Path) -> set[str]:
    return machine_learning(folder)


@lru_cache(maxsize=1)
def _snapshot(folder: Path) -> dict[str, list[Image]]:
    return snapshot(folder)


@lru_cache(maxsize=1)
def _histories(folder: Path) -> list[list[Image]]:
    return [distinct(images) for _, images in sorted(official(folder).items()) if len(images) >= 10]


@lru_cache(maxsize=1)
def _calls(folder: Path) -> list[int]:
    with gzip.open(folder / FUNCTIONS[0], "rt", encoding="utf-8") as file:
        return [sum(int(value or 0) for value in row[3:]) for row in _rows(csv.reader(file))]


def _rows(reader: Iterator[list[str]]) -> Iterator[list[str]]:
    next(reader)
    return reader


BUILD: dict[str, Callable[[str, int, Path], Scenario]] = {
    "1a": lambda name, seed, folder: mixed(name, seed, folder, 0.4),
    "1b": lambda name, seed, folder: mixed(name, seed, folder, 0.6),
    "1c": lambda name, seed, folder: mixed(name, seed, folder, 0.9),
    "1d": lambda name, seed, folder: mixed(name, seed, folder, 0.6, (5, 20)),
    "2a": lambda name, seed, folder: learning(name, seed, folder, 0.6, 200),
    "2b": lambda name, seed, folder: learning(name, seed, folder, 0.7, 100),
    "3a": lambda name, seed, folder: churn(name, seed, folder, 100),
    "3b": lambda name, seed, folder: churn(name, seed, folder, 1000),
    "3c": lambda name, seed, folder: churn(name, seed, folder, 4000),
    "3d": rolling,
    "4a": lambda name, seed, folder: serverless(name, seed, folder, 40_000, 60.0),
    "4b": lambda name, seed, folder: serverless(name, seed, folder, 60_000, 17.0),
    "5a": lambda name, seed, folder: edge(name, seed, folder, (30, 6_000, 20), from_public=False),
    "5b": lambda name, seed, folder: edge(name, seed, folder, (50, 8_000, 60), from_public=True),
    "6": recommendation,
    "7a": lambda name, seed, folder: cold(name, seed, folder, 1000),
    "7b": lambda name, seed, folder: cold(name, seed, folder, 850),
}
"""Scenarios by their names in the table; 4b is reported separately, because the default profile breaks down in it."""


def build(name: str, seed: int, folder: Path) -> Scenario:
    """Build a scenario; its random streams are named after its family, so that 1a and 1b differ in load alone."""
    return BUILD[name](name, seed, folder)
