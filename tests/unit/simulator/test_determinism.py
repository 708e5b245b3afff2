"""
The same run gives the same bytes, whatever Python makes of the hashes of text.

Twenty processes with different hash seeds write the same trace; any walk through a set of names would show.
"""

import hashlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

RUNS = 20
SIDE_BY_SIDE = 2

SCENARIO = """
layers: {base: 80MB, python: 40MB, java: 90MB, a: 5MB, b: 6MB, c: 7MB, d: 8MB}
images:
  registry.example/a:1: [base, python, a]
  registry.example/b:1: [base, python, b]
  registry.example/c:1: [base, java, c]
  registry.example/d:1: [base, java, d]
nodes:
- {name: n, count: 5, cpu: 4, memory: 16Gi, bandwidth: 20MB, holds: ["registry.example/c:1", "registry.example/a:1"]}
- {name: m, count: 3, cpu: 4, memory: 16Gi, resources: {x.example/one: 2, x.example/two: 2}}
pods:
- {name: a, count: 20, every: 700ms, image: "registry.example/a:1", cpu: 1, memory: 1Gi, duration: 20s}
- {name: b, count: 20, every: 900ms, image: "registry.example/b:1", cpu: 2, memory: 1Gi, duration: 15s}
- {name: c, count: 9, every: 1s, images: ["registry.example/c:1", "registry.example/d:1"], cpu: 3, duration: 9s}
- {name: x, count: 4, every: 2s, image: "registry.example/d:1", resources: {x.example/one: 1, x.example/two: 1}}
events:
- {at: 9s, drop: n2}
- {at: 11s, cordon: m1}
- {at: 12s, remove: a3}
"""

PROGRAM = """
import sys
from lamina.scheduling.config.named import named
from lamina.scheduling.plugins.in_tree import registry
from lamina.simulator.run import simulate
from lamina.simulator.workloads import load_scenario
from lamina.trace.writer import TraceWriter

scenario = load_scenario(sys.argv[1])
with TraceWriter(sys.argv[2]) as trace:
    profile = named("lamina-balanced", registry(entry_points=False))
    simulate(scenario.under("lamina-balanced"), profile, seed=3, trace=trace, detail="full")
"""


@pytest.mark.slow
def test_a_trace_does_not_depend_on_the_hash_seed(tmp_path: Path):
    (tmp_path / "scenario.yaml").write_text(SCENARIO, encoding="utf-8")

    def trace(number: int) -> str:
        """Run once in a process of its own; return what its trace hashes to."""
        path = tmp_path / f"{number}.jsonl.zst"
        subprocess.run(
            [sys.executable, "-c", PROGRAM, tmp_path / "scenario.yaml", path],
            env={**os.environ, "PYTHONHASHSEED": str(number)},
            check=True,
        )
        return hashlib.sha256(path.read_bytes()).hexdigest()

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        digests = list(pool.map(trace, range(1, RUNS + 1)))

    assert {digests[0]: RUNS} == {digest: digests.count(digest) for digest in digests}
