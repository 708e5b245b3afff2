"""From the `workload` of a scenario file to numbers that pods can be drawn from, or to what does not fit in it."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from lamina.layers.catalog import folded
from lamina.model.errors import Mistake
from lamina.model.image import Image
from lamina.model.reference import parse_reference
from lamina.model.resources import CPU, MEMORY, Amounts, amount
from lamina.simulator.workloads import units
from lamina.simulator.workloads.catalog_statistics import repository_of
from lamina.simulator.workloads.node_capacity import NodeCapacityCheck
from lamina.simulator.workloads.scenario_files import ScenarioEntry
from lamina.simulator.workloads.workload_plan import Application, Diurnal, Rollouts, Serverless, WorkloadPlan
from lamina.simulator.workloads.workload_schema import WorkloadEntry

_OFFICIAL: Final = "library/"
MOST_REPLICAS: Final = 1_000_000
"""Of all Deployments of a workload together."""


class WorkloadPlanner:
    """Looks at one workload with what the scenario has of images and nodes."""

    def __init__(self, entry: ScenarioEntry, images: Iterable[Image], *, complete: bool = True) -> None:
        """Judge what can be judged without nodes; that there are too few *images* only if they are *complete*."""
        self._entry = entry
        self._workload: WorkloadEntry = entry.value
        self._applications = applications(images)
        self.mistakes = [*self._wrong(), *(self._too_few() if complete else ())]

    def _wrong(self) -> Iterator[Mistake]:
        workload, wrong = self._workload, self._entry.mistake
        arrivals = workload.arrivals
        if (arrivals.every is None) == (arrivals.load is None):
            yield wrong("say exactly one of every and load", "arrivals")
        if arrivals.every is not None and not units.seconds(arrivals.every):
            yield wrong("must be more than 0", "arrivals", "every")
        if not units.seconds(workload.duration.mean):
            yield wrong("must be more than 0", "duration", "mean")
        if workload.bursts is not None and workload.bursts.of[0] > workload.bursts.of[1]:
            yield wrong("the smaller number comes first", "bursts", "of")
        if arrivals.load is not None and not any(asked for asked, _ in self._cpu()):
            yield wrong("pods that ask for no cpu make no load; say every, or how much cpu", "arrivals", "load")
        if workload.diurnal is not None and not units.seconds(workload.diurnal.period):
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
        if not units.seconds(rollouts.every):
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

    def lacking(self, room: NodeCapacityCheck) -> Iterator[Mistake]:
        """Say which of the pods would find room on no node."""
        for index, (asked, _) in enumerate(self._requests()):
            for step, message in room.lacking(asked):
                steps = ("memoryPerCpu",) if step == MEMORY else ("cpu", index, "amount")
                yield self._entry.mistake(message, *steps)

    def plan(self, allocatable: Iterable[Amounts]) -> WorkloadPlan | None:
        """Return what to draw from on nodes that have so much; None, and a mistake, when it would never end."""
        workload = self._workload
        burst = (1, 1) if workload.bursts is None else workload.bursts.of
        plan = WorkloadPlan(
            name=workload.name,
            pods=workload.pods,
            at=units.seconds(workload.at),
            every=self._every(allocatable, sum(burst) / 2),
            zipf=1.0 if workload.popularity.zipf is None else workload.popularity.zipf,
            weights=workload.popularity.weights,
            mean=units.seconds(workload.duration.mean),
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
            if takes > units.LONGEST:
                message = f"the {what} over {takes / 86_400:.0f} days; at most ten years are simulated"
                self.mistakes.append(self._entry.mistake(message, field))
        return None if self.mistakes else plan

    def _diurnal(self) -> Diurnal | None:
        said = self._workload.diurnal
        return None if said is None else Diurnal(units.seconds(said.period), said.depth)

    def _rollouts(self) -> Rollouts | None:
        said = self._workload.rollouts
        if said is None:
            return None
        return Rollouts(
            deployments=said.deployments,
            of=said.of,
            every=units.seconds(said.every),
            count=said.count,
            batch=said.batches,
            pause=units.seconds(said.pause),
        )

    def _serverless(self) -> Serverless | None:
        said = self._workload.serverless
        if said is None:
            return None
        return Serverless(requests=said.requests, idle=units.seconds(said.idle), concurrency=said.concurrency)

    def _cpu(self) -> list[tuple[int, float]]:
        return [(amount(CPU, one.amount), one.share) for one in self._workload.cpu]

    def _requests(self) -> tuple[tuple[Amounts, float], ...]:
        each = amount(MEMORY, self._workload.memory_per_cpu)
        return tuple((((CPU, asked), (MEMORY, math.ceil(each * asked / 1000))), share) for asked, share in self._cpu())

    def _every(self, allocatable: Iterable[Amounts], burst: float) -> float:
        """Return the mean time between arrivals: as said, or so that the cpu asked for is the load asked for."""
        arrivals = self._workload.arrivals
        if arrivals.every is not None:
            return units.seconds(arrivals.every)
        assert arrivals.load is not None, "one of the two is said"
        cpu = self._cpu()
        mean_cpu = math.fsum(asked * share for asked, share in cpu) / math.fsum(share for _, share in cpu)
        whole = sum(dict(one).get(CPU, 0) for one in allocatable)
        # Little's law: pods at work = rate × duration, each with so much cpu; a burst counts for all its pods.
        rate = arrivals.load * whole / (units.seconds(self._workload.duration.mean) * mean_cpu)
        return burst / rate


def applications(images: Iterable[Image]) -> tuple[Application, ...]:
    """List the repositories as applications, each with its versions in the order of the catalog."""
    versions: dict[str, list[str]] = {}
    for image in images:
        if image.names:
            versions.setdefault(repository_of(image), []).append(image.names[0])
    names = _short_names(versions)
    return tuple(Application(names[home], tuple(images)) for home, images in versions.items())


def _short_names(homes: Mapping[str, object]) -> dict[str, str]:
    """Call each repository by what owners and labels can be called: without the registry, and no two alike."""
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
