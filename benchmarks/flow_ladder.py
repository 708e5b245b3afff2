"""
Time to place a batch by min-cost flow, and how it grows with nodes, pods and distinct pods: docs/batch.md.

*flow*: the call of the plugin, with costs, network and all rounds. *evaluation*: the filters and scores of all classes,
which the ordinary cycle needs too. *batch*: from the queue to the Bind commands. *cycle*: the same pods through
lamina-balanced, one after the other. Best of ROUNDS, in seconds of processor time.

The nodes hold twenty images each of a catalog with shared layers, and some of their room is taken. The pods have
different images and requests, except in the rows of equal pods.
"""

import itertools
import json
import random
import time
from collections.abc import Sequence

import msgspec

from core_ladder import a_catalog
from lamina.model import events
from lamina.model.image import Image
from lamina.model.pod import Pod
from lamina.scheduling.config.named_profiles import named
from lamina.scheduling.contract.commands import Bind
from lamina.scheduling.contract.placement import PlaceCandidate, Placement, PlacePlugin
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.plugins.in_tree import registry
from lamina.scheduling.state.view import NodeView
from lamina.testing import a_node, a_pod, held

NAME = "flow-ladder"
SUMMARY = "seconds to place 100 to 10,000 pods together on 500 to 10,000 nodes by min-cost flow"

LADDER = ((500, 100, 50), (1_000, 500, 100), (2_000, 1_000, 200), (5_000, 1_000, 200), (5_000, 1_000, 1_000))
EQUAL = ((5_000, 1_000, 1), (10_000, 10_000, 1))
ROUNDS = 3
FLOW = "flow"
CYCLE = "lamina-balanced"


class Timing(msgspec.Struct):
    """Times of one batch, in seconds."""

    flow: float = 0.0
    evaluation: float = 0.0
    batch: float = 0.0
    bound: int = 0


def a_cluster(profile: str, size: int, images: list[Image], rng: random.Random) -> Loop:
    """Return a loop over nodes with images and with some pods."""
    loop = Loop(named(profile, registry(entry_points=False)).profiles, rng.randrange)
    loop.feed(events.ImagesLearned(tuple(images)))
    for number in range(size):
        name = f"node-{number}"
        loop.feed(events.NodeSeen(a_node(name, cpu=16, memory="64Gi")))
        loop.feed(events.LayersReported(held(name, *rng.sample(images, 20))))
        for index in range(rng.randrange(4)):
            loop.feed(events.PodSeen(a_pod(f"there-{number}-{index}", 2, "4Gi", on=name, started=True)))
    return loop


def some_pods(count: int, distinct: int, images: list[Image], rng: random.Random) -> list[Pod]:
    """Return pods of *distinct* shapes."""
    shapes = [
        (rng.choice(("250m", "500m", 1, 2, 4)), f"{rng.choice((1, 2, 3, 4))}Gi", images[number % len(images)].names[0])
        for number in range(distinct)
    ]
    return [
        msgspec.structs.replace(
            a_pod(f"pod-{number}", cpu, memory, image=image), labels={"shape": str(number % distinct)}
        )
        for number, (cpu, memory, image) in enumerate(itertools.islice(itertools.cycle(shapes), count))
    ]


def timed(plugin: PlacePlugin, found: Timing) -> None:
    """Time the calls of a plugin, without the evaluations of its candidates."""
    place = plugin.place

    def place_timed(candidates: Sequence[PlaceCandidate], nodes: NodeView, now: float) -> Placement:
        begin = time.process_time()
        for candidate in candidates:
            _ = candidate.feasible
        evaluated = time.process_time()
        placement = place(candidates, nodes, now)
        found.evaluation += evaluated - begin
        found.flow += time.process_time() - evaluated
        return placement

    plugin.place = place_timed  # type: ignore[method-assign]


def measure(profile: str, nodes: int, pods: int, distinct: int, seed: int) -> Timing:
    """Place one batch, and return its times."""
    rng = random.Random(seed)
    images = a_catalog(rng)
    loop = a_cluster(profile, nodes, images, rng)
    batch = some_pods(pods, distinct, images, rng)
    found = Timing()
    for plugin in loop.profiles["default-scheduler"].place:
        timed(plugin, found)
    loop.take(*(events.PodSeen(pod) for pod in batch))
    begin = time.process_time()
    commands = loop.decide()
    found.batch = time.process_time() - begin
    found.bound = sum(isinstance(command, Bind) for command in commands)
    return found


def main() -> dict[str, object]:
    """Measure the ladder."""
    rows = []
    for nodes, pods, distinct in (*LADDER, *EQUAL):
        flow = [measure(FLOW, nodes, pods, distinct, seed) for seed in range(ROUNDS)]
        cycle = [measure(CYCLE, nodes, pods, distinct, seed) for seed in range(ROUNDS)]
        row = {
            "nodes": nodes,
            "pods": pods,
            "distinct": distinct,
            "flow": round(min(one.flow for one in flow), 3),
            "evaluation": round(min(one.evaluation for one in flow), 3),
            "batch": round(min(one.batch for one in flow), 3),
            "cycle": round(min(one.batch for one in cycle), 3),
            "bound": flow[0].bound,
        }
        rows.append(row)
        print(row, flush=True)
    at = {(row["nodes"], row["pods"], row["distinct"]): row["flow"] for row in rows}
    return {
        "flow_seconds_5000x1000": at[5_000, 1_000, 200],
        "flow_seconds_10000x10000_equal": at[10_000, 10_000, 1],
        "rows": rows,
    }


if __name__ == "__main__":
    print(json.dumps({"benchmark": NAME, **main()}))
