"""
Share of common bytes of images that is a common prefix: the plot docs/prefix-or-set.svg.

Some runtimes reuse any layer they have (set), others only a layer on top of the same lower layers (prefix). A node
holds k random images of a catalog and another random one arrives: which share of its bytes is on the node, by either
rule? And for two successive versions of one tag? Needs the real catalogs; without them it prints that and does nothing.
Draws the plot again; the same catalogs give the same plot.
"""

import itertools
import json
import random
from pathlib import Path

from _real_data import (
    OFFICIAL,
    PUBLIC,
    SNAPSHOT,
    data_folder,
    distinct,
    machine_learning,
    missing,
    official,
    public,
    snapshot,
)
from lamina.model.image import Image

NAME = "prefix-or-set"
SUMMARY = "which part of shared bytes is shared as a prefix, on real catalogs; draws docs/prefix-or-set.svg"
NEEDED = (*PUBLIC, *OFFICIAL, *SNAPSHOT)

PLOT = Path(__file__).resolve().parents[1] / "docs" / "prefix-or-set.svg"
HELD = (20, 50, 100)
TRIALS = 2_000
COLOURS = ("#2f6f8f", "#e0a030")


class Node:
    """The layers of a node, for both rules."""

    def __init__(self, images: list[Image]) -> None:
        """Store the layers of these images."""
        self.blobs = {layer.digest for image in images for layer in image.layers}
        self.chains = {chain for image in images for chain in chains(image)}

    def shared(self, image: Image) -> tuple[int, int]:
        """Return how many bytes of an image are on the node, as a set and as a prefix."""
        sizes = {layer.digest: layer.size for layer in image.layers}
        as_set = sum(size for digest, size in sizes.items() if digest in self.blobs)
        known = 0
        for chain in chains(image):
            if chain not in self.chains:
                break
            known += 1
        return as_set, sum({layer.digest: layer.size for layer in image.layers[:known]}.values())


def chains(image: Image) -> list[int]:
    """Return a hash for every stack of the image's layers, from the bottom up."""
    found, below = [], 0
    for layer in image.layers:
        below = hash((below, layer.digest))  # valid within this process only
        found.append(below)
    return found


def arriving(images: list[Image], held: int, rng: random.Random) -> tuple[float, float]:
    """Return the mean share of bytes on a node with *held* random images when another arrives."""
    total = as_set = as_prefix = 0
    for _ in range(TRIALS):
        image, *others = rng.sample(images, held + 1)
        both = Node(others).shared(image)
        total, as_set, as_prefix = total + image.size, as_set + both[0], as_prefix + both[1]
    return as_set / total, as_prefix / total


def successive(by_repository: dict[str, list[Image]]) -> tuple[float, float]:
    """Return the share of bytes that a version finds on a node that has its predecessor."""
    total = as_set = as_prefix = 0
    for images in by_repository.values():
        for before, after in itertools.pairwise(images):
            both = Node([before]).shared(after)
            total, as_set, as_prefix = total + after.size, as_set + both[0], as_prefix + both[1]
    return as_set / total, as_prefix / total


def draw(rows: list[tuple[str, float, float]]) -> str:
    """Return the plot: a bar for each share, prefix below set."""
    width, left, bar, gap = 760, 250, 12, 18
    height = 70 + len(rows) * (2 * bar + gap)
    most = max(row[1] for row in rows)
    size = f'width="{width}" height="{height}"'
    title = "Share of an arriving image's bytes that is on the node"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
        f'<rect {size} fill="white"/>',
        f'<text x="16" y="22" font-size="14" font-weight="bold">{title}</text>',
    ]
    for number, what in enumerate(("as a set of layers", "as a prefix")):
        x = 250 + 160 * number
        parts.append(f'<rect x="{x}" y="34" width="12" height="12" fill="{COLOURS[number]}"/>')
        parts.append(f'<text x="{x + 18}" y="44">{what}</text>')
    for number, (name, *shares) in enumerate(rows):
        y = 60 + number * (2 * bar + gap)
        parts.append(f'<text x="{left - 8}" y="{y + bar + 4}" text-anchor="end">{name}</text>')
        for line, share in enumerate(shares):
            length = round((width - left - 70) * share / most, 1)
            top = y + line * bar
            parts.append(f'<rect x="{left}" y="{top}" width="{length}" height="{bar - 1}" fill="{COLOURS[line]}"/>')
            parts.append(f'<text x="{left + length + 6}" y="{top + bar - 2}">{share:.1%}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def main() -> dict[str, object]:
    """Measure and draw."""
    folder = data_folder(NEEDED)
    if folder is None:
        print(f"skipped: {missing(NEEDED)}")
        return {"skipped": missing(NEEDED)}
    everything, learning, history = public(folder), machine_learning(folder), official(folder)
    catalogs: dict[str, list[Image]] = {
        "official, end of 2019": _all(snapshot(folder)),
        "official, up to 30 versions": _all(history),
        "public 2024": _all(everything),
        "machine learning 2024": _all({name: everything[name] for name in learning}),
    }
    rng = random.Random(1)
    rows: list[tuple[str, float, float]] = []
    figures: dict[str, object] = {}
    print(f"{'':<28} {'k':>5} {'set':>8} {'prefix':>8} {'prefix / set':>13}")
    for name, images in catalogs.items():
        for held in HELD:
            as_set, as_prefix = arriving(images, held, rng)
            _tell(name, str(held), as_set, as_prefix)
            figures[f"{name}, k={held}"] = [round(as_set, 4), round(as_prefix, 4)]
            if held == 50:
                rows.append((f"{name}, 50 held", as_set, as_prefix))
    as_set, as_prefix = successive(history)
    _tell("next official version", "1", as_set, as_prefix)
    figures["next official version"] = [round(as_set, 4), round(as_prefix, 4)]
    rows.append(("next official version, one held", as_set, as_prefix))
    PLOT.write_text(draw(rows), encoding="utf-8")
    print(f"drew {PLOT.name}")
    return {"share_of_bytes_set_and_prefix": figures}


def _all(by_repository: dict[str, list[Image]]) -> list[Image]:
    return distinct([image for name in sorted(by_repository) for image in by_repository[name]])


def _tell(name: str, held: str, as_set: float, as_prefix: float) -> None:
    print(f"{name:<28} {held:>5} {as_set:>8.3f} {as_prefix:>8.3f} {as_prefix / as_set:>13.3f}", flush=True)


if __name__ == "__main__":
    print(json.dumps({"benchmark": NAME, **main()}))
