"""
Five scenarios with known results, for schedulers behind the façade.

    burst       200 jobs of 170 s at once on 16 nodes with one slot each: 13 rounds, 2210 s, mean wait 979.2 s
    spaced      the same jobs, one every 10 s: 2280 s, mean wait 57.6 s
    preempt30   16 jobs of 1000 s; after 100 s 8 urgent ones of 170 s. Victims stop within their grace period of 30 s and
                are created again: 130 + 170 + 1000 = 1300 s, 8 preemptions
    preempt0    the same with a grace period of 0 s: 100 + 170 + 1000 = 1270 s
    unsched     40 pods of two cores and 3 pods with a node selector fit nowhere, until a node gets the label at 500 s and a
                larger node joins at 900 s; every start is known
"""

from collections.abc import Callable
from typing import Final

import msgspec

from lamina.apiserver.facade_run import FacadeRun
from lamina.model.pod import Container, Pod, PodUid, total_requests
from lamina.model.resources import CPU, MEMORY, PODS
from lamina.simulator.cluster import Delays, VirtualNodeSpec
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.controllers.controller_spec import ControllerSpec
from lamina.simulator.decider import Decider
from lamina.simulator.run import simulate
from lamina.simulator.run.result import SimulationResult
from lamina.simulator.run.run_parts import RunParts
from lamina.simulator.workloads.scenario import PodArrival, Scenario, ScenarioEvent

LABEL: Final = ("disk", "fast")
SLOTS: Final = 16


class SettleCase(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario and the check of its result."""

    scenario: Scenario
    problem: Callable[[SimulationResult], str]
    """Return what is wrong with a result; empty: nothing."""
    changes: Callable[[RunParts], None] = lambda _: None
    """Schedule changes of the cluster that a scenario cannot express."""


def cases() -> dict[str, SettleCase]:
    """Return the five scenarios by name."""
    return {
        "burst": _jobs("burst", 0.0, 2210.0, 979.2),
        "spaced": _jobs("spaced", 10.0, 2280.0, 57.6),
        "preempt30": _preempting("preempt30", 30.0, 1300.0),
        "preempt0": _preempting("preempt0", 0.0, 1270.0),
        "unsched": _unschedulable(),
    }


def play(case: SettleCase, run: FacadeRun) -> SimulationResult:
    """Play a scenario under the scheduler of *run*."""

    def decider(parts: RunParts) -> Decider:
        case.changes(parts)
        return run.make_decider(parts)

    return simulate(case.scenario, decider=decider)


def make_pod(
    name: str,
    cores: int = 1,
    *,
    at: float = 0.0,
    priority: int = 0,
    selector: tuple[tuple[str, str], ...] = (),
    scheduler: str = "",
) -> Pod:
    """Return a pod with one container that requests *cores*."""
    containers = (Container("registry.example/job:1", ((CPU, 1000 * cores),), "main"),)
    requests, scoring = total_requests(containers)
    return Pod(
        uid=PodUid(name),
        name=name,
        containers=containers,
        requests=requests,
        scoring_requests=scoring,
        scheduler_name=scheduler,
        created_at=at,
        priority=priority,
        node_selector=selector,
    )


def make_nodes(count: int, cores: int = 1) -> tuple[VirtualNodeSpec, ...]:
    """Return equal nodes n0, n1 and so on."""
    return tuple(make_node(f"n{number}", cores) for number in range(count))


def make_node(name: str, cores: int) -> VirtualNodeSpec:
    """Return one node."""
    return VirtualNodeSpec(name=name, allocatable=((CPU, 1000 * cores), (MEMORY, 2**36), (PODS, 110)), bandwidth=1e9)


def _jobs(name: str, gap: float, seconds: float, wait: float) -> SettleCase:
    arrivals = tuple(
        PodArrival(number * gap, make_pod(f"job-{number}", at=number * gap), PodLifecycle(seconds=170.0))
        for number in range(200)
    )

    def problem(result: SimulationResult) -> str:
        waits = [one.waiting for one in result.pods if one.waiting is not None]
        mean = sum(waits) / len(waits) if waits else 0.0
        if (result.seconds, len(waits)) == (seconds, 200) and abs(mean - wait) < 0.05:
            return ""
        return f"{result.seconds:g} s, {len(waits)} started, mean wait {mean:.1f} s"

    scenario = Scenario(name=name, nodes=make_nodes(SLOTS), arrivals=arrivals, delays=Delays(start=0.0))
    return SettleCase(scenario=scenario, problem=problem)


def _preempting(name: str, grace: float, seconds: float) -> SettleCase:
    life = PodLifecycle(seconds=1000.0, grace=grace, stopping=grace)
    jobs = tuple(
        ControllerSpec(kind="Job", name=f"low-{number}", template=make_pod(f"low-{number}"), life=life)
        for number in range(SLOTS)
    )
    urgent = tuple(
        PodArrival(100.0, make_pod(f"high-{number}", at=100.0, priority=1000), PodLifecycle(seconds=170.0))
        for number in range(8)
    )

    def problem(result: SimulationResult) -> str:
        removed = sum(one.phase == "removed" for one in result.pods)
        if (result.seconds, removed) == (seconds, 8):
            return ""
        return f"{result.seconds:g} s, {removed} preemptions"

    scenario = Scenario(name=name, nodes=make_nodes(SLOTS), controllers=jobs, arrivals=urgent, delays=Delays(start=0.0))
    return SettleCase(scenario=scenario, problem=problem)


def _unschedulable() -> SettleCase:
    short = [PodArrival(0.0, make_pod(f"short-{number}"), PodLifecycle(seconds=170.0)) for number in range(SLOTS)]
    large = [PodArrival(0.0, make_pod(f"large-{number}", 2), PodLifecycle(seconds=100.0)) for number in range(40)]
    marked = [
        PodArrival(0.0, make_pod(f"marked-{number}", selector=(LABEL,)), PodLifecycle(seconds=100.0))
        for number in range(3)
    ]
    wanted = {
        "short": [0.0] * SLOTS,
        "large": [900.0 + 100.0 * (number // 8) for number in range(40)],
        "marked": [500.0, 600.0, 700.0],
    }

    def problem(result: SimulationResult) -> str:
        for kind, starts in wanted.items():
            pods = [one for one in result.pods if one.pod.startswith(f"default/{kind}")]
            found = sorted(-1.0 if one.started is None else one.started for one in pods)
            if found != starts:
                return f"{kind} pods started at {found}"
        return ""

    def changes(parts: RunParts) -> None:
        def add_label() -> None:
            node = parts.cluster.nodes["n0"]
            parts.cluster.change("n0", {**node.labels, LABEL[0]: LABEL[1]}, node.taints, node.spec.allocatable)

        parts.environment.at(500.0, add_label)

    scenario = Scenario(
        name="unsched",
        nodes=make_nodes(SLOTS),
        arrivals=(*short, *large, *marked),
        events=(ScenarioEvent(900.0, "join", "large", node=make_node("large", 16)),),
        delays=Delays(start=0.0),
    )
    return SettleCase(scenario=scenario, problem=problem, changes=changes)
