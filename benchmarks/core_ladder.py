"""
Cost of one decision, and how it grows with the cluster.

*decision*: update all filters and scores over all nodes, and choose among the best. *cycle*: the same from the queue to
the Bind command, with assuming the pod and a brief explanation.

*new* is a pod whose shape (requests, images) is new; its image has been used before. *seen* is a pod like the one just
placed. *mixed* takes 50 shapes in turn. Median over the pods of a round, best round of five; rounds of all sizes are
interleaved. The profile is lamina-balanced with all of its plugins, every one kube-scheduler enables by default among
them. Nodes hold twenty images each and lie in three zones; one in twenty is tainted.
"""

import itertools
import json
import random
import statistics
import time
from collections.abc import Callable

from lamina.model import events
from lamina.model.image import Image
from lamina.model.node import Node
from lamina.model.pod import Pod
from lamina.model.taints import NO_SCHEDULE, PREFER_NO_SCHEDULE, Taint
from lamina.scheduling.config.named_profiles import DEFAULT, named
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.plugins.in_tree import registry
from lamina.scheduling.runtime.evaluation_cache import EvaluationCache
from lamina.scheduling.runtime.explanation import node_name
from lamina.testing import a_node, a_pod, an_image, held

NAME = "core-ladder"
SUMMARY = "µs per pod for the decision alone, 100 to 15,000 nodes; new, seen and mixed shapes"

SIZES = (100, 1_000, 5_000, 15_000)
ROUNDS = 5
PODS = 300
MB = 1_000_000


def a_catalog(rng: random.Random, count: int = 300) -> list[Image]:
    """Make images of base, runtime and application layers that share layers as real images do."""
    images = []
    for number in range(count):
        base, runtime = rng.randrange(8), rng.randrange(40)
        layers = {f"base-{base}": (20 + base) * MB, f"runtime-{base}-{runtime}": (100 + runtime) * MB}
        layers |= {f"app-{number}-{index}": rng.randrange(1, 60) * MB for index in range(rng.randrange(3, 9))}
        images.append(an_image(f"app-{number}:1", layers))
    return images


def a_cluster(size: int, rng: random.Random, images: list[Image]) -> Loop:
    """Make a loop over *size* nodes that hold twenty images each; one in twenty is tainted, softly or hard."""
    loop = Loop(named(DEFAULT, registry(entry_points=False)).profiles, rng.randrange)
    loop.feed(events.ImagesLearned(tuple(images)))
    for number in range(size):
        on_node = rng.sample(images, 20)
        taints = [Taint("special", "", rng.choice([NO_SCHEDULE, PREFER_NO_SCHEDULE]))] if number % 20 == 0 else []
        name = f"node-{number}"
        node: Node = a_node(
            name,
            cpu=64,
            memory="256Gi",
            taints=taints,
            images={i.names[0]: i.size for i in on_node},
            labels={"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % 3}"},
        )
        loop.feed(events.NodeSeen(node), events.LayersReported(held(name, *on_node)))
    return loop


def cycle(loop: Loop, pods: list[Pod]) -> float:
    """Return the median µs from the queue to the Bind command."""
    took = []
    for pod in pods:
        loop.take(events.PodSeen(pod))
        begin = time.perf_counter_ns()
        loop.decide()
        took.append(time.perf_counter_ns() - begin)
        loop.take(events.BindDone(pod.uid))
    return statistics.median(took) / 1_000


def decision(loop: Loop, evaluations: EvaluationCache, pods: list[Pod], pick: Callable[[int], int]) -> float:
    """Return the median µs of updating the results and choosing; placing the pod is not timed."""
    (profile,) = loop.profiles.values()
    took = []
    for pod in pods:
        shape = profile.shape(pod)
        begin = time.perf_counter_ns()
        evaluation = evaluations.of(shape, pod)
        row, _ = evaluation.choose(pick)
        took.append(time.perf_counter_ns() - begin)
        loop.cluster.cache.assume(pod, node_name(evaluation, row))
    return statistics.median(took) / 1_000


def new_shapes(tag: str, images: list[Image], first: int = 0) -> list[Pod]:
    """Make pods of different shapes; *first* makes the shapes of rounds different."""
    return [
        a_pod(f"{tag}-{n}", cpu=f"{100 + n}m", memory=f"{128 + first}Mi", image=images[n % len(images)].names[0])
        for n in range(PODS)
    ]


def few_shapes(tag: str, images: list[Image], shapes: int) -> list[Pod]:
    """Make pods of a few shapes, in turn."""
    return [
        a_pod(f"{tag}-{n}", cpu=f"{50 + n % shapes}m", memory="64Mi", image=images[n % shapes].names[0])
        for n in range(PODS)
    ]


def main() -> dict[str, object]:
    """Run all sizes and print the table."""
    rng = random.Random(1)
    images = a_catalog(rng)
    loops = {size: a_cluster(size, rng, images) for size in SIZES}
    best: dict[str, dict[str, dict[int, float]]] = {
        what: {kind: {} for kind in ("new", "seen", "mixed")} for what in ("decision", "cycle")
    }
    kept = {}
    for size, loop in loops.items():
        cycle(loop, new_shapes("warm-up", images))
        (profile,) = loop.profiles.values()
        kept[size] = EvaluationCache(profile, loop.cluster.columns)
    for number in range(ROUNDS):
        for (size, loop), what in itertools.product(loops.items(), best):
            tag = f"{what}-{number}-{size}"
            runs = {
                "new": new_shapes(f"new-{tag}", images, first=1 + number * len(best) + list(best).index(what)),
                "seen": few_shapes(f"seen-{tag}", images, 1),
                "mixed": few_shapes(f"mixed-{tag}", images, 50),
            }
            for kind, pods in runs.items():
                took = decision(loop, kept[size], pods, rng.randrange) if what == "decision" else cycle(loop, pods)
                best[what][kind][size] = min(took, best[what][kind].get(size, took))
    print(f"{'':>8} {'decision alone, µs':^38} {'whole cycle, µs':^38}")
    print(f"{'nodes':>8}" + f" {'new shape':>12} {'just seen':>12} {'50 in turn':>12}" * 2)
    for size in SIZES:
        cells = [best[what][kind][size] for what in best for kind in best[what]]
        print(f"{size:>8,} " + " ".join(f"{cell:>12.1f}" for cell in cells))
    return {
        "us_per_pod": _rounded(best["decision"]),
        "us_per_cycle": _rounded(best["cycle"]),
        "growth_1000_to_15000": {kind: round(row[15_000] / row[1_000], 2) for kind, row in best["decision"].items()},
    }


def _rounded(rows: dict[str, dict[int, float]]) -> dict[str, dict[str, float]]:
    return {kind: {str(size): round(value, 1) for size, value in row.items()} for kind, row in rows.items()}


if __name__ == "__main__":
    print(json.dumps({"benchmark": NAME, **main()}))
