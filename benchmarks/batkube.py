"""
Ground truth: 200 jobs of 170 s that ran on a real cluster of 16 nodes, ten times in a burst and ten times spaced.

First with every delay off: 16 nodes, one job each, 13 rounds of 170 s. Then with the delays of the real runs: half of
the runs (even numbers) give the distributions, and the simulation is compared with the other half.

The real cluster never ran more than 15 jobs at once: in all twenty runs the 16th job starts when the first ends, and no
job names the 16th node. So the cluster is simulated as it behaved, with one node that takes no jobs. (Analyses that
divide by 16 find freed slots empty for some ten seconds; with 15 it is a few.)

Delays, each drawn for every job from the observed ones: *start*, from scheduled to running; *end*, the time by which a
job exceeded 170 s; *retry*, from the end of a job until the next was scheduled on the same node. The last two add up to
the time until the scheduler can reuse the slot. Needs the recorded runs; without them it prints that and does nothing.
"""

import csv
import gzip
import itertools
import json
import math
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

from _real_data import RUNS, data_folder, missing
from lamina.cli.options.scheduler_profile import configuration
from lamina.model.pod import Container, Pod, PodUid, total_requests
from lamina.model.resources import CPU, PODS
from lamina.model.taints import NO_SCHEDULE, Taint
from lamina.simulator.cluster import Delays, VirtualNodeSpec
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.run import simulate
from lamina.simulator.workloads import PodArrival, Scenario
from lamina.testing import an_image

NAME = "batkube"
SUMMARY = "200 jobs of 170 s against twenty runs of the same on a real cluster: makespan and waiting"

SECONDS = 170.0
NODES, AT_WORK = 16, 15
BURST, SPACED = "200_delay170", "spaced_200_delay170"
SUCCESSOR = 30.0
"""Seconds after the end of a job within which the next job on the node is its successor; later ones had one between."""

JOB = an_image("job", {"layer": 1})

Job = dict[str, Any]


