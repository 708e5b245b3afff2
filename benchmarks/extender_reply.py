"""
kube-scheduler that scores every node and calls the extender for all of them: the gain of a shorter answer.

The cluster and the trials are those of extender-pair, with `percentageOfNodesToScore: 100`, as `--print-config` prints
for `layers`. Each round runs three trials in an order drawn from a seed: without an extender and with batching off;
with the extender and `--reply sparse`, which omits nodes of the lowest level; and with `--reply best`, which returns a
hundred nodes. `gain` is the increase in pods bound per second from `sparse` to `best`, the median of the rounds.

LAMINA_QUICK=1 runs one round on 200 nodes; LAMINA_ROUNDS=N changes the number of rounds.
"""

import json
import os
import random
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from _contest import BATCHING_OFF, KUBE, Contender, Trial, allow_layers, grow, run
from _extender import beside
from testbed import Testbed

NAME: Final = "extender-reply"
SUMMARY: Final = "kube-scheduler that scores all nodes: what it gains when the extender names only the best hundred"

CRDS: Final = Path(__file__).resolve().parent.parent / "deploy" / "crds"
SEED: Final = 7
PODS: Final = 500
ROUNDS: Final = int(os.environ.get("LAMINA_ROUNDS", "3"))
# The names are keys of the JSON line, so "nobody" (no extender) stays as it was.
KINDS: Final = ("nobody", "sparse", "best")


def trial(bed: Testbed, kind: str, pods: int, number: int, folder: Path) -> Trial:
    """Run one trial."""
    if kind == "nobody":
        return run(bed, Contender(KUBE, all_nodes=True, flags=BATCHING_OFF), pods, number)
    with beside(bed, "layers", folder / f"{number}.log", ("--reply", kind)) as extender:
        asking = Contender(KUBE, all_nodes=True, extenders=(extender.entry("layers"),))
        return run(bed, asking, pods, number, extender.process.pid)


def rounds(bed: Testbed, nodes: int, pods: int, count: int, folder: Path) -> dict[str, Any]:
    """Run *count* rounds; return medians."""
    rng = random.Random(SEED)
    found: dict[str, list[Trial]] = {kind: [] for kind in KINDS}
    for turn in range(count):
        for kind in rng.sample(KINDS, len(KINDS)):
            number = nodes * 100 + turn * len(KINDS) + KINDS.index(kind)
            one = trial(bed, kind, pods, number, folder)
            found[kind].append(one)
            print(
                f"{nodes:>6,} {kind:<7} {one.pods_per_second:>7.0f} {one.cpu_us:>12.0f} {one.beside_us:>16.0f}",
                flush=True,
            )
    return summary(found, f"_{nodes}")


def summary(found: dict[str, list[Trial]], suffix: str) -> dict[str, Any]:
    """Return medians, and the gain of the shorter answer within each round."""
    both: Sequence[tuple[Trial, Trial]] = list(zip(found["sparse"], found["best"], strict=True))
    gains = [best.pods_per_second / sparse.pods_per_second - 1 for sparse, best in both]
    result: dict[str, Any] = {
        f"rounds{suffix}": len(gains),
        f"gain{suffix}": round(statistics.median(gains), 3),
        f"gain{suffix}_spread": [round(min(gains), 3), round(max(gains), 3)],
    }
    for kind, trials in found.items():
        result[f"pods_per_second_{kind}{suffix}"] = round(statistics.median(one.pods_per_second for one in trials), 1)
        result[f"kube_cpu_us_{kind}{suffix}"] = round(statistics.median(one.cpu_us_after_first for one in trials), 1)
        if kind != "nobody":
            result[f"extender_cpu_us_{kind}{suffix}"] = round(statistics.median(one.beside_us for one in trials), 1)
    return result


def main() -> dict[str, object]:
    """Start a control plane and run the selected rounds."""
    flags = {"kube-apiserver": ["--delete-collection-workers=8"]}
    sizes, pods, count = ((200,), 100, 1) if os.environ.get("LAMINA_QUICK") else ((1_000, 5_000), PODS, ROUNDS)
    found: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder, Testbed.start(flags=flags) as bed:
        allow_layers(bed, CRDS)
        print(f"{'nodes':>6} {'asking':<7} {'pods/s':>7} {'kube µs/pod':>12} {'extender µs/pod':>16}")
        there = 0
        for nodes in sizes:
            grow(bed, there, nodes)
            there = nodes
            found |= rounds(bed, nodes, pods, count, Path(folder))
    return found


if __name__ == "__main__":
    print(json.dumps({"benchmark": NAME, **main()}))
