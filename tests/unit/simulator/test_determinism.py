"""
The same run gives the same bytes, whatever Python makes of the hashes of text.

Twenty processes with different hash seeds write the same traces, summaries and tables; any walk through a set of names
would show. The scenario has everything in it that the simulator can do.
"""

import hashlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lamina.scheduling.config.named_profiles import named
from lamina.scheduling.plugins.in_tree import registry
from lamina.simulator.run import simulate, summary
from lamina.simulator.workloads import load_scenario

RUNS = 20
SIDE_BY_SIDE = 2

SCENARIO = """
registry: {rate: 150MB}
uplinks: {edge: 12MB}
runtimes:
  swarm: {preset: containerd, parallelPulls: 3, slots: 2, slotsPer: node, peers: true, diskRate: 120MB}
  lazy: {preset: containerd, lazy: 0.2}
defaults:
  runtime: containerd
  statusDelay: [2s, 7s, 11s]
  startDelay: [300ms, 500ms, 2s]
  stopDelay: [100ms, 900ms]
  reportGap: 3s
  noticeDelay: 3s
  evictAfter: 4s
layers: {base: 80MB, python: 40MB, java: 90MB, a: 5MB, b: 6MB, c: 7MB, d: 8MB}
images:
  registry.example/a:1: [base, python, a]
  registry.example/b:1: [base, python, b]
  registry.example/c:1: [base, java, c]
  registry.example/d:1: [base, java, d]
  registry.example/d:2: [base, java, c, d]
nodes:
- {name: n, count: 5, cpu: 4, memory: 16Gi, bandwidth: 20MB, uplink: edge, runtime: discarding,
   disk: {size: 800MB, every: 5s, minAge: 1s, high: 0.6, low: 0.4}, holds: ["registry.example/c:1", "registry.example/a:1"]}
- {name: m, count: 3, cpu: 4, memory: 16Gi, runtime: swarm, resources: {x.example/one: 2, x.example/two: 2}}
- {name: z, count: 2, cpu: 4, memory: 16Gi, runtime: lazy, zone: [a, b]}
pods:
- {name: a, count: 20, every: 700ms, image: "registry.example/a:1", cpu: 1, memory: 1Gi, duration: 20s}
- {name: b, count: 20, every: 900ms, image: "registry.example/b:1", cpu: 2, memory: 1Gi, duration: 15s, stopping: 2s}
- {name: c, count: 9, every: 1s, images: ["registry.example/c:1", "registry.example/d:1"], cpu: 3, duration: 9s}
- {name: x, count: 4, every: 2s, image: "registry.example/d:1", resources: {x.example/one: 1, x.example/two: 1}}
- {name: f, count: 3, every: 2s, image: "registry.example/a:1", duration: 4s, failures: 2, restart: OnFailure}
deployments:
- {name: web, at: 3s, replicas: 4, image: "registry.example/d:1", cpu: 500m}
daemonSets:
- {name: log, image: "registry.example/b:1", cpu: 100m}
statefulSets:
- {name: db, at: 4s, replicas: 2, image: "registry.example/c:1", cpu: 500m}
jobs:
- {name: batch, at: 5s, completions: 5, parallelism: 2, image: "registry.example/a:1", duration: 6s}
events:
- {at: 9s, drop: n2}
- {at: 11s, cordon: m1}
- {at: 12s, remove: a3}
- {at: 13s, fail: n3, for: 20s}
- {at: 20s, update: {name: web, image: "registry.example/d:2"}}
- {at: 30s, drain: z1}
- {at: 35s, scale: {name: web, to: 6}}
until: 120s
"""

PROGRAM = """
import sys
from pathlib import Path
import msgspec
from lamina.scheduling.config.named_profiles import named
from lamina.scheduling.plugins.in_tree import registry
from lamina.simulator.run import simulate, summary
from lamina.simulator.run.batsim_files import jobs_csv, schedule_csv
from lamina.simulator.run.latency import modelled
from lamina.simulator.workloads import load_scenario
from lamina.trace.trace_writer import TraceWriter

scenario, out = load_scenario(sys.argv[1], 3), Path(sys.argv[2])
with TraceWriter(out / "trace.jsonl.zst") as trace:
    profile = named("lamina-balanced", registry(entry_points=False))
    latency = modelled((0.001, 0.02, 0.1))
    result = simulate(scenario.under("lamina-balanced"), profile, seed=3, trace=trace, detail="full", latency=latency)
(out / "summary.json").write_bytes(msgspec.json.encode(summary(result)))
(out / "jobs.csv").write_bytes(jobs_csv(result))
(out / "schedule.csv").write_bytes(schedule_csv(result))
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def test_the_scenario_has_something_of_everything(scenario: Path):
    """Otherwise the next test would say less than it seems to."""
    figures = summary(simulate(load_scenario(scenario, 3), named("lamina-balanced", registry()), seed=3))

    assert 0 < figures["gc"]["images"]
    assert 0 < figures["restarts"]
    assert 0 < figures["pods"]["removed"]
    assert 0 < figures["startup_seconds"]["pull_queue"]["max"]
    assert 0 < figures["startup_seconds"]["unpack"]["max"]


@pytest.mark.slow
def test_a_trace_does_not_depend_on_the_hash_seed(scenario: Path, tmp_path: Path):
    def files(number: int) -> tuple[tuple[str, str], ...]:
        """Run once in a process of its own; return what its files hash to."""
        out = tmp_path / str(number)
        out.mkdir()
        subprocess.run(
            [sys.executable, "-c", PROGRAM, scenario, out],
            env={**os.environ, "PYTHONHASHSEED": str(number)},
            check=True,
        )
        return tuple((path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in sorted(out.iterdir()))

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        found = list(pool.map(files, range(1, RUNS + 1)))

    assert {found[0]: RUNS} == {one: found.count(one) for one in found}
    assert ["jobs.csv", "schedule.csv", "summary.json", "trace.jsonl.zst"] == [name for name, _ in found[0]]
