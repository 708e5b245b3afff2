"""
kube-scheduler alone, without batching, asking one who says nothing, and asking the extender: pods bound per second.

The cluster is that of scheduler-pair (real etcd and kube-apiserver, nodes that exist in the API only), with layers told for
every node. In each round four trials are run in an order drawn from a seed: kube-scheduler as it comes; the same with
the feature gate OpportunisticBatching off, which is what configuring any extender does to it; the same asking a process that
reads no question and answers `[]`, which shows what asking costs whoever is asked; the same with `lamina extender --agents
layers` asked for scores by names (nodeCacheCapable, no filter verb, default sampling: 420 of 1,000 and 500 of 5,000 nodes).
Whoever is asked runs only in its own trials; the extender knows the cluster before they begin. Losses are taken within
each round and their median is told; `throughput_loss` is against kube-scheduler as it comes, `asking_loss` and
`beyond_batching` against batching off, `beyond_asking` against the one who says nothing. All share the machine's cores: API
server, etcd, scheduler, extender and this benchmark.

What a pod costs the extender is its whole processor time from the first bind to the last: questions, and the watch that
tells it of every pod; `null_cpu_us_per_pod` is what the one who says nothing needs. `extender_cpu_us_in_all` counts besides
what the same pods cost the extender when they are created and deleted.

LAMINA_QUICK=1 runs one round on 200 nodes; LAMINA_ROUNDS=N changes the number of rounds; LAMINA_ALL_NODES=1 sets
`percentageOfNodesToScore: 100` for all, as is printed for `layers`.
"""

import json
import os
import random
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from _contest import BATCHING_OFF, KUBE, Contender, Trial, allow_layers, grow, run
from _extender import beside, null_beside
from testbed import Testbed

NAME: Final = "extender-pair"
SUMMARY: Final = "kube-scheduler alone and with the extender: pods bound per second and CPU per pod, in turns"

CRDS: Final = Path(__file__).resolve().parent.parent / "deploy" / "crds"
SEED: Final = 5
PODS: Final = 1_000
ROUNDS: Final = int(os.environ.get("LAMINA_ROUNDS", "5"))
ALL_NODES: Final = bool(os.environ.get("LAMINA_ALL_NODES"))
GOALS: Final = {"beyond_batching_goal": 0.15, "extender_cpu_us_per_pod_goal": 150}


class Round(msgspec.Struct, frozen=True):
    """One trial of each kind, in some order."""

    nodes: int
    stock: Trial
    batching_off: Trial
    asking: Trial
    """With somebody who says nothing."""
    extended: Trial
    in_all_us: float
    """Processor time of the extender for a pod, from before it was created until it was deleted."""
    answered: float
    """Questions it answered."""


class Series:
    """Runs rounds and prints every trial."""

    def __init__(self, bed: Testbed, folder: Path) -> None:
        self._bed, self._folder = bed, folder
        self._rng = random.Random(SEED)
        self._trials = self.nodes = 0
        print(
            f"{'nodes':>6} {'trial':<14} {'pods/s':>7} {'kube µs/pod':>12} {'extender µs/pod':>16} {'first bind':>11}"
        )

    def grow(self, nodes: int) -> None:
        """Add nodes until there are so many, and tell what they hold."""
        grow(self._bed, self.nodes, nodes)
        self.nodes = nodes

    def rounds(self, count: int, pods: int) -> list[Round]:
        """Run so many rounds."""
        return [self._round(pods) for _ in range(count)]

    def _round(self, pods: int) -> Round:
        found: dict[str, Trial] = {}
        cost = answered = 0.0
        kinds = ["stock", "batching off", "null", "extender"]
        self._rng.shuffle(kinds)
        for kind in kinds:
            log = self._folder / f"extender-{self._trials}.log"
            if kind == "null":
                with null_beside(log) as nobody:
                    asked = (nobody.entry("null"),)
                    found[kind] = self._trial(
                        Contender(KUBE, all_nodes=ALL_NODES, extenders=asked), pods, nobody.process.pid
                    )
            elif kind == "extender":
                with beside(self._bed, "layers", log) as extender:
                    before = extender.process.cpu_seconds()
                    asked = (extender.entry("layers"),)
                    found[kind] = self._trial(
                        Contender(KUBE, all_nodes=ALL_NODES, extenders=asked), pods, extender.process.pid
                    )
                    cost = (extender.process.cpu_seconds() - before) / pods * 1e6
                    answered = extender.counted("lamina_extender_answers_total")
            else:
                flags = BATCHING_OFF if kind == "batching off" else ()
                found[kind] = self._trial(Contender(KUBE, all_nodes=ALL_NODES, flags=flags), pods)
            trial = found[kind]
            told = f"{trial.beside_us:>16.0f}" if trial.beside_us else f"{'':>16}"
            print(
                f"{self.nodes:>6,} {kind:<14} {trial.pods_per_second:>7.0f} {trial.cpu_us:>12.0f} {told}"
                f" {trial.first_after:>10.1f}s",
                flush=True,
            )
        return Round(
            self.nodes, found["stock"], found["batching off"], found["null"], found["extender"], cost, answered
        )

    def _trial(self, contender: Contender, pods: int, beside: int = 0) -> Trial:
        self._trials += 1
        return run(self._bed, contender, pods, self._trials, beside)


