"""
Batch policies on one workload of parallel jobs: makespan, waiting, bounded slowdown and utilisation.

Jobs arrive at random, need 1 to 32 cores and run for a minute or for hours (powers of two and a log-uniform run time, as
in the field's workload models); each is a gang of one-core pods on 16 nodes with 4 cores. *fcfs* is a reference that is
computed here: strict first come, first served, a job starts when all its cores are free. Every other policy is a profile
in the simulator. A job starts when its last pod starts, and ends when its last pod ends. A profile without gangs starts
pods one by one and lets them run on their own; real jobs would wait for their last pod while they hold the others' cores,
so the figures flatter it.

*gang_pods_per_s*: throughput of the loop per second of CPU time with the profile ``gang`` on Volcano's tuning set, 10,000 pods in
10,000 jobs of 1, 500 of 20, 20 of 500 and 1 of 10,000, on 1,000 nodes; all pods are seen before the first decision.

JOBS and SEEDS in the environment choose more or less.
"""

import heapq
import json
import math
import os
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Final

import msgspec

from lamina.model import events
from lamina.model.pod import Pod
from lamina.model.pod_groups import GANG_NAME, gang_annotations
from lamina.scheduling.config.named_profiles import NAMED, named
from lamina.scheduling.contract.commands import Bind
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.plugins.in_tree import registry
from lamina.simulator.run import simulate
from lamina.simulator.workloads import load_scenario
from lamina.testing import a_node, a_pod

NAME = "batch"
SUMMARY = "makespan, waiting, bounded slowdown and utilisation of batch policies; pods per second of gangs"

BASE: Final = "kube-default"
POLICIES: Final = tuple(name for name in (BASE, "gang", "easy", "conservative", "flow") if name in NAMED)
"""Profiles that are compared; each is a row."""
JOBS, SEEDS = int(os.environ.get("JOBS", "200")), int(os.environ.get("SEEDS", "2"))
NODES, CORES = 16, 4
LARGEST: Final = 32
SHORTEST, LONGEST = 60.0, 7200.0
LOAD: Final = 0.9
BOUND: Final = 10.0
"""Bounded slowdown: run times below this many seconds count as this many."""
TUNING: Final = {"10000x1": (10_000, 1), "500x20": (500, 20), "20x500": (20, 500), "1x10000": (1, 10_000)}
TUNING_NODES: Final = 1_000


class Job(msgspec.Struct, frozen=True):
    """A parallel job."""

    name: str
    at: float
    cores: int
    seconds: float
    walltime: float


class JobTimes(msgspec.Struct, frozen=True):
    """When a job started and ended."""

    job: Job
    start: float
    end: float


def workload(seed: int) -> list[Job]:
    """Draw jobs that offer `LOAD` times the cores of the cluster."""
    rng = random.Random(seed)
    drawn = []
    for _ in range(JOBS):
        cores = 2 ** rng.randint(0, int(math.log2(LARGEST)))
        seconds = float(round(math.exp(rng.uniform(math.log(SHORTEST), math.log(LONGEST)))))
        drawn.append((cores, seconds, float(round(seconds * rng.uniform(1.0, 3.0)))))
    area = math.fsum(cores * seconds for cores, seconds, _ in drawn)
    gap = area / (LOAD * NODES * CORES) / JOBS
    at, jobs = 0.0, []
    for number, (cores, seconds, walltime) in enumerate(drawn):
        jobs.append(Job(f"j{number}x", round(at, 1), cores, seconds, walltime))
        at += rng.expovariate(1.0 / gap)
    return jobs


def first_come_first_served(jobs: list[Job]) -> list[JobTimes]:
    """Start jobs strictly in order of arrival, each when its cores are free."""
    free, now = NODES * CORES, 0.0
    running: list[tuple[float, int]] = []
    found = []
    for job in jobs:
        now = max(now, job.at)
        while running and (running[0][0] <= now or free < job.cores):
            end, cores = heapq.heappop(running)
            now, free = max(now, end), free + cores
        free -= job.cores
        heapq.heappush(running, (now + job.seconds, job.cores))
        found.append(JobTimes(job, now, now + job.seconds))
    return found