def recorded(folder: Path) -> dict[str, dict[int, list[Job]]]:
    """Return the real runs by workload and number."""
    found: dict[str, dict[int, list[Job]]] = defaultdict(lambda: defaultdict(list))
    with gzip.open(folder / RUNS[0], "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            found[row["workload"]][int(row["run"])].append(row)
    return found


def figures(jobs: list[Job]) -> tuple[float, float]:
    """Return makespan and mean waiting time of a real run, in seconds."""
    return max(float(job["finish_time"]) for job in jobs), statistics.mean(float(job["waiting_time"]) for job in jobs)


def at_once(jobs: list[Job]) -> int:
    """Return the largest number of jobs that ran at one time."""
    edges = [(float(job["starting_time"]), 1) for job in jobs] + [(float(job["finish_time"]), -1) for job in jobs]
    return max(itertools.accumulate(change for _, change in sorted(edges)))


def delays(runs: list[list[Job]]) -> Delays:
    """Collect the observed delays of the runs."""
    start, end, retry = [], [], []
    for jobs in runs:
        places: dict[str, list[Job]] = defaultdict(list)
        for job in jobs:
            end.append(max(0.0, float(job["execution_time"]) - SECONDS))
            if job["scheduled"]:
                start.append(float(job["starting_time"]) - float(job["scheduled"]))
            if job["allocated_resources"]:
                places[job["allocated_resources"]].append(job)
        for held in places.values():
            held.sort(key=lambda job: float(job["starting_time"]))
            for before, after in itertools.pairwise(held):
                if after["scheduled"]:
                    gap = float(after["scheduled"]) - float(before["finish_time"])
                    if gap < SUCCESSOR:
                        retry.append(max(0.0, gap))
    # One delay for both: sums of two quantiles for each of a hundred equal shares, in a mixed order.
    stop = [one + other for one, other in zip(_shares(end), _mixed(_shares(retry)), strict=True)]
    return Delays(start=tuple(_shares(start)), stop=tuple(stop), report=0.0, status=0.0)


def _shares(values: list[float]) -> list[float]:
    ranked = sorted(values)
    return [round(ranked[min(len(ranked) - 1, (2 * share + 1) * len(ranked) // 200)], 3) for share in range(100)]


def _mixed(values: list[float]) -> list[float]:
    return [values[share * 37 % 100] for share in range(100)]


def cluster(workload: str, lags: Delays, at_work: int) -> Scenario:
    """Build the 16 nodes and the 200 jobs; only *at_work* nodes take jobs."""
    amounts = ((CPU, 1000),)
    nodes = tuple(
        VirtualNodeSpec(
            name=f"n{number}",
            allocatable=(*amounts, (PODS, 110)),
            bandwidth=125e6,
            holds=(JOB,),
            taints=() if number < at_work else (Taint("control-plane", "", NO_SCHEDULE),),
        )
        for number in range(NODES)
    )
    arrivals = []
    for number in range(200):
        containers = (Container("job", amounts),)
        requests, ranked = total_requests(containers)
        at = 10.0 * number if workload == SPACED else 0.0
        pod = Pod(
            uid=PodUid(f"j{number}"),
            name=f"j{number}",
            containers=containers,
            requests=requests,
            scoring_requests=ranked,
            scheduler_name="",
            created_at=at,
        )
        arrivals.append(PodArrival(at, pod, PodLifecycle(seconds=SECONDS)))
    return Scenario(name=workload, nodes=nodes, images=(JOB,), arrivals=tuple(arrivals), delays=lags)


def simulated(workload: str, lags: Delays, at_work: int, seed: int) -> tuple[float, float]:
    """Return makespan and mean waiting time until jobs run, computed as for the real runs."""
    result = simulate(cluster(workload, lags, at_work), configuration("kube-default"), seed=seed)
    ends = [pod.started + SECONDS for pod in result.pods if pod.started is not None]
    waits = [pod.started - pod.arrived for pod in result.pods if pod.started is not None]
    assert len(ends) == 200, "every job ran"
    return max(ends), statistics.mean(waits)


def main() -> dict[str, object]:
    """Run the comparison and print it."""
    folder = data_folder(RUNS)
    if folder is None:
        print(f"skipped: {missing(RUNS)}")
        return {"skipped": missing(RUNS)}
    none = Delays(report=0.0, status=0.0, start=0.0)
    ideal, _ = simulated(BURST, none, NODES, 1)
    print(
        f"all delays off, 16 nodes: makespan {ideal:.0f} s (13 rounds of 170 s: {math.ceil(200 / NODES) * SECONDS:.0f})"
    )
    found: dict[str, object] = {"ideal_makespan": round(ideal, 3)}
    real = recorded(folder)
    for workload, name in ((BURST, "burst"), (SPACED, "spaced")):
        runs = real[workload]
        most = {at_once(jobs) for jobs in runs.values()}
        lags = delays([jobs for number, jobs in runs.items() if number % 2 == 0])
        truth = [figures(jobs) for number, jobs in runs.items() if number % 2 == 1]
        ours = [simulated(workload, lags, AT_WORK, seed) for seed in range(1, 6)]
        makespans = statistics.mean(one for one, _ in truth), statistics.mean(one for one, _ in ours)
        waits = statistics.mean(one for _, one in truth), statistics.mean(one for _, one in ours)
        row = {
            "at_once": sorted(most),
            "makespan_real": round(makespans[0], 1),
            "makespan": round(makespans[1], 1),
            "makespan_error": round(makespans[1] / makespans[0] - 1, 4),
            "wait_real": round(waits[0], 1),
            "wait": round(waits[1], 1),
            "wait_error": round(waits[1] / waits[0] - 1, 4),
        }
        found[name] = row
        print(f"{name}: {row}")
    return found


if __name__ == "__main__":
    print(json.dumps({"benchmark": NAME, **main()}))
