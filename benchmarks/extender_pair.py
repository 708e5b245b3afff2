"""
kube-scheduler alone, without batching, with a null extender, and with Lamina's extender: pods bound per second.

The cluster is that of scheduler-pair (real etcd and kube-apiserver, nodes that exist in the API only), with layers
reported for every node. Each round runs four trials in an order drawn from a seed: kube-scheduler with its defaults;
the same with the feature gate OpportunisticBatching off, which is the effect of configuring any extender; the same with
a null extender, a process that reads no request and answers `[]`, which shows the cost of calling an extender; the same
with `lamina extender --agents layers` called for scores by names (nodeCacheCapable, no filter verb, default sampling:
420 of 1,000 and 500 of 5,000 nodes). An extender runs only in its own trials and is synced before they begin. Losses
are computed within each round; the result is their median. `throughput_loss` is relative to the defaults, `asking_loss`
and `beyond_batching` to batching off, `loss_vs_null` to the null extender. API server, etcd, scheduler, extender and
this benchmark share the machine's cores.

The extender's cost per pod is its whole CPU time from the first bind to the last: requests, and the watch events of
every pod. `null_cpu_us_per_pod` is the cost of the null extender. `extender_cpu_us_in_all` also has the cost of the
creation and deletion of the same pods.

LAMINA_QUICK=1 runs one round on 200 nodes; LAMINA_ROUNDS=N changes the number of rounds; LAMINA_ALL_NODES=1 sets
`percentageOfNodesToScore: 100` for all, as is printed for `layers`. LAMINA_BEFORE=PYTHON adds a trial of the extender
that this interpreter has installed, for figures before and after a change in the same rounds. LAMINA_NODES=N measures
N nodes only.
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
ROUNDS: Final = int(os.environ.get("LAMINA_ROUNDS", "7"))
ALL_NODES: Final = bool(os.environ.get("LAMINA_ALL_NODES"))
BEFORE: Final = os.environ.get("LAMINA_BEFORE", "")
"""Python interpreter with the version to compare with."""
GOALS: Final = {"loss_vs_null_goal": 0.12, "extender_cpu_us_per_pod_goal": 650}


class Round(msgspec.Struct, frozen=True):
    """One trial of each kind, in some order."""

    nodes: int
    stock: Trial
    batching_off: Trial
    asking: Trial
    """With the null extender."""
    extended: Trial
    in_all_us: float
    """CPU time of the extender per pod in microseconds, from before its creation until after its deletion."""
    answered: float
    """Requests that the extender answered."""
    before: Trial | None = None
    """With the extender of `BEFORE`."""


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
        """Add nodes until there are *nodes*, and report what they hold."""
        grow(self._bed, self.nodes, nodes)
        self.nodes = nodes

    def rounds(self, count: int, pods: int) -> list[Round]:
        """Run *count* rounds."""
        return [self._round(pods) for _ in range(count)]

    def _round(self, pods: int) -> Round:
        found: dict[str, Trial] = {}
        cost = answered = 0.0
        kinds = ["stock", "batching off", "null", "extender", *(["before"] if BEFORE else [])]
        self._rng.shuffle(kinds)
        for kind in kinds:
            log = self._folder / f"extender-{self._trials}.log"
            if kind == "null":
                with null_beside(log) as null:
                    asked = (null.entry("null"),)
                    found[kind] = self._trial(
                        Contender(KUBE, all_nodes=ALL_NODES, extenders=asked), pods, null.process.pid
                    )
            elif kind == "before":
                with beside(self._bed, "layers", log, python=BEFORE) as extender:
                    asked = (extender.entry("layers"),)
                    found[kind] = self._trial(
                        Contender(KUBE, all_nodes=ALL_NODES, extenders=asked), pods, extender.process.pid
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
            self.nodes,
            found["stock"],
            found["batching off"],
            found["null"],
            found["extender"],
            cost,
            answered,
            found.get("before"),
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
        "loss_vs_null": [1 - one.extended.pods_per_second / one.asking.pods_per_second for one in rounds],
    }
    compared = [(one.before, one) for one in rounds if one.before is not None]
    if compared:
        losses["before_loss_vs_null"] = [
            1 - before.pods_per_second / one.asking.pods_per_second for before, one in compared
        ]
    found: dict[str, Any] = {f"rounds{suffix}": len(rounds)}
    if compared:
        found[f"before_cpu_us_per_pod{suffix}"] = round(statistics.median(one.beside_us for one, _ in compared), 1)
    for name, each in losses.items():
        found[f"{name}{suffix}"] = round(statistics.median(each), 3)
        found[f"{name}{suffix}_spread"] = [round(min(each), 3), round(max(each), 3)]
    found[f"extender_cpu_us_per_pod{suffix}"] = round(statistics.median(one.extended.beside_us for one in rounds), 1)
    costs = [one.extended.beside_us for one in rounds]
    found[f"extender_cpu_us_per_pod{suffix}_spread"] = [round(min(costs), 1), round(max(costs), 1)]
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
    """Start a control plane and run the selected rounds."""
    flags = {"kube-apiserver": ["--delete-collection-workers=8"]}
    with tempfile.TemporaryDirectory() as folder, Testbed.start(flags=flags) as bed:
        allow_layers(bed, CRDS)
        series = Series(bed, Path(folder))
        if os.environ.get("LAMINA_QUICK"):
            series.grow(200)
            return {"nodes": 200, **summary(series.rounds(1, 200))}
        if only := int(os.environ.get("LAMINA_NODES", "0")):
            series.grow(only)
            return {"nodes": only, **summary(series.rounds(ROUNDS, PODS)), **GOALS}
        series.grow(1_000)
        small = series.rounds(ROUNDS, PODS)
        series.grow(5_000)
        large = series.rounds(ROUNDS, PODS)
        return {"nodes": 5_000, **summary(large), **summary(small, "_1000"), **GOALS}


if __name__ == "__main__":
    print(json.dumps({"benchmark": NAME, **main()}))