def scenario_text(jobs: list[Job]) -> str:
    """Return the scenario with a gang of one-core pods for each job."""
    lines = [
        "name: batch",
        "defaults: {startDelay: 0s, bindDelay: 0s}",
        "images: {registry.example/job:1: {job: 1MB}}",
        "nodes:",
        f"- {{name: n, count: {NODES}, cpu: {CORES}, memory: 64Gi, holds: [registry.example/job:1]}}",
        "pods:",
    ]
    lines += [
        f"- {{name: {job.name}, count: {job.cores}, at: {job.at}s, image: registry.example/job:1, cpu: 1, "
        f"duration: {job.seconds}s, deadline: {job.walltime + 1}s, owner: {job.name}, gang: {{}}}}"
        for job in jobs
    ]
    return "\n".join(lines) + "\n"


def under(profile: str, jobs: list[Job], seed: int) -> list[JobTimes]:
    """Run the jobs under a profile in the simulator."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scenario.yaml"
        path.write_text(scenario_text(jobs), encoding="utf-8")
        scenario = load_scenario(path, seed).under(profile)
    result = simulate(scenario, named(profile, registry(entry_points=False)), seed=seed)
    times: dict[str, list[tuple[float, float]]] = {}
    pods = {arrival.pod.name: arrival.pod.annotations[GANG_NAME] for arrival in scenario.arrivals}
    for pod in result.pods:
        if pod.started is None or pod.ended is None:
            raise SystemExit(f"{profile}: {pod.pod} did not run to its end: {pod.reason or pod.message}")
        times.setdefault(pods[pod.pod.removeprefix("default/")], []).append((pod.started, pod.ended))
    return [
        JobTimes(job, max(start for start, _ in times[job.name]), max(end for _, end in times[job.name]))
        for job in jobs
    ]


def figures(found: list[JobTimes]) -> dict[str, float]:
    """Return the figures of one run."""
    begin, end = min(one.job.at for one in found), max(one.end for one in found)
    area = sum(one.job.cores * one.job.seconds for one in found)
    return {
        "makespan": end - begin,
        "mean_wait": statistics.fmean(one.start - one.job.at for one in found),
        "bounded_slowdown": statistics.fmean(
            max(1.0, (one.end - one.job.at) / max(one.job.seconds, BOUND)) for one in found
        ),
        "utilisation": area / (NODES * CORES * (end - begin)),
    }


def pods_per_second(jobs: int, size: int) -> float:
    """Return how many pods of gangs the loop places per second."""
    loop = Loop(named("gang", registry(entry_points=False)).profiles, lambda _: 0)
    loop.take(*(events.NodeSeen(a_node(f"n{n}", cpu=32, memory="256Gi", pods=110)) for n in range(TUNING_NODES)))
    seen = [events.PodSeen(_member(job, number, size)) for job in range(jobs) for number in range(size)]
    begin = time.process_time()
    loop.take(*seen)
    bound = sum(isinstance(command, Bind) for command in loop.decide())
    seconds = time.process_time() - begin
    if bound != jobs * size:
        raise SystemExit(f"{jobs} jobs of {size}: {bound} pods of {jobs * size} were placed")
    return bound / seconds


def _member(job: int, number: int, size: int) -> Pod:
    pod = a_pod(f"j{job}-{number}", cpu="500m", memory="1Gi")
    return msgspec.structs.replace(pod, annotations=gang_annotations(f"j{job}", size))


def main() -> dict[str, object]:
    """Run all policies and print a table."""
    rows: dict[str, list[dict[str, float]]] = {}
    for seed in range(1, SEEDS + 1):
        jobs = workload(seed)
        rows.setdefault("fcfs", []).append(figures(first_come_first_served(jobs)))
        for profile in POLICIES:
            rows.setdefault(profile, []).append(figures(under(profile, jobs, seed)))
    means = {
        name: {figure: round(statistics.fmean(row[figure] for row in found), 3) for figure in found[0]}
        for name, found in rows.items()
    }
    print("| policy | makespan s | mean wait s | bounded slowdown | utilisation |\n|---|---|---|---|---|")
    for name, row in means.items():
        print(f"| {name} | " + " | ".join(f"{value:g}" for value in row.values()) + " |")
    rates = {name: round(pods_per_second(*shape)) for name, shape in TUNING.items()}
    print("\n| gangs | pods/s |\n|---|---|")
    for name, rate in rates.items():
        print(f"| {name} | {rate} |")
    return {"jobs": JOBS, "seeds": SEEDS, **means, "gang_pods_per_s": rates}


if __name__ == "__main__":
    print(json.dumps({"benchmark": NAME, **main()}))