def summary(rounds: Sequence[Round], suffix: str = "") -> dict[str, Any]:
    """Return medians over rounds, with the best and worst of the losses."""
    losses = {
        "throughput_loss": [1 - one.extended.pods_per_second / one.stock.pods_per_second for one in rounds],
        "batching_off_loss": [1 - one.batching_off.pods_per_second / one.stock.pods_per_second for one in rounds],
        "asking_loss": [1 - one.asking.pods_per_second / one.batching_off.pods_per_second for one in rounds],
        "beyond_batching": [1 - one.extended.pods_per_second / one.batching_off.pods_per_second for one in rounds],
        "beyond_asking": [1 - one.extended.pods_per_second / one.asking.pods_per_second for one in rounds],
    }
    found: dict[str, Any] = {f"rounds{suffix}": len(rounds)}
    for name, each in losses.items():
        found[f"{name}{suffix}"] = round(statistics.median(each), 3)
        found[f"{name}{suffix}_spread"] = [round(min(each), 3), round(max(each), 3)]
    found[f"extender_cpu_us_per_pod{suffix}"] = round(statistics.median(one.extended.beside_us for one in rounds), 1)
    found[f"null_cpu_us_per_pod{suffix}"] = round(statistics.median(one.asking.beside_us for one in rounds), 1)
    found[f"extender_cpu_us_in_all{suffix}"] = round(statistics.median(one.in_all_us for one in rounds), 1)
    for kind in ("stock", "batching_off", "asking", "extended"):
        rates = [getattr(one, kind).pods_per_second for one in rounds]
        found[f"pods_per_second_{kind}{suffix}"] = round(statistics.median(rates), 1)
        costs = [getattr(one, kind).cpu_us_after_first for one in rounds]
        found[f"kube_cpu_us_{kind}{suffix}"] = round(statistics.median(costs), 1)
    found[f"unanswered{suffix}"] = sum(max(0.0, one.extended.pods - one.answered) for one in rounds)
    return found


def main() -> dict[str, object]:
    """Start a control plane and run what is wanted."""
    flags = {"kube-apiserver": ["--delete-collection-workers=8"]}
    with tempfile.TemporaryDirectory() as folder, Testbed.start(flags=flags) as bed:
        allow_layers(bed, CRDS)
        series = Series(bed, Path(folder))
        if os.environ.get("LAMINA_QUICK"):
            series.grow(200)
            return {"nodes": 200, **summary(series.rounds(1, 200))}
        series.grow(1_000)
        small = series.rounds(ROUNDS, PODS)
        series.grow(5_000)
        large = series.rounds(ROUNDS, PODS)
        return {"nodes": 5_000, **summary(large), **summary(small, "_1000"), **GOALS}


if __name__ == "__main__":
    print(json.dumps({"benchmark": NAME, **main()}))
