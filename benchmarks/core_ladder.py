"""
What one decision costs, and how that grows with the cluster.

One feed of one arriving pod: queue, all filters and scores over all nodes, choice, assume, command. Confirmations are
fed outside the clock. *new* is a pod whose shape (requests, images) was never seen; *seen* is a pod like the one just
placed; *mixed* takes 50 shapes in turn. CPU time of the thread, median of the pods of a round, best round of three;
rounds of all sizes are interleaved.
"""

import json
import random
import statistics
import time

from lamina.model import events
from lamina.model.image import Image
from lamina.model.node import Node
from lamina.model.pod import Pod
from lamina.model.taints import NO_SCHEDULE, PREFER_NO_SCHEDULE, Taint
from lamina.scheduling.framework.commands import Bind
from lamina.scheduling.loop.loop import Loop
from lamina.testing import a_loop, a_node, a_pod, an_image, held

NAME = "core-ladder"
SUMMARY = "µs per pod for the decision alone, 100 to 15,000 nodes; new, seen and mixed shapes"

SIZES = (100, 1_000, 5_000, 15_000)
ROUNDS = 3
PODS = 300
WEIGHTS = {"TaintToleration": 3, "LayerLocality": 5}
MB = 1_000_000


def a_catalogue(rng: random.Random, count: int = 300) -> list[Image]:
    """Make images of base, runtime and application layers, shared the way images share them."""
    images = []
    for number in range(count):
        base, runtime = rng.randrange(8), rng.randrange(40)
        layers = {f"base-{base}": (20 + base) * MB, f"runtime-{base}-{runtime}": (100 + runtime) * MB}
        layers |= {f"app-{number}-{index}": rng.randrange(1, 60) * MB for index in range(rng.randrange(3, 9))}
        images.append(an_image(f"app-{number}:1", layers))
    return images


def a_cluster(size: int, rng: random.Random, images: list[Image]) -> Loop:
    """Make a loop over *size* nodes that hold twenty images each; one in twenty is tainted, softly or hard."""
    loop = a_loop(weights=WEIGHTS, pick=rng.randrange)
    loop.feed(events.ImagesLearned(tuple(images)))
    for number in range(size):
        on_node = rng.sample(images, 20)
        taints = [Taint("special", "", rng.choice([NO_SCHEDULE, PREFER_NO_SCHEDULE]))] if number % 20 == 0 else []
        name = f"node-{number}"
        node: Node = a_node(name, cpu=64, memory="256Gi", taints=taints, images={i.names[0]: i.size for i in on_node})
        loop.feed(events.NodeSeen(node), events.LayersReported(held(name, *on_node)))
    return loop


def timed(loop: Loop, pods: list[Pod]) -> float:
    """Return the median CPU µs of placing one of *pods*."""
    took = []
    for pod in pods:
        event = events.PodSeen(pod)
        begin = time.thread_time_ns()
        commands = loop.feed(event)
        took.append(time.thread_time_ns() - begin)
        for command in commands:
            if isinstance(command, Bind):
                loop.feed(events.BindDone(command.pod.uid))
    return statistics.median(took) / 1_000


def new_shapes(tag: str, images: list[Image]) -> list[Pod]:
    """Make pods no two of which ask for the same."""
    return [
        a_pod(f"{tag}-{n}", cpu=f"{100 + n}m", memory=f"{128 + n}Mi", image=images[n % len(images)].names[0])
        for n in range(PODS)
    ]


def few_shapes(tag: str, images: list[Image], shapes: int) -> list[Pod]:
    """Make pods of a few shapes, in turn."""
    return [
        a_pod(f"{tag}-{n}", cpu=f"{50 + n % shapes}m", memory="64Mi", image=images[n % shapes].names[0])
        for n in range(PODS)
    ]


def main() -> dict[str, object]:
    """Climb the ladder."""
    rng = random.Random(1)
    images = a_catalogue(rng)
    loops = {size: a_cluster(size, rng, images) for size in SIZES}
    best: dict[str, dict[int, float]] = {"new": {}, "seen": {}, "mixed": {}}
    for round_number in range(ROUNDS):
        for size, loop in loops.items():
            runs = {
                "new": new_shapes(f"new-{round_number}-{size}", images),
                "seen": few_shapes(f"seen-{round_number}-{size}", images, 1),
                "mixed": few_shapes(f"mixed-{round_number}-{size}", images, 50),
            }
            for kind, pods in runs.items():
                took = timed(loop, pods)
                best[kind][size] = min(took, best[kind].get(size, took))
    print(f"{'nodes':>8} {'new shape':>12} {'just seen':>12} {'50 in turn':>12}   µs per pod")
    for size in SIZES:
        print(f"{size:>8,} {best['new'][size]:>12.1f} {best['seen'][size]:>12.1f} {best['mixed'][size]:>12.1f}")
    return {
        "us_per_pod": {kind: {str(size): round(value, 1) for size, value in row.items()} for kind, row in best.items()},
        "growth_1000_to_15000": {kind: round(row[15_000] / row[1_000], 2) for kind, row in best.items()},
    }


if __name__ == "__main__":
    print(json.dumps({"benchmark": NAME, **main()}))
