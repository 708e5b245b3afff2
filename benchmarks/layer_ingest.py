"""
Cost of processing the reports of nodes.

Every node reports 100 images once (the work of a starting scheduler). Then single nodes report one image more or one
less, while 100 sets of images that pods use are kept up to date. CPU time of processing the reports, without creating
them. Memory is that of the index, as Python's allocator reports it.
"""

import gc
import json
import random
import time
import tracemalloc

import msgspec

from _catalog import a_catalog, popularity
from lamina.layers.inventory import Inventory
from lamina.model.image import Image
from lamina.model.layer_report import LayerReport
from lamina.testing import held

NAME = "layer-ingest"
SUMMARY = "CPU seconds for every node's first report of 100 images, µs per change after that, and memory"

SIZES = (100, 1_000, 5_000, 15_000)
IMAGES = 4_000
HELD = 100
CHANGES = 2_000
WANTED = 100


def reports(size: int, rng: random.Random, images: list[Image], weights: list[float]) -> list[LayerReport]:
    """Return the first report of each node."""
    made = []
    for number in range(size):
        on_node: dict[str, Image] = {}
        while len(on_node) < HELD:
            on_node.update({image.digest: image for image in rng.choices(images, cum_weights=weights, k=HELD)})
        made.append(held(f"node-{number}", *list(on_node.values())[:HELD]))
    return made


def an_inventory(size: int, images: list[Image]) -> Inventory:
    """Return an inventory with all images and nodes, and without reports."""
    inventory = Inventory()
    inventory.learn(images)
    for number in range(size):
        inventory.join(f"node-{number}", "", number)
    return inventory


def first(inventory: Inventory, made: list[LayerReport]) -> float:
    """Return the CPU seconds of processing every node's first report."""
    begin = time.process_time()
    for report in made:
        inventory.report(report)
    return time.process_time() - begin


def changes(inventory: Inventory, made: list[LayerReport], rng: random.Random, images: list[Image]) -> float:
    """Return the CPU µs of a report that differs by one image, and of bringing one set of images up to date."""
    kept = [inventory.readiness_cache.readiness((image.names[0],)) for image in images[:WANTED]]
    for ready in kept:
        assert ready is not None, "all images are known"
        inventory.readiness_cache.look(ready, len(made))
    now = list(made)
    coming = []
    for number in range(CHANGES):
        place = rng.randrange(len(now))
        report = now[place]
        extra = held("any", rng.choice(images)).images if number % 2 else ()
        now[place] = msgspec.structs.replace(
            report, sequence=report.sequence + 1, images=report.images[: HELD - 1 + number % 2] + extra
        )
        coming.append((now[place], kept[number % WANTED]))
    begin = time.process_time()
    for report, asked in coming:
        inventory.report(report)
        assert asked is not None, "all images are known"
        inventory.readiness_cache.look(asked, len(made))
    return (time.process_time() - begin) / CHANGES * 1e6


def memory(images: list[Image], made: list[LayerReport]) -> float:
    """Return the MiB that reports add to an inventory."""
    inventory = an_inventory(len(made), images)
    gc.collect()
    tracemalloc.start()
    first(inventory, made)
    gc.collect()
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return used / 2**20


def main() -> dict[str, object]:
    """Run all sizes and print the table."""
    rng = random.Random(1)
    images, weights = a_catalog(rng, IMAGES), popularity(IMAGES)
    rows = {}
    print(f"{'nodes':>8} {'first reports, s':>18} {'a change, µs':>14} {'MiB':>8}")
    for size in SIZES:
        made = reports(size, rng, images, weights)
        inventory = an_inventory(size, images)
        took = [first(inventory, made), *(first(an_inventory(size, images), made) for _ in range(2))]
        one = rows[size] = {
            "seconds": min(took),
            "change": changes(inventory, made, rng, images),
            "mib": memory(images, made),
        }
        print(f"{size:>8,} {one['seconds']:>18.3f} {one['change']:>14.1f} {one['mib']:>8.1f}", flush=True)
    return {
        "cpu_seconds_5000": round(rows[5_000]["seconds"], 3),
        "us_per_change": round(rows[5_000]["change"], 1),
        "mib_5000": round(rows[5_000]["mib"], 1),
        "cpu_seconds": {str(size): round(one["seconds"], 3) for size, one in rows.items()},
        "us_per_change_by_nodes": {str(size): round(one["change"], 1) for size, one in rows.items()},
        "mib": {str(size): round(one["mib"], 1) for size, one in rows.items()},
    }


if __name__ == "__main__":
    print(json.dumps({"benchmark": NAME, **main()}))
