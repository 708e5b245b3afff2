"""Backfill equals an independent computation: every job starts when and where it says."""

import random
from math import inf
from typing import Any, Final

import pytest

from tests.backfill_runs import a_backfilling_loop, run_pods
from tests.backfill_schedules import ORDERS, BatchJob, Conservative, Easy, run

WORKLOADS: Final = 120
"""For each policy."""
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
