"""
Cost of starting a scheduler in a large cluster: list all objects and fill the caches.

`lamina scheduler` is started against a scripted server (`_scripted_server`) that streams, over TLS, nodes with 50
images each in their status, running pods of 4.7 KB, NodeLayers (100 images each) and ImageLayers. The benchmark
measures the scheduler process from its start until it has logged that its caches are complete and is idle: CPU time and
peak memory. The server has its own process and is not measured.

LAMINA_QUICK=1 runs the smallest size only. LAMINA_PROFILE=FILE profiles the scheduler of the largest size.
"""

import json
import os
import re
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any, Final

from _processes import PROFILE, Measured, lamina, running
from _scripted_server import serving

NAME: Final = "cold-start"
SUMMARY: Final = "CPU seconds and peak MiB until a scheduler knows 5,000 nodes, 150,000 pods and their layers"

LADDER: Final = ((500, 15_000), (2_000, 60_000), (5_000, 150_000))
GOALS: Final = {"cpu_seconds": 30.0, "peak_mib": 1024.0}
WITHIN: Final = 600.0
IDLE: Final = 1.0
"""Seconds without work after which a process is idle."""
IDLE_SHARE: Final = 0.02
ADDRESS: Final = re.compile(r"http://[0-9.]+:[0-9]+")


def begin(nodes: int, pods: int) -> dict[str, Any]:
    """Start a scheduler and measure it until its caches are complete; the cluster has as many images as nodes."""
    with tempfile.TemporaryDirectory() as name, serving(nodes, pods, nodes, Path(name)) as kubeconfig:
        command = lamina("scheduler", "--kubeconfig", str(kubeconfig), "--no-leader-elect", "--listen", "127.0.0.1:0")
        with running(command, Path(name) / "scheduler.log") as process:
            process.wait(lambda: bool(process.said("caches synced")), WITHIN)
            ready_after, ready_cpu = time.monotonic() - process.began, process.cpu_seconds()
            process.wait(lambda: idle(process), WITHIN)
            found = {
                "wall_seconds": time.monotonic() - process.began - IDLE,
                "cpu_seconds": process.cpu_seconds(),
                "peak_mib": process.peak_mib(),
                "ready_wall_seconds": ready_after,
                "ready_cpu_seconds": ready_cpu,
                "waited_for_layers": not process.said("deciding without"),
            }
            check(process, {"Node": nodes, "Pod": pods, "NodeLayers": nodes, "ImageLayers": nodes})
    return found


def idle(process: Measured) -> bool:
    """Return whether the process uses no CPU for a while."""
    before = process.cpu_seconds()
    time.sleep(IDLE)
    return process.cpu_seconds() - before <= IDLE_SHARE * IDLE


def check(process: Measured, expected: dict[str, int]) -> None:
    """Check that all objects were read: a scheduler that skips some starts quickly."""
    found = ADDRESS.search(process.said("serving endpoints"))
    assert found is not None, f"the scheduler does not log the address of its endpoints:\n{process.end_of_log()}"
    with urllib.request.urlopen(f"{found[0]}/readyz", timeout=30) as page:  # noqa: S310 - our own process
        assert page.status == 200
    with urllib.request.urlopen(f"{found[0]}/metrics", timeout=30) as page:  # noqa: S310 - our own process
        said = counts(page.read().decode())
    for kind, count in expected.items():
        events, unread = (
            said[f'lamina_reflector_events_total{{kind="{kind}"}}'],
            said[f'lamina_reflector_undecodable_total{{kind="{kind}"}}'],
        )
        assert (events, unread) == (count, 0), f"{kind}: {events:.0f} of {count} were seen, {unread:.0f} not read"
    held = {kind: said[f'scheduler_cache_size{{type="{kind}"}}'] for kind in ("nodes", "pods")}
    assert held == {"nodes": expected["Node"], "pods": expected["Pod"]}, f"the cache holds {held}"


def counts(page: str) -> dict[str, float]:
    """Parse Prometheus' text format."""
    lines = (line.rpartition(" ") for line in page.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


def main() -> dict[str, object]:
    """Run all sizes and print the table."""
    ladder = LADDER[:1] if os.environ.get("LAMINA_QUICK") else LADDER
    if os.environ.get(PROFILE):
        ladder = ladder[-1:]
    rows = {}
    print(f"{'nodes':>8} {'pods':>9} {'CPU, s':>8} {'µs/pod':>8} {'peak MiB':>9} {'wall, s':>8} {'ready after, s':>15}")
    for nodes, pods in ladder:
        one = rows[nodes] = begin(nodes, pods)
        spent = one["cpu_seconds"]
        print(
            f"{nodes:>8,} {pods:>9,} {spent:>8.1f} {spent / pods * 1e6:>8.0f} {one['peak_mib']:>9.0f}"
            f" {one['wall_seconds']:>8.1f} {one['ready_wall_seconds']:>15.1f}"
            + ("" if one["waited_for_layers"] else "  (had stopped waiting for layers)"),
            flush=True,
        )
    nodes, pods = ladder[-1]
    last = {name: round(value, 2) if isinstance(value, float) else value for name, value in rows[nodes].items()}
    met = {f"{name}_goal": goal for name, goal in GOALS.items()}
    growth = {
        str(size): {name: round(one[name], 2) for name in ("cpu_seconds", "peak_mib", "wall_seconds")}
        for size, one in rows.items()
    }
    return {"nodes": nodes, "pods": pods, **last, **met, "by_nodes": growth}


if __name__ == "__main__":
    print(json.dumps({"benchmark": NAME, **main()}))
