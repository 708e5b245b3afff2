"""
Cost of a simulated pod, and how it grows with the cluster.

Clusters of 16-cpu nodes at 60 % load, pods of 1 to 4 cpu that run for an hour on average, images from a generated
catalog of 400 by Zipf 1.0, gigabit links behind a registry with a tenth of the links' total rate, unpacking, and disks
of 8 GB with image garbage collection.

*default* is lamina-balanced, decided by the loop that also runs live. *trivial* takes the next node with room and shows
the cost of the simulator alone. Each run is its own process; *peak* is its largest resident memory. *realtime* is
virtual seconds per second of wall time, under the default profile. LADDER in the environment selects the sizes: small,
usual, whole; all is the largest cluster under the default profile alone, which takes most of an hour.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NAME = "simulator-ladder"
SUMMARY = (
    "seconds and memory of simulations, 100 nodes x 10,000 pods up to 10,000 x 1,000,000; default and trivial policy"
)

STEPS = {
    "small": ((100, 10_000, "default"), (100, 10_000, "trivial")),
    "usual": (
        (100, 10_000, "default"),
        (100, 10_000, "trivial"),
        (1_000, 100_000, "default"),
        (1_000, 100_000, "trivial"),
    ),
    "whole": (
        (100, 10_000, "default"),
        (100, 10_000, "trivial"),
        (300, 30_000, "default"),
        (300, 30_000, "trivial"),
        (1_000, 100_000, "default"),
        (1_000, 100_000, "trivial"),
        (3_000, 300_000, "default"),
        (3_000, 300_000, "trivial"),
        (10_000, 1_000_000, "trivial"),
    ),
    "all": ((10_000, 1_000_000, "default"),),
}

SCENARIO = """\
name: ladder
catalog: {{generate: {{images: 400, seed: 1}}}}
registry: {{rate: {registry}Gbit}}
defaults: {{disk: 8GB}}
nodes:
- {{name: node, count: {nodes}, cpu: 16, memory: 64Gi, bandwidth: 1Gbit}}
workload:
  pods: {pods}
  arrivals: {{load: 0.6}}
  duration: {{mean: 1h, spread: exponential}}
  cpu: [{{amount: 1, share: 4}}, {{amount: 2, share: 3}}, {{amount: 4, share: 1}}]
"""


def one(nodes: int, pods: int, policy: str) -> dict[str, float]:
    """Run one step in this process."""
    from _trivial import Trivial
    from lamina.cli.options.scheduler_profile import configuration
    from lamina.simulator.run import simulate, summary
    from lamina.simulator.workloads import load_scenario

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scenario.yaml"
        path.write_text(SCENARIO.format(nodes=nodes, pods=pods, registry=max(1, nodes // 10)))
        scenario = load_scenario(path, 1)
    chosen = configuration("lamina-balanced" if policy == "default" else "random")
    begin = time.perf_counter()
    result = simulate(scenario, chosen, seed=1, decider=Trivial() if policy == "trivial" else None)
    seconds = time.perf_counter() - begin
    figures = summary(result)
    return {
        "nodes": nodes,
        "pods": pods,
        "seconds": round(seconds, 2),
        "microseconds_per_pod": round(seconds / pods * 1e6, 1),
        "virtual_seconds": round(figures["virtual_seconds"]),
        "realtime_factor": round(figures["virtual_seconds"] / seconds),
        "pulls": figures["pulls"],
        "gc_images": figures["gc"]["images"],
        "started": figures["pods"]["started"],
        "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def main() -> dict[str, object]:
    """Run all sizes and print them."""
    ladder = []
    for nodes, pods, policy in STEPS[os.environ.get("LADDER", "usual")]:
        command = [sys.executable, __file__, str(nodes), str(pods), policy]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        row = {"policy": policy, **json.loads(done.stdout.splitlines()[-1])}
        ladder.append(row)
        print(
            f"{policy:>8} {nodes:>6} nodes {pods:>9,} pods: {row['seconds']:8.1f} s "
            f"{row['microseconds_per_pod']:7.1f} us/pod {row['peak_mib']:6} MiB {row['realtime_factor']:7,} x real time "
            f"({row['pulls']:,} pulls, {row['gc_images']:,} images collected)",
            flush=True,
        )
    found: dict[str, object] = {"ladder": ladder}
    for row in ladder:
        if row["pods"] == 100_000:
            found[f"seconds_{row['policy']}_100k"] = row["seconds"]
            if row["policy"] == "default":
                found |= {"peak_mib": row["peak_mib"], "realtime_factor": row["realtime_factor"]}
    return found


if __name__ == "__main__":
    if len(sys.argv) == 4:
        print(json.dumps(one(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])))
    else:
        print(json.dumps({"benchmark": NAME, **main()}))
