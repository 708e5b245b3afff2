"""The `workload` of a scenario: the shape of its entry, the plan made from it, and the pods drawn from that plan."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Final, Literal

import msgspec

from lamina.layers.catalog import folded
from lamina.model import duration
from lamina.model.errors import Mistake
from lamina.model.image import Image
from lamina.model.pod import Pod
from lamina.model.reference import parse_reference
from lamina.model.resources import CPU, MEMORY, Amounts, amount
from lamina.simulator.cluster import VirtualNodeSpec
from lamina.simulator.workloads.capacity import NodeCapacityCheck
from lamina.simulator.workloads.catalog_statistics import repository_of
from lamina.simulator.workloads.field_types import Duration, EntryStruct, Name, Quantity
from lamina.simulator.workloads.generated_catalog import MOST_IMAGES
from lamina.simulator.workloads.pod_entries import MOST_PODS, PodChecks
from lamina.simulator.workloads.pod_stream import (
    Application,
    Diurnal,
    DrawnWorkload,
    PodStream,
    Rollouts,
    Serverless,
    WorkloadPlan,
)
from lamina.simulator.workloads.scenario_files import AssemblyState, ScenarioEntry

Burst = Annotated[int, msgspec.Meta(ge=1, le=100_000)]
Replicas = Annotated[int, msgspec.Meta(ge=0, le=100_000)]
Weight = Annotated[float, msgspec.Meta(ge=0, le=1e12)]


class ArrivalsEntry(EntryStruct, frozen=True, kw_only=True):
    """Arrival rate of pods: a mean time *every* between arrivals, or the rate for a CPU *load* of the cluster."""

    every: Duration | None = None
    load: Annotated[float, msgspec.Meta(gt=0, le=100)] | None = None


class WorkloadPopularityEntry(EntryStruct, frozen=True, kw_only=True):
    """
    Distribution of pods over applications.

    By Zipf's law with this exponent (unset: 1) in a drawn order, or by *weights* in the order of the catalog.
    Applications without a weight get no pods.
    """

    zipf: Annotated[float, msgspec.Meta(ge=0, le=10)] | None = None
    weights: Annotated[tuple[Weight, ...], msgspec.Meta(max_length=MOST_IMAGES)] = ()


class DurationEntry(EntryStruct, frozen=True, kw_only=True):
    """Distribution of the durations of pods."""

    mean: Duration
    spread: Literal["exponential", "lognormal", "fixed"] = "exponential"


class CpuEntry(EntryStruct, frozen=True, kw_only=True):
    """CPU request of a *share* of the pods."""

    amount: Quantity
    share: Annotated[float, msgspec.Meta(gt=0, le=1_000_000)] = 1.0


class BurstsEntry(EntryStruct, frozen=True, kw_only=True):
    """Smallest and largest number of pods that arrive at once."""

    of: tuple[Burst, Burst]


class DiurnalEntry(EntryStruct, frozen=True, kw_only=True):
    """Variation of the arrival rate over a *period*, by *depth* times its mean; it begins at the mean, rising."""

    period: Duration = 86_400.0
    depth: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.8


class RolloutsEntry(EntryStruct, frozen=True, kw_only=True):
    """
    Deployments in addition to the pods, each of another application (fewer if fewer have a next version).

    They exist from the start; *of* is their smallest and largest number of replicas. At a mean time *every*, one of
    them moves to its next version, *count* times (unset: until the last pod of the stream arrives). A rollout replaces
    a share of the replicas (*batches*) at a time and goes on when the new pods have run for *pause*.
    """

    deployments: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 10
    of: tuple[Replicas, Replicas]
    every: Duration
    count: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] | None = None
    batches: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.25
    pause: Duration = 0.0


class ServerlessEntry(EntryStruct, frozen=True, kw_only=True):
    """
    Serverless functions: arrivals and durations are those of requests, applications are functions.

    A pod serves *concurrency* requests at once. It is kept while it has work and for *idle* afterwards. The stream ends
    after *requests* requests. A request that would need more pods than the workload's `pods` is lost.
    """

    requests: Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]
    idle: Duration = 300.0
    concurrency: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 1


class WorkloadEntry(EntryStruct, frozen=True, kw_only=True):
    """A drawn stream of pods, called name1, name2 and so on."""

    name: Name = "w"
    pods: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
    at: Duration = 0.0
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


_OFFICIAL: Final = "library/"
MOST_REPLICAS: Final = 1_000_000
"""Largest number of replicas of all Deployments of a workload together."""


class WorkloadPlanner:
    """Checks one workload against the images and nodes of a scenario, and makes its plan."""

    def __init__(self, entry: ScenarioEntry, images: Iterable[Image], *, complete: bool = True) -> None:
        """Check everything that does not depend on nodes; report too few *images* only if they are *complete*."""
        self._entry = entry
        self._workload: WorkloadEntry = entry.value
        self._applications = applications(images)
        self.mistakes = [*self._wrong(), *(self._too_few() if complete else ())]

    def _wrong(self) -> Iterator[Mistake]:
        workload, wrong = self._workload, self._entry.mistake
        arrivals = workload.arrivals
        if (arrivals.every is None) == (arrivals.load is None):
            yield wrong("say exactly one of every and load", "arrivals")
        if arrivals.every is not None and not arrivals.every:
            yield wrong("must be more than 0", "arrivals", "every")
        if not workload.duration.mean:
            yield wrong("must be more than 0", "duration", "mean")
        if workload.bursts is not None and workload.bursts.of[0] > workload.bursts.of[1]:
            yield wrong("the smaller number comes first", "bursts", "of")
        if arrivals.load is not None and not any(asked for asked, _ in self._cpu()):
            yield wrong("pods that ask for no cpu make no load; say every, or how much cpu", "arrivals", "load")
        if workload.diurnal is not None and not workload.diurnal.period:
            yield wrong("must be more than 0", "diurnal", "period")
        if workload.serverless is not None and arrivals.load is not None:
            yield wrong("requests make no load that could be known before; say every", "arrivals", "load")
        yield from self._wrong_popularity()
        yield from self._wrong_rollouts()

    def _wrong_popularity(self) -> Iterator[Mistake]:
        popularity = self._workload.popularity
        if popularity.zipf is not None and popularity.weights:
            yield self._entry.mistake("say zipf or weights, not both", "popularity")
        if popularity.weights and not any(popularity.weights):
            yield self._entry.mistake("at least one must be more than 0", "popularity", "weights")

    def _wrong_rollouts(self) -> Iterator[Mistake]:
        rollouts, wrong = self._workload.rollouts, self._entry.mistake
        if rollouts is None:
            return
        if rollouts.of[0] > rollouts.of[1]:
            yield wrong("the smaller number comes first", "rollouts", "of")
        if not rollouts.every:
            yield wrong("must be more than 0", "rollouts", "every")
        if rollouts.deployments * rollouts.of[1] > MOST_REPLICAS:
            yield wrong(f"too many: all together may have at most {MOST_REPLICAS} replicas", "rollouts", "deployments")

    def _too_few(self) -> Iterator[Mistake]:
        wrong, weights = self._entry.mistake, self._workload.popularity.weights
        if not self._applications:
            yield wrong("there is no image to run; name a catalog, or list images")
        elif len(weights) > len(self._applications):
            count = len(self._applications)
            yield wrong(f"the images are of {count} applications; write at most that many", "popularity", "weights")
        else:
            chosen = [one for one, weight in zip(self._applications, weights, strict=False) if weight]
            moves = sum(len(one.images) - 1 for one in (chosen if weights else self._applications))
            if self._workload.updates > moves:
                yield wrong(f"the images have {moves} next versions in all; write at most that", "updates")
            if self._workload.rollouts is not None and not moves:
                yield wrong("no image has a next version to roll to; name a catalog with versions", "rollouts")

    def without_room(self, room: NodeCapacityCheck) -> Iterator[Mistake]:
        """Yield a mistake for each request that no node has room for."""
        for index, (asked, _) in enumerate(self._requests()):
            for step, message in room.missing_resources(asked):
                steps = ("memoryPerCpu",) if step == MEMORY else ("cpu", index, "amount")
                yield self._entry.mistake(message, *steps)

    def plan(self, allocatable: Iterable[Amounts]) -> WorkloadPlan | None:
        """Return the plan for nodes with these *allocatable* resources; None if `mistakes` is not empty."""
        workload = self._workload
        burst = (1, 1) if workload.bursts is None else workload.bursts.of
        plan = WorkloadPlan(
            name=workload.name,
            pods=workload.pods,
            at=workload.at,
            every=self._every(allocatable, sum(burst) / 2),
            zipf=1.0 if workload.popularity.zipf is None else workload.popularity.zipf,
            weights=workload.popularity.weights,
            mean=workload.duration.mean,
            spread=workload.duration.spread,
            requests=self._requests(),
            burst=burst,
            grouped=workload.bursts is not None and workload.serverless is None,
            diurnal=self._diurnal(),
            updates=workload.updates,
            rollouts=self._rollouts(),
            serverless=self._serverless(),
            scheduler=workload.scheduler,
            applications=self._applications,
        )
        arrivals = plan.pods if plan.serverless is None else plan.serverless.requests
        whole = plan.at + plan.every * arrivals / (sum(burst) / 2)
        rolling = plan.rollouts.every * (plan.rollouts.count or 0) if plan.rollouts is not None else 0.0
        for takes, what, field in (
            (whole, "pods would come", "arrivals"),
            (rolling, "rollouts would go on", "rollouts"),
        ):
            if takes > duration.LONGEST:
                message = f"the {what} over {takes / 86_400:.0f} days; at most ten years are simulated"
                self.mistakes.append(self._entry.mistake(message, field))
        return None if self.mistakes else plan

    def _diurnal(self) -> Diurnal | None:
        given = self._workload.diurnal
        return None if given is None else Diurnal(given.period, given.depth)

    def _rollouts(self) -> Rollouts | None:
        given = self._workload.rollouts
        if given is None:
            return None
        return Rollouts(
            deployments=given.deployments,
            of=given.of,
            every=given.every,
            count=given.count,
            batch=given.batches,
            pause=given.pause,
        )

    def _serverless(self) -> Serverless | None:
        given = self._workload.serverless
        if given is None:
            return None
        return Serverless(requests=given.requests, idle=given.idle, concurrency=given.concurrency)

    def _cpu(self) -> list[tuple[int, float]]:
        return [(amount(CPU, one.amount), one.share) for one in self._workload.cpu]

    def _requests(self) -> tuple[tuple[Amounts, float], ...]:
        each = amount(MEMORY, self._workload.memory_per_cpu)
        return tuple((((CPU, asked), (MEMORY, math.ceil(each * asked / 1000))), share) for asked, share in self._cpu())

    def _every(self, allocatable: Iterable[Amounts], burst: float) -> float:
        """Return the mean time between arrivals in seconds: as given, or calculated from the load."""
        arrivals = self._workload.arrivals
        if arrivals.every is not None:
            return arrivals.every
        assert arrivals.load is not None, "one of the two is given"
        cpu = self._cpu()
        mean_cpu = math.fsum(asked * share for asked, share in cpu) / math.fsum(share for _, share in cpu)
        whole = sum(dict(one).get(CPU, 0) for one in allocatable)
        # Little's law: running pods = rate × duration. Their CPU is the load; a burst counts with all its pods.
        rate = arrivals.load * whole / (self._workload.duration.mean * mean_cpu)
        return burst / rate


def applications(images: Iterable[Image]) -> tuple[Application, ...]:
    """Return the repositories as applications, each with its versions in the order of the catalog."""
    versions: dict[str, list[str]] = {}
    for image in images:
        if image.names:
            versions.setdefault(repository_of(image), []).append(image.names[0])
    names = _short_names(versions)
    return tuple(Application(names[home], tuple(images)) for home, images in versions.items())


def _short_names(homes: Mapping[str, object]) -> dict[str, str]:
    """Return a unique name for each repository, without the registry, that is valid for owners and labels."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for home in homes:
        path = parse_reference(folded(home)).repository.removeprefix(_OFFICIAL)
        short = name = re.sub(r"[^a-z0-9]+", "-", path)
        number = 2
        while name in taken:
            name, number = f"{short}-{number}", number + 1
        taken.add(name)
        names[home] = name
    return names


