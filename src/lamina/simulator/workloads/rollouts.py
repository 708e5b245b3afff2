"""
Deployments that move on during a run: which applications, how many replicas, and when each goes to its next version.

Applications are drawn by their popularity, among those that have a next version; so are rollouts, among Deployments
that have one left. Each rollout is an update of a controller: who is removed when is the controller's doing.
"""

import itertools
from collections.abc import Callable, Iterator
from random import Random

from lamina.simulator.controllers.controller_spec import ControllerSpec
from lamina.simulator.workloads.scenario import ScenarioEvent
from lamina.simulator.workloads.weighted_sampler import WeightedSampler
from lamina.simulator.workloads.workload_plan import Application, Rollouts, WorkloadPlan, a_pod_of

DrawnRollouts = tuple[list[ControllerSpec], list[ScenarioEvent]]


def draw_rollouts(
    plan: WorkloadPlan, ranked: list[Application], weights: list[float], last: float, dice: Callable[[str], Random]
) -> DrawnRollouts:
    """Draw the Deployments of a plan, and what happens to them until *last*; applications have these *weights*."""
    rollouts = plan.rollouts
    if rollouts is None:
        return [], []
    chosen = _chosen(ranked, weights, rollouts.deployments, dice("deployments"))
    names = [f"{plan.name}-{ranked[rank].name}" for rank in chosen]
    sizes, asked = dice("replicas"), dice("deployment requests")
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
    happenings: list[ScenarioEvent] = []
    current = [0] * len(chosen)
    lottery, luck = WeightedSampler(weights[rank] for rank in chosen), dice("rollouts")
    for at in _times(rollouts, plan.at, last, dice("rollout times")):
        if not lottery:
            break
        number = lottery.draw(luck)
        images = ranked[chosen[number]].images
        current[number] += 1
        happenings.append(ScenarioEvent(round(at, 6), "update", names[number], image=images[current[number]]))
        if current[number] == len(images) - 1:
            lottery.leave_out(number)
    return specs, happenings


def _chosen(ranked: list[Application], weights: list[float], count: int, dice: Random) -> list[int]:
    lottery = WeightedSampler(
        weight if len(one.images) > 1 else 0.0 for one, weight in zip(ranked, weights, strict=True)
    )
    chosen: list[int] = []
    while lottery and len(chosen) < count:
        chosen.append(lottery.draw(dice))
        lottery.leave_out(chosen[-1])
    return chosen


def _times(rollouts: Rollouts, at: float, last: float, dice: Random) -> Iterator[float]:
    for number in itertools.count():
        at += dice.expovariate(1 / rollouts.every)
        if number == rollouts.count or (rollouts.count is None and at > last):
            return
        yield at
