"""
How far a batch is from the optimum: the ordinary cycle and min-cost flow on small instances solved exactly.

An instance has four nodes with 4 cpu each, which hold some images, and ten to fourteen pods that arrive together. Two optima are
computed by integer programming, both within cpu and memory: the fewest *bytes* that the nodes must pull, where pods on
a node share layers; and the least sum over the pods of the bytes that each one *waits* for. Neither knows balance. The
figures are geometric means of the ratio to the optimum, (bytes + 1 MB) / (optimum + 1 MB). *free* is min-cost flow without a
price for load, points and replicas.
"""

import json
import random

import msgspec
import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from lamina.model import events
from lamina.model.image import Image
from lamina.model.pod import Pod
from lamina.scheduling.config.loader import load
from lamina.scheduling.config.named_profiles import NAMED
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.plugins.in_tree import registry
from lamina.testing import LoopHarness, a_node, a_pod, an_image, held

NAME = "flow-optimum"
SUMMARY = "bytes and waiting of greedy placement and of min-cost flow, against the optimum of 200 small instances"

INSTANCES = 200
MB = 1_000_000
FREE = "      scorePrice: 0\n      replicaShare: 1\n      load: {seconds: 0, barrier: 0}\n"
PROFILES = {
    "cycle": NAMED["lamina-balanced"][1],
    "flow": NAMED["flow"][1],
    "free": NAMED["flow"][1].replace("      scorePrice: 0.01\n", FREE),
}


class Instance(msgspec.Struct, frozen=True):
    """A batch of pods and the nodes."""

    images: list[Image]
    held: list[list[Image]]
    pods: list[Pod]
    wants: list[int]
    """For each pod, the number of its image."""


def draw(seed: int) -> Instance:
    """Draw an instance in which the pods take about four fifths of the cpu."""
    rng = random.Random(seed)
    images = []
    for number in range(5):
        base = rng.randrange(2)
        layers = {f"base-{base}": (50 + 100 * base) * MB, f"runtime-{rng.randrange(3)}": 200 * MB}
        images.append(an_image(f"app-{number}:1", layers | {f"own-{number}": rng.randrange(20, 600) * MB}))
    wants = [rng.choices(range(5), (5, 3, 2, 1, 1))[0] for _ in range(rng.randrange(10, 15))]
    pods = [
        a_pod(f"p{number}", rng.choice(("500m", 1, 1, 1, 2)), rng.choice(("1Gi", "2Gi")), image=f"app-{want}:1")
        for number, want in enumerate(wants)
    ]
    return Instance(images, [rng.sample(images, rng.randrange(3)) for _ in range(4)], pods, wants)


def placed(one: Instance, profile: str) -> dict[str, int]:
    """Place the batch with a profile; return the node of each pod."""
    configuration = load(profile, "profile", registry(entry_points=False))
    desk = LoopHarness(Loop(configuration.profiles, lambda _: 0))
    desk.tell(events.ImagesLearned(tuple(one.images)))
    for number, images in enumerate(one.held):
        desk.tell(events.NodeSeen(a_node(f"n{number}", 4, "16Gi")), events.LayersReported(held(f"n{number}", *images)))
    desk.tell(*(events.PodSeen(pod) for pod in one.pods))
    return {name: int(node[1:]) for name, node in desk.bound.items()}


def missing(one: Instance, want: int, node: int) -> dict[str, int]:
    """Return the layers of an image that a node does not hold, with their bytes."""
    there = {layer.digest for image in one.held[node] for layer in image.layers}
    return {str(layer.digest): layer.size for layer in one.images[want].layers if layer.digest not in there}


def cost(one: Instance, nodes: dict[str, int]) -> tuple[int, int]:
    """Return the bytes to pull, and the sum of the bytes that pods wait for."""
    pulled: dict[tuple[int, str], int] = {}
    waited = 0
    for pod, want in zip(one.pods, one.wants, strict=True):
        lacks = missing(one, want, nodes[pod.name])
        waited += sum(lacks.values())
        pulled |= {(nodes[pod.name], layer): size for layer, size in lacks.items()}
    return sum(pulled.values()), waited


def optimum(one: Instance, *, shared: bool) -> int:
    """Return the fewest bytes, counted once for each node (*shared*) or for each pod; -1 if not all pods fit."""
    pods, nodes = len(one.pods), len(one.held)
    layers = sorted({layer for want in set(one.wants) for node in range(nodes) for layer in missing(one, want, node)})
    pulls = {
        (node, layer): pods * nodes + node * len(layers) + index
        for node in range(nodes)
        for index, layer in enumerate(layers)
    }
    costs = np.zeros(pods * nodes + len(pulls))
    lines, least, most = [], [], []

    def limit(entries: dict[int, float], low: float, high: float) -> None:
        line = np.zeros(len(costs))
        line[list(entries)] = list(entries.values())
        lines.append(line)
        least.append(low)
        most.append(high)

    for number, want in enumerate(one.wants):
        limit({number * nodes + node: 1.0 for node in range(nodes)}, 1, 1)
        for node in range(nodes):
            for layer, size in missing(one, want, node).items():
                if shared:
                    costs[pulls[node, layer]] = size / MB
                    limit({pulls[node, layer]: 1.0, number * nodes + node: -1.0}, 0, np.inf)
                else:
                    costs[number * nodes + node] += size / MB
    for resource, room in (("cpu", 4000), ("memory", 16 * 2**30)):
        for node in range(nodes):
            asked = {n * nodes + node: dict(pod.requests)[resource] / room for n, pod in enumerate(one.pods)}
            limit(asked, 0, 1)
    found = milp(
        costs,
        constraints=LinearConstraint(np.array(lines), np.array(least), np.array(most)),
        integrality=np.ones(len(costs)),
        bounds=Bounds(0, 1),
    )
    return round(found.fun * MB) if found.success else -1


def main() -> dict[str, object]:
    """Compare the profiles on all instances in which every profile places every pod."""
    ratios: dict[str, list[tuple[float, float]]] = {name: [] for name in PROFILES}
    exact = 0
    for seed in range(INSTANCES):
        one = draw(seed)
        best = (optimum(one, shared=True), optimum(one, shared=False))
        chosen = {name: placed(one, profile) for name, profile in PROFILES.items()}
        if min(best) < 0 or any(len(nodes) < len(one.pods) for nodes in chosen.values()):
            continue
        exact += 1
        for name, nodes in chosen.items():
            pulled, waited = cost(one, nodes)
            ratios[name].append(((pulled + MB) / (best[0] + MB), (waited + MB) / (best[1] + MB)))
    found: dict[str, object] = {"instances": exact}
    for name, pairs in ratios.items():
        pulled, waited = np.exp(np.log(np.array(pairs)).mean(axis=0)).tolist()
        found[name] = {"bytes": round(pulled, 3), "waiting": round(waited, 3)}
        print(f"{name}: bytes {pulled:.3f}, waiting {waited:.3f} of the optimum (geometric means)", flush=True)
    return found


if __name__ == "__main__":
    print(json.dumps({"benchmark": NAME, **main()}))
