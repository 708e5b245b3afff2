"""Backfill equals an independent computation: every job starts when and where it says."""

import random
from math import inf
from typing import Any, Final

import pytest

from lamina.simulator.decision_process.decision_process import DecisionProcess
from lamina.simulator.run.simulation import loop_decider
from tests.backfill_runs import a_backfilling_loop, a_configuration, run_pods
from tests.backfill_schedules import ORDERS, BatchJob, Conservative, Easy, run
from tests.batsim_player import PlayedJob, Player

WORKLOADS: Final = 100
"""For each policy."""
GANG_WORKLOADS: Final = 12
POLICIES: Final[dict[str, tuple[type[Easy] | type[Conservative], str]]] = {
    "easy": (Easy, "first"),
    "conservative": (Conservative, "all"),
}


def a_workload(draw: random.Random, most_pods: int = 1) -> tuple[list[list[int]], list[BatchJob]]:
    """Draw nodes of several sizes, and jobs with bursts, early ends, overdue jobs and jobs without a walltime."""
    nodes = [[draw.randrange(1, 9), draw.choice([4, 8, 16])] for _ in range(draw.randrange(1, 6))]
    at, jobs = 0.0, []
    for number in range(draw.randrange(5, 25)):
        at += draw.choice([0, 0, 0, 1, draw.randrange(1, 40)]) / 4
        walltime = draw.randrange(1, 80) / 4
        seconds = walltime * draw.choice([0.25, 0.5, 0.75, 1, 1])
        luck = draw.random()
        if luck < 0.05:
            walltime = inf
        elif luck < 0.1:
            seconds = walltime * 2
        node = draw.choice(nodes)
        needs = (draw.randrange(1, node[0] + 1), draw.randrange(1, node[1] + 1))
        jobs.append(BatchJob(f"j{number}", at, draw.randrange(1, most_pods + 1), needs, seconds, walltime))
    return nodes, jobs


@pytest.mark.parametrize("policy", POLICIES)
def test_the_schedule_equals_an_independent_computation(policy: str) -> None:
    machine, reservations = POLICIES[policy]
    waited = 0
    for seed in range(WORKLOADS):
        draw = random.Random(f"backfill {policy} {seed}")
        nodes, jobs = a_workload(draw)
        order = draw.choice(list(ORDERS))
        depth = draw.choice([1, 2, 5, 100])
        args: dict[str, Any] = {"reservations": reservations, "order": order, "depth": depth}
        expected = run(machine(nodes, order, depth), jobs)
        assert run_pods(a_backfilling_loop(**args), nodes, jobs) == expected, f"workload {seed}"
        waited += sum(start > job.at for job in jobs for start, _ in [expected.get(job.name, (0.0, []))])
    assert waited > WORKLOADS


def a_batch(draw: random.Random, hosts: int) -> list[PlayedJob]:
    """Draw jobs of several hosts, some of which reach their walltime."""
    at, jobs = 0.0, []
    for number in range(draw.randrange(5, 14)):
        at += draw.choice([0, 0, 1, draw.randrange(1, 40)]) / 4
        seconds = draw.randrange(1, 4000) / 128
        res = draw.randrange(1, hosts + 1)
        jobs.append(PlayedJob(str(number), at, res, seconds, seconds * draw.choice([0.75, 1.5, 2, 3])))
    return jobs


@pytest.mark.parametrize("policy", POLICIES)
def test_gangs_of_batsim_start_when_an_independent_computation_says(policy: str) -> None:
    """Lamina decides for a player of Batsim's side; every event has a message of its own."""
    machine, reservations = POLICIES[policy]
    chosen = a_configuration(reservations=reservations)
    for seed in range(GANG_WORKLOADS):
        draw = random.Random(f"gangs {policy} {seed}")
        hosts = draw.choice([3, 5, 8])
        batch = a_batch(draw, hosts)
        jobs = [
            BatchJob(job.name, job.at, job.res, (1,), min(job.seconds, job.walltime or inf), job.walltime or inf)
            for job in batch
        ]
        process = DecisionProcess(lambda _: loop_decider(chosen, 0), "scheduler")

        outcomes = Player(hosts, process.answer, single=True).play(batch)

        expected = run(machine([[1]] * hosts), jobs, single=True)
        found = {name: (one.started, one.hosts) for name, one in outcomes.items()}
        assert found == {name: (start, tuple(sorted(nodes))) for name, (start, nodes) in expected.items()}, seed