def draw_workload(
    state: AssemblyState, checks: PodChecks, nodes: Iterable[VirtualNodeSpec], already: int, seed: int
) -> DrawnWorkload:
    """
    Return the workload of the including file, drawn from *seed*; *already* is the number of pods without it.

    Pods and controllers whose names are taken are left out and reported.
    """
    given = [part for part in state.parts if "workload" in part.document.root.inside]
    if not given or given[-1].document.root.inside["workload"].value is None:
        return DrawnWorkload()
    entry = given[-1].single("workload", WorkloadEntry)
    plan = _plan(state, checks, entry, nodes, already) if entry is not None else None
    if entry is None or plan is None:
        # Events may name pods and controllers that would have been drawn.
        state.complete.update({"pod": False, "controller": False})
        return DrawnWorkload()
    made = PodStream(plan, seed).draw()
    pods = dict.fromkeys(state.take(entry, "pod", (one.pod.name for one in made.arrivals)))
    controllers = dict.fromkeys(state.take(entry, "controller", (one.name for one in made.controllers)))
    _check_disks(state, checks, entry, [one.pod for one in made.arrivals] + [one.template for one in made.controllers])
    return DrawnWorkload(
        tuple(one for one in made.arrivals if one.pod.name in pods),
        tuple(one for one in made.controllers if one.name in controllers),
        made.events,
    )


def _plan(
    state: AssemblyState, checks: PodChecks, entry: ScenarioEntry, nodes: Iterable[VirtualNodeSpec], already: int
) -> WorkloadPlan | None:
    if already + entry.value.pods > MOST_PODS:
        message = f"too many: with the pods that are listed, at most {MOST_PODS} are simulated"
        state.wrong(entry, message, "pods")
        return None
    catalog = checks.catalog
    planning = WorkloadPlanner(entry, catalog.all_images, complete=catalog.complete)
    plan = None
    if checks.capacity is not None:
        planning.mistakes.extend(planning.without_room(checks.capacity))
        if catalog.complete and not planning.mistakes:
            plan = planning.plan(node.allocatable for node in nodes)
    state.mistakes.extend(planning.mistakes)
    return plan


def _check_disks(state: AssemblyState, checks: PodChecks, entry: ScenarioEntry, pods: Iterable[Pod]) -> None:
    """Report the first pod whose image does not fit on a disk that it may get; there may be thousands like it."""
    for pod in {(pod.images, pod.requests): pod for pod in pods}.values():
        image = checks.catalog.find(entry, pod.images[0])
        if image is not None and (problem := checks.disk_capacity.too_small(pod, image)):
            state.wrong(entry, problem)
            return
