"""
Measure what an extender saves when it answers about known pods and nodes without decoding the request.

Two handlers share one extender core with the agent `layers`: one may look pods up, the other decodes every request, as
both did before. Each request goes to both, in a random order, with 500 names of 5,000 nodes; then its pod is bound.
Before each answer 3 MB of other memory are written, because beside an API server and kube-scheduler little is left in a
CPU cache. Figures are CPU time of the thread; medians. The answers are compared.

LAMINA_QUICK=1 asks 20 times, with 50 names of 200 nodes.
"""

import json
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
import numpy as np

from _contest import HELD, images
from _extender import question
from _large_cluster import LargeCluster, a_node
from lamina.model.events import ClusterEvent, ImagesLearned, LayersReported, NodeSeen, PodSeen, TimePassed
from lamina.scheduling.loop.extender_core import ExtenderCore
from lamina.scheduling.plugins.in_tree import AGENTS
from lamina.services.extender.bypass_detector import BypassDetector
from lamina.services.extender.handlers import Handlers
from lamina.services.extender.metrics import ExtenderMetrics
from lamina.serving.response import HttpResponse
from lamina.wire.custom_resources.image_layers import decode_image_layers
from lamina.wire.custom_resources.node_layers import decode_node_layers
from lamina.wire.kube.codec import decode_node, decode_pod

NAME: Final = "extender-known"
SUMMARY: Final = "The extender's CPU per request with and without decoding it, in turns"

SEED: Final = 7
EVICTED: Final = 3_000_000
WARM_UP: Final = 10
PATH: Final = "/scheduler/priorities/layers"
GAP: Final = 0.003
"""Seconds between two binds, in the core's time."""


def cluster(nodes: int) -> Iterator[ClusterEvent]:
    """Yield the nodes, the images, and reports with half of each node's images."""
    large = LargeCluster(nodes, 0, len(images()), 0.0)
    for number in range(nodes):
        yield NodeSeen(decode_node(json.dumps(a_node(number, [])).encode()))
    for written in large.image_objects():
        yield ImagesLearned((decode_image_layers(written),))
    for written in large.report_objects():
        report = decode_node_layers(written)
        kept = random.Random(report.node).sample(range(len(report.images)), min(HELD, len(report.images)))
        held = tuple(report.images[place] for place in sorted(kept))
        yield LayersReported(msgspec.structs.replace(report, images=held, renews_within=0.0))


def asked_about(names: list[str], number: int, rng: random.Random) -> tuple[bytes, dict[str, Any]]:
    """Return a request in kube-scheduler's order of keys, and its pod."""
    body = json.loads(question(names, number))
    pod = body["Pod"]
    pod["spec"]["containers"][0]["image"] = rng.choice(images()).held.names[0]
    first = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    meta = pod["metadata"]
    pod["metadata"] = {**{key: meta[key] for key in first}, **meta}
    return json.dumps(body, separators=(",", ":")).encode(), pod


def measure(nodes: int, names: int, requests: int) -> dict[str, Any]:
    """Ask both handlers in turns."""
    core = ExtenderCore([agent for agent in AGENTS if agent.name == "layers"])
    core.take(*cluster(nodes))
    metrics = ExtenderMetrics()
    known: dict[tuple[str, str, str], Any] = {}
    handlers = {
        "decoded": Handlers(core, metrics, BypassDetector(metrics), lambda: True),
        "known": Handlers(
            core, metrics, BypassDetector(metrics), lambda: True, pods=lambda *identity: known.get(identity)
        ),
    }
    posts = {kind: one.routes({}).posts[PATH] for kind, one in handlers.items()}
    rng, other = random.Random(SEED), np.zeros(EVICTED, dtype=np.uint8)
    every = [f"node-{number:05}" for number in range(nodes)]
    costs: dict[str, list[float]] = {kind: [] for kind in posts}
    for number in range(requests):
        first = rng.randrange(nodes)
        body, pod = asked_about([every[(first + place) % nodes] for place in range(names)], number, rng)
        meta = pod["metadata"]
        known[f"{meta['namespace']}/{meta['name']}", meta["uid"], meta["resourceVersion"]] = decode_pod(
            json.dumps(pod).encode()
        )
        answers = {}
        for kind in rng.sample(sorted(posts), len(posts)):
            other += 1
            cost, answers[kind] = timed(posts[kind], body)
            costs[kind].append(cost)
        if answers["decoded"] != answers["known"]:
            raise RuntimeError(f"the answers to request {number} differ")
        pod["spec"]["nodeName"] = rng.choice(every)
        core.take(TimePassed(number * GAP), PodSeen(decode_pod(json.dumps(pod).encode())))
    medians = {kind: statistics.median(each[WARM_UP:]) * 1e6 for kind, each in costs.items()}
    print(f"{nodes:>6,} nodes {names:>5} names: decoded {medians['decoded']:.0f} µs, known {medians['known']:.0f} µs")
    return {f"cpu_us_{kind}_{nodes}": round(median, 1) for kind, median in medians.items()} | {
        f"cpu_ratio_{nodes}": round(medians["known"] / medians["decoded"], 3)
    }


def timed(post: Callable[[bytes], object], body: bytes) -> tuple[float, Any]:
    """Return the CPU seconds of an answer, and the answer."""
    began = time.thread_time()
    answer = post(body)
    cost = time.thread_time() - began
    assert isinstance(answer, HttpResponse)
    return cost, json.loads(b"".join(answer.pieces))


def main() -> dict[str, object]:
    """Measure two sizes of clusters."""
    if os.environ.get("LAMINA_QUICK"):
        return measure(200, 50, 20)
    return {**measure(1_000, 420, 400), **measure(5_000, 500, 400)}


if __name__ == "__main__":
    print(json.dumps({"benchmark": NAME, **main()}))
