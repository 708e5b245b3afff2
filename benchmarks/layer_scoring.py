"""
Cost of computing the bytes of an image that every node misses, and how it grows with the cluster.

*sets*: the naive way, a set of layer digests per node, checked node by node. *cold*: the first request for an image;
*warm*: again without a change; *patched*: again after one node has reported something new. Nodes hold 300 to 2,000
layers each. CPU time, best of seven rounds over the same images; the results of all ways are compared before they are
timed. Sizes are measured one after the other, each with both ways back to back.
"""

import json
import random
import time
from collections.abc import Callable

from _catalog import a_catalog, popularity, some_images
from lamina.layers.layer_index import LayerIndex
from lamina.layers.layer_set import LayerSet
from lamina.layers.not_held import update_rows
from lamina.model.image import Image

NAME = "layer-scoring"
SUMMARY = "µs to compute what every node misses of an image, 100 to 15,000 nodes; against a set per node"

SIZES = (100, 1_000, 5_000, 15_000)
IMAGES = 4_000
ASKED = 100
ROUNDS = 7


def naive(held: list[frozenset[str]], image: Image) -> list[int]:
    """Return the missing bytes by checking all nodes and all layers."""
    sizes = {layer.digest: layer.size for layer in image.layers}
    return [sum(size for digest, size in sizes.items() if digest not in node) for node in held]


def best(run: Callable[[], object], calls: int) -> float:
    """Return the CPU µs per call of the best of several rounds of *calls* calls."""
    took = []
    for _ in range(ROUNDS):
        begin = time.thread_time_ns()
        run()
        took.append(time.thread_time_ns() - begin)
    return min(took) / calls / 1_000


def measure(size: int, rng: random.Random, images: list[Image], weights: list[float]) -> dict[str, float]:
    """Build a cluster and time all ways."""
    index = LayerIndex()
    held: list[frozenset[str]] = []
    for row in range(size):
        on_node = some_images(rng, images, weights, rng.randrange(300, 2_000))
        index.hold(row, on_node, by_prefix=False)
        held.append(frozenset(layer.digest for image in on_node for layer in image.layers))
    asked = rng.choices(images, cum_weights=weights, k=ASKED)
    for image in asked[:5]:
        wanted = index.want([image])
        update_rows(index, wanted, size)
        assert naive(held, image) == wanted.download[:size].tolist(), "both ways must agree"
        index.unwant(wanted)
    few = asked[: max(2, 20_000 // size)]
    kept = [index.want([image]) for image in asked]

    def cold() -> None:
        for image in asked:
            wanted = index.want([image])
            update_rows(index, wanted, size)
            index.unwant(wanted)

    def warm() -> None:
        for wanted in kept:
            update_rows(index, wanted, size)

    figures = {
        "sets": best(lambda: [naive(held, image) for image in few], len(few)),
        "cold": best(cold, len(asked)),
    }
    warm()
    return figures | {"warm": best(warm, len(kept)), "patched": patched(index, kept, size)}


def patched(index: LayerIndex, kept: list[LayerSet], size: int) -> float:
    """Return the CPU µs of a request after one node has changed."""
    took = []
    for round_ in range(ROUNDS):
        index.touch(round_ % size)
        begin = time.thread_time_ns()
        for wanted in kept:
            update_rows(index, wanted, size)
        took.append(time.thread_time_ns() - begin)
    return min(took) / len(kept) / 1_000


def main() -> dict[str, object]:
    """Run all sizes and print the table."""
    rng = random.Random(1)
    images, weights = a_catalog(rng, IMAGES), popularity(IMAGES)
    rows = {}
    print(f"{'nodes':>8} {'sets':>10} {'cold':>8} {'warm':>8} {'patched':>8} {'sets / cold':>12}")
    for size in SIZES:
        one = rows[size] = measure(size, rng, images, weights)
        print(
            f"{size:>8,} {one['sets']:>10,.1f} {one['cold']:>8.1f} {one['warm']:>8.2f} {one['patched']:>8.1f}"
            f" {one['sets'] / one['cold']:>12,.0f}",
            flush=True,
        )
    return {
        "speedup_vs_sets_5000": round(rows[5_000]["sets"] / rows[5_000]["cold"], 1),
        **{
            f"{what}_us": {str(size): round(one[what], 2) for size, one in rows.items()}
            for what in ("cold", "warm", "patched", "sets")
        },
    }


if __name__ == "__main__":
    print(json.dumps({"benchmark": NAME, **main()}))
