"""
Run the three workloads of batkube's validation again and again with the real kube-scheduler, in virtual time.

batkube waits for a decision for a fixed wall-clock time, so its results depend on that parameter and on the machine: its
published runs of the extract from KIT's trace have mean waits from 747 to 3,197 s. The façade waits until the scheduler
has settled, and has no such parameter. What may still differ from run to run is the order in which kube-scheduler retries
pods of equal priority: it follows their back-off, which is measured by the wall clock.

LAMINA_RUNS says how often each workload runs (default 20). Needs the workloads; without them it prints that and does
nothing.
"""

import json
import os
from pathlib import Path
from typing import Any, Final

from _real_data import data_folder, missing
from lamina.apiserver.facade_run import FacadeRun
from lamina.apiserver.scheduler_profiles import profile_of
from lamina.model.pod import Container, Pod, PodUid, total_requests
from lamina.model.resources import CPU, MEMORY, PODS
from lamina.simulator.cluster import Delays, VirtualNodeSpec
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.run import simulate
from lamina.simulator.workloads.scenario import PodArrival, Scenario
from testbed.building import ensure

NAME: Final = "batkube-spread"
SUMMARY: Final = (
    "Spread of makespan and mean wait over 20 runs with kube-scheduler: the workloads of batkube's validation"
)

WORKLOADS: Final = {
    "burst": ("batkube/200_delay170.json", 16, 1000),
    "spaced": ("batkube/spaced_200_delay170.json", 16, 1000),
    # The real node had six cores, of which system pods took less than 0.1.
    "kit": ("batkube/KIT_10h_80.json", 1, 5900),
}
"""File, nodes, and thousandths of a core of each node."""


def main() -> dict[str, Any]:
    """Run all workloads."""
    needed = [file for file, _, _ in WORKLOADS.values()]
    folder = data_folder(needed)
    if folder is None:
        print(missing(needed))
        return {}
    runs = int(os.environ.get("LAMINA_RUNS", "20"))
    found: dict[str, Any] = {"runs": runs}
    for name, (file, nodes, millicores) in WORKLOADS.items():
        scenario = read(name, folder / file, nodes, millicores)
        results = [run_once(scenario) for _ in range(runs)]
        spans, waits = ([round(one[place], 1) for one in results] for place in (0, 1))
        found[name] = {
            "makespan": [min(spans), max(spans)],
            "mean_wait": [min(waits), max(waits)],
            "limits_hit": sum(one[2] for one in results),
        }
        print(f"{name:8} {found[name]}", flush=True)
    return found


def read(name: str, path: Path, nodes: int, millicores: int) -> Scenario:
    """Return a workload file as a scenario; a job is one pod, and the nodes are equal."""
    content = json.loads(path.read_text(encoding="utf-8"))
    arrivals = []
    for job in content["jobs"]:
        profile, at = content["profiles"][job["profile"]], float(job["subtime"])
        containers = (Container("image", ((CPU, round(1000 * float(profile["cpu"]))),), "main"),)
        requests, scoring = total_requests(containers)
        pod = Pod(
            uid=PodUid(job["id"]),
            name=f"job-{job['id']}",
            containers=containers,
            requests=requests,
            scoring_requests=scoring,
            scheduler_name="",
            created_at=at,
        )
        arrivals.append(PodArrival(at, pod, PodLifecycle(seconds=float(profile["delay"]))))
    offer = ((CPU, millicores), (MEMORY, 2**36), (PODS, 110))
    machines = tuple(VirtualNodeSpec(name=f"n{number}", allocatable=offer, bandwidth=1e9) for number in range(nodes))
    return Scenario(name=name, nodes=machines, arrivals=tuple(arrivals), delays=Delays(start=0.0))


def run_once(scenario: Scenario) -> tuple[float, float, int]:
    """Return makespan and mean wait in seconds, and how often the settle method reached its time limit."""
    profile, command = profile_of(str(ensure("kube-scheduler")))
    with FacadeRun(profile, command) as run:
        result = simulate(scenario, decider=run.make_decider)
        figures = run.figures
    assert figures is not None
    waits = [one.waiting for one in result.pods if one.waiting is not None]
    assert len(waits) == len(scenario.arrivals), (
        f"{scenario.name}: {len(waits)} of {len(scenario.arrivals)} pods started"
    )
    return result.seconds, sum(waits) / len(waits), figures.limits_hit
