"""
Workloads for Batsim's schedulers: two real ones from the data folder, and generated ones.

Each is a scenario of Batsim's kind, in which nothing is pulled and pods start at once, and a list of jobs for the
reference. Two of PyBatsim's schedulers cannot start a job at time 0, so KIT's jobs come a second later.
"""

import gzip
import json
import os
import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from tests.contiguous_schedules import Job

ROOT: Final = Path(__file__).resolve().parents[2]
KIT: Final = "batkube/KIT_10h_80.json"
HPC: Final = "traces/batsim_example_hpc_seed1_jobs250.json.gz"
GENERATED: Final = 20
PARTS: Final = 4096
"""Parts of a second in exact workloads."""
MICROSECONDS: Final = 6
"""Imported times are rounded to microseconds."""

SCENARIO: Final = """\
name: {name}
defaults: {{startDelay: 0s, reportDelay: 0s, statusDelay: 0s}}
images: {{app: {{base: 1MB}}}}
nodes: [{{name: host, count: {hosts}, cpu: {cpu}, memory: 4Gi, holds: [app]}}]
imports: [{{batsim: {file}, image: app, at: {at}s}}]
"""


@dataclass(frozen=True)
class Workload:
    """A scenario file and its jobs."""

    name: str
    scenario: Path
    hosts: int
    jobs: list[Job]


def all_workloads(folder: Path) -> list[Workload]:
    """Write the workloads into *folder*."""
    found = []
    data = Path(os.environ.get("LAMINA_DATA", ROOT.parent / "shared" / "data"))
    if (data / KIT).is_file() and (data / HPC).is_file():
        kit, hpc = json.loads((data / KIT).read_text()), json.loads(gzip.decompress((data / HPC).read_bytes()))
        found += [_written(folder, f"kit-{hosts}", kit, hosts, cpu=6, at=1) for hosts in (1, 4)]
        found.append(_written(folder, "hpc", hpc, 128))
    else:
        print(f"  the data folder lacks {KIT} or {HPC}; only generated workloads are played")
    return [*found, *(_generated(folder, seed) for seed in range(GENERATED))]


def _generated(folder: Path, seed: int) -> Workload:
    """A workload with bursts, jobs that end together, and walltimes that some jobs reach."""
    draw = random.Random(f"batsim workload {seed}")
    hosts = draw.choice([4, 8, 16, 32])
    jobs: list[dict[str, Any]] = []
    profiles = {}
    at = 1.0
    for number in range(draw.randrange(20, 80)):
        at += draw.choice([0.0, 0.0, 1.0, draw.expovariate(0.2)])
        seconds = draw.choice([5, 10, 20, draw.uniform(1, 60)])
        wide = draw.random() < 0.3
        profiles[f"p{number}"] = {"type": "delay", "delay": seconds}
        jobs.append(
            {
                "id": number,
                "subtime": at,
                "res": draw.randrange(1, hosts + 1) if wide else draw.randrange(1, max(2, hosts // 3)),
                "profile": f"p{number}",
                "walltime": draw.choice([seconds + 1.5, seconds * 2, 100.0, seconds * 0.9]),
            }
        )
    return _written(folder, f"generated-{seed}", {"nb_res": hosts, "jobs": jobs, "profiles": profiles}, hosts)


def _written(folder: Path, name: str, workload: dict[str, Any], hosts: int, *, cpu: int = 1, at: int = 0) -> Workload:
    file, scenario = folder / f"{name}.json", folder / f"{name}.yaml"
    file.write_text(json.dumps(workload))
    scenario.write_text(SCENARIO.format(name=name, hosts=hosts, cpu=cpu, file=file.name, at=at))
    jobs = [
        Job(
            str(job["id"]),
            round(job["subtime"] + at, MICROSECONDS),
            job["res"],
            workload["profiles"][job["profile"]]["delay"],
            job.get("walltime", -1.0),
        )
        for job in workload["jobs"]
    ]
    return Workload(name, scenario, hosts, jobs)


def exact_workloads(workloads: list[Workload]) -> list[tuple[str, int, list[Job]]]:
    """
    Return the real ones of *workloads*, and as many generated ones as of the others, all with walltimes.

    Jobs of KIT's trace have none and get twice their run time. Times of the generated ones are binary fractions, so that no
    rounding decides, and no estimated end coincides with another event.
    """
    real = [one for one in workloads if not one.name.startswith("generated")]
    found = [(one.name, one.hosts, [_with_walltime(job) for job in one.jobs]) for one in real]
    return found + [_exact(seed) for seed in range(GENERATED)]


def _with_walltime(job: Job) -> Job:
    return job if job.walltime > 0 else replace(job, walltime=2 * job.seconds)


def _exact(seed: int) -> tuple[str, int, list[Job]]:
    draw = random.Random(f"exact workload {seed}")
    hosts = draw.choice([4, 8, 16, 32])
    at, jobs = 0.0, []
    for number in range(draw.randrange(20, 80)):
        at += draw.choice([0, 0, 0, 1, draw.randrange(1, 80)]) / 4
        seconds = draw.randrange(PARTS, 60 * PARTS) / PARTS
        walltime = draw.choice([seconds * 2, seconds + draw.randrange(1, 100 * PARTS) / PARTS, seconds * 0.75])
        res = draw.randrange(1, hosts + 1) if draw.random() < 0.3 else draw.randrange(1, max(2, hosts // 3))
        jobs.append(Job(str(number), at, res, seconds, walltime))
    return f"exact-{seed}", hosts, jobs
