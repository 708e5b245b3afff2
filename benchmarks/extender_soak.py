"""
Steady load on the extender: 100 requests a second for half an hour, while the cluster changes.

A real API server with 1,000 nodes; `lamina extender --agents layers,safe,pigeon,congestion,foo`. Priorities, predicates
and preemptions of every agent are requested in turn over four connections, with 420 names each, at a constant rate.
Meanwhile nodes are annotated, and pods are created and deleted, ten changes a second. Any status but 200 is an error.
Memory is read every ten seconds. The drift is the median of the last tenth against that of the second tenth, when
caches are filled.

LAMINA_MINUTES=N sets the duration (30). LAMINA_QUICK=1 runs half a minute on 100 nodes.
"""

import asyncio
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import aiohttp

from _contest import allow_layers, tell_layers
from _extender import LOOPBACK, Beside, beside, question
from testbed import Testbed

NAME: Final = "extender-soak"
SUMMARY: Final = "The extender at 100 requests a second for half an hour: errors, latency, drift of its memory"

CRDS: Final = Path(__file__).resolve().parent.parent / "deploy" / "crds"
SEED: Final = 9
PER_SECOND: Final = 100
CHANGES_PER_SECOND: Final = 10
CONNECTIONS: Final = 4
QUESTIONS: Final = 40
LOOK_EVERY: Final = 10.0
PATHS: Final = (
    "priorities/layers",
    "priorities/safe-overload",
    "predicates/safe-overload",
    "priorities/safe-balance",
    "priorities/pigeon-holing",
    "priorities/congestion",
    "predicates/foo",
    "priorities/foo",
)


class Asker:
    """Sends requests at a constant rate, and records the results."""

    def __init__(self, extender: Beside, bodies: Sequence[bytes]) -> None:
        """Send requests to *extender*."""
        self._base = f"http://{LOOPBACK}:{extender.port}/scheduler/"
        self._bodies = bodies
        self.seconds: list[float] = []
        self.errors = 0

    async def run(self, duration: float) -> None:
        """Send requests for *duration* seconds."""
        connector = aiohttp.TCPConnector(limit=CONNECTIONS)
        async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(5)) as session:
            began = time.monotonic()
            waiting: set[asyncio.Task[None]] = set()
            for number in range(int(duration * PER_SECOND)):
                await asyncio.sleep(max(0.0, began + number / PER_SECOND - time.monotonic()))
                task = asyncio.create_task(self._ask(session, number))
                waiting.add(task)
                task.add_done_callback(waiting.discard)
            await asyncio.gather(*waiting)

    async def _ask(self, session: aiohttp.ClientSession, number: int) -> None:
        began = time.monotonic()
        try:
            body = self._bodies[number % len(self._bodies)]
            async with session.post(self._base + PATHS[number % len(PATHS)], data=body) as answer:
                await answer.read()
                self.errors += answer.status != 200
        except (aiohttp.ClientError, TimeoutError):
            self.errors += 1
        self.seconds.append(time.monotonic() - began)


def rss_mib(pid: int) -> float:
    """Return the resident memory of a process in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def look(pid: int, sizes: list[float]) -> None:
    """Record the extender's memory periodically."""
    while True:
        sizes.append(rss_mib(pid))
        await asyncio.sleep(LOOK_EVERY)


async def change(bed: Testbed, names: Sequence[str], rng: random.Random) -> None:
    """Change the cluster: annotate nodes, create and delete pods."""
    requests = bed.site.requests()
    bound: list[str] = []
    number = 0
    try:
        while True:
            number += 1
            node = rng.choice(names)
            call: tuple[str, str, dict[str, Any], str]
            if number % 2:
                patch = {"metadata": {"annotations": {"congestion-factor": str(rng.randrange(100))}}}
                call = ("PATCH", f"/api/v1/nodes/{node}", patch, "application/merge-patch+json")
            elif len(bound) < 200:
                name = f"soak-{number}"
                pod = {
                    "metadata": {"name": name},
                    "spec": {"nodeName": node, "containers": [{"name": "app", "image": "registry.example/soak:1"}]},
                }
                bound.append(name)
                call = ("POST", "/api/v1/namespaces/default/pods", pod, "")
            else:
                call = ("DELETE", f"/api/v1/namespaces/default/pods/{bound.pop(0)}", {"gracePeriodSeconds": 0}, "")
            await asyncio.to_thread(requests.send, call[0], call[1], call[2], content_type=call[3])
            await asyncio.sleep(1 / CHANGES_PER_SECOND)
    finally:
        requests.close()


async def soak(bed: Testbed, extender: Beside, names: Sequence[str], seconds: float) -> dict[str, Any]:
    """Send requests and change the cluster for *seconds*."""
    rng = random.Random(SEED)
    bodies = [question(rng.sample(names, min(420, len(names))), number) for number in range(QUESTIONS)]
    asker, sizes = Asker(extender, bodies), list[float]()
    beside_it = [
        asyncio.create_task(look(extender.process.pid, sizes)),
        asyncio.create_task(change(bed, names, rng)),
    ]
    before = extender.process.cpu_seconds()
    await asker.run(seconds)
    used = extender.process.cpu_seconds() - before
    broken = [task for task in beside_it if task.done()]
    for task in beside_it:
        task.cancel()
    await asyncio.gather(*beside_it, return_exceptions=True)
    for task in broken:
        task.result()
    tenth = max(1, len(sizes) // 10)
    early, late = statistics.median(sizes[tenth : 2 * tenth] or sizes), statistics.median(sizes[-tenth:])
    taken = sorted(asker.seconds)
    return {
        "minutes": round(seconds / 60, 1),
        "requests": len(taken),
        "errors": asker.errors,
        "p50_ms": round(taken[len(taken) // 2] * 1e3, 2),
        "p99_ms": round(taken[int(len(taken) * 0.99)] * 1e3, 2),
        "max_ms": round(taken[-1] * 1e3, 1),
        "cpu_share": round(used / seconds, 3),
        "rss_mib_early": round(early, 1),
        "rss_mib_late": round(late, 1),
        "memory_drift": round(late / early - 1, 4),
        "memory_drift_goal": 0.05,
    }


def main() -> dict[str, object]:
    """Start a control plane and an extender, and run the load."""
    quick = bool(os.environ.get("LAMINA_QUICK"))
    nodes = 100 if quick else 1_000
    seconds = 30.0 if quick else 60.0 * float(os.environ.get("LAMINA_MINUTES", "30"))
    with tempfile.TemporaryDirectory() as folder, Testbed.start() as bed:
        allow_layers(bed, CRDS)
        names = [f"node-{number:05}" for number in range(nodes)]
        bed.add_nodes({"name": name, "cpu": "4", "memory": "32Gi"} for name in names)
        tell_layers(bed, nodes)
        with beside(bed, "layers,safe,pigeon,congestion,foo", Path(folder) / "extender.log") as extender:
            return {"nodes": nodes, **asyncio.run(soak(bed, extender, names, seconds))}


if __name__ == "__main__":
    print(json.dumps({"benchmark": NAME, **main()}))
