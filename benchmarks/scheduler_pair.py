"""
Lamina and kube-scheduler on one API server, in turns: pods bound per second, and CPU time per pod.

A real etcd and kube-apiserver (`testbed`) hold 1,000 and then 5,000 nodes that exist in the API only, as in
scheduler_perf's SchedulingBasic: 4 cores, 32 GiB, 110 pods. A trial creates pending pods (100m and 500Mi, one of 200
images, one of 50 labels), starts one scheduler, and watches the pods (`_contest`). Pairs run back to back, in an order
drawn from a seed; pods are deleted after every trial, nodes stay. Both write one Binding and one Event for each pod,
use the same user, may send 10,000 requests a second and elect no leader. Lamina runs kube-scheduler's default plugins
and always evaluates every node; kube-scheduler at 5,000 nodes scores 500 of them unless configured to score all.

API server, etcd, scheduler and this benchmark share the machine's cores, so only the ratios are reliable. If they keep
all cores busy, the throughput ratio is the ratio of all CPU time that a pod costs; the columns show whose time it is.

Four further workloads follow at 5,000 nodes (`_pair_workloads`). Preemption is measured from the first eviction to the
last binding. On two cores with a load of 15, all rounds take about 40 minutes.

Environment variables choose less, for development:

    LAMINA_QUICK=1                          one pair of each kind on 200 nodes
    LAMINA_ROUNDS=large,pod_affinity:1      only these rounds; a number replaces their number of pairs
    LAMINA_PROFILE=FILE                     Lamina alone under cProfile, once for each chosen round (large)
"""

import json
import os
import random
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from _contest import BASIC, KUBE, Contender, Trial, Workload, allow_layers, run, tell_layers
from _pair_workloads import CHURN, POD_AFFINITY, PREEMPTION, TOPOLOGY_SPREAD, add_priorities
from _processes import PROFILE
from testbed import Testbed

NAME: Final = "scheduler-pair"
SUMMARY: Final = "Lamina against kube-scheduler on one API server: pods bound per second and CPU per pod, in pairs"

CRDS: Final = Path(__file__).resolve().parent.parent / "deploy" / "crds"
SEED: Final = 11
PODS: Final = 2_000
PODS_ALL_NODES: Final = 1_000
"""Fewer pods, because kube-scheduler is slow when it scores every node."""
LAMINA: Final = "lamina"
GOALS: Final = {"throughput_ratio_goal": 2.0, "throughput_ratio_all_nodes_goal": 5.0, "cpu_ratio_goal": 0.25}


class Round(msgspec.Struct, frozen=True):
    """A number of pairs of one kind."""

    label: str
    pairs: int
    pods: int
    all_nodes: bool = False
    workload: Workload = BASIC


OTHER_WORKLOADS: Final = (
    Round("pod_affinity", 5, 1_000, workload=POD_AFFINITY),
    Round("topology_spread", 1, 1_000, workload=TOPOLOGY_SPREAD),
    Round("preemption", 1, 500, workload=PREEMPTION),
    Round("churn", 1, PODS, workload=CHURN),
)
GROUPS: Final = (
    (1_000, (Round("small", 3, PODS),)),
    (5_000, (Round("large", 5, PODS), Round("all_nodes", 2, PODS_ALL_NODES, all_nodes=True))),
    (5_000, OTHER_WORKLOADS),
)
"""Number of nodes, and the rounds whose pairs are mixed."""
BALANCED: Final = "balanced"
ALONE: Final = 2
"""Trials of lamina-balanced (round `balanced`), which has no counterpart."""
SUFFIXES: Final = {"large": "", "all_nodes": "_all_nodes", "small": "_1000"}
"""Rounds whose figures are printed in full, and what their keys end with."""
ROUNDS: Final = "LAMINA_ROUNDS"


class Pair(msgspec.Struct, frozen=True):
    """Two trials, back to back."""

    label: str
    lamina: Trial
    kube: Trial


class Series:
    """Runs pairs and prints every trial."""

    def __init__(self, bed: Testbed) -> None:
        self._bed = bed
        self._rng = random.Random(SEED)
        self._trials = 0
        self.nodes = 0
        print(
            f"{'nodes':>6} {'scheduler':<24} {'pods/s':>7} {'with events':>12} {'µs/pod':>7} {'after start':>12}"
            f" {'server':>7} {'etcd':>6} {'bench':>6} {'first bind':>11} {'events':>12}"
        )

    def grow(self, nodes: int) -> None:
        """Add nodes until there are *nodes*."""
        wanted = range(self.nodes, nodes)
        self._bed.add_nodes(
            {
                "name": f"node-{number:05}",
                "cpu": "4",
                "memory": "32Gi",
                "labels": {"topology.kubernetes.io/zone": f"zone-{'abc'[number % 3]}"},
            }
            for number in wanted
        )
        self.nodes = nodes

    def pairs(self, rounds: Sequence[Round]) -> list[Pair]:
        """Run pairs of several kinds, mixed."""
        order = [one for one in rounds for _ in range(one.pairs)]
        self._rng.shuffle(order)
        return [self._pair(one) for one in order]

    def _pair(self, one: Round) -> Pair:
        both = [Contender(LAMINA, "kube-default", one.all_nodes), Contender(KUBE, all_nodes=one.all_nodes)]
        self._rng.shuffle(both)
        found = {contender.name: self.trial(contender, one.pods, one.workload) for contender in both}
        return Pair(one.label, found[LAMINA], found[KUBE])

    def trial(self, contender: Contender, pods: int, workload: Workload = BASIC) -> Trial:
        """Run one scheduler and print its figures."""
        self._trials += 1
        found = run(self._bed, contender, pods, self._trials, workload=workload, nodes=self.nodes)
        words = (contender.name, contender.profile, "all nodes" if contender.all_nodes else "")
        name = " ".join(filter(None, words if workload is BASIC else (contender.name, workload.name)))
        print(
            f"{self.nodes:>6,} {name[:24]:<24} {found.pods_per_second:>7.0f} {found.with_events:>12.0f} {found.cpu_us:>7.0f}"
            f" {found.cpu_us_after_first:>12.0f} {found.server_us:>7.0f} {found.etcd_us:>6.0f} {found.own_us:>6.0f} {found.first_after:>10.1f}s"
            f" {found.events:>6}/{found.pods}",
            flush=True,
        )
        return found


def summary(pairs: Sequence[Pair], label: str, suffix: str) -> dict[str, Any]:
    """Return medians over the pairs of one kind, with the worst and the best pair of the ratios."""
    mine = [pair for pair in pairs if pair.label == label]
    if not mine:
        return {}
    found: dict[str, Any] = {f"pairs{suffix}": len(mine)}
    ratios: dict[str, Callable[[Trial], float]] = {
        "throughput_ratio": lambda trial: trial.pods_per_second,
        "throughput_ratio_with_events": lambda trial: trial.with_events,
        "cpu_ratio": lambda trial: trial.cpu_us,
        "cpu_ratio_after_first_bind": lambda trial: trial.cpu_us_after_first,
    }
    for name, figure in ratios.items():
        each = sorted(figure(pair.lamina) / figure(pair.kube) for pair in mine)
        found[f"{name}{suffix}"] = round(statistics.median(each), 3)
        found[f"{name}{suffix}_spread"] = [round(each[0], 3), round(each[-1], 3)]
    for who in ("lamina", "kube"):
        trials = [getattr(pair, who) for pair in mine]
        for name in ("pods_per_second", "cpu_us", "cpu_us_after_first", "server_us", "etcd_us", "first_after"):
            found[f"{who}_{name}{suffix}"] = round(statistics.median(getattr(trial, name) for trial in trials), 1)
        found[f"{who}_events_missing{suffix}"] = sum(trial.pods - trial.events for trial in trials)
    return found


def ratios(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Return the throughput ratio of each other workload: the median and all values."""
    found: dict[str, Any] = {}
    for one in OTHER_WORKLOADS:
        mine = [pair for pair in pairs if pair.label == one.label]
        each = sorted(round(pair.lamina.pods_per_second / pair.kube.pods_per_second, 3) for pair in mine)
        if each:
            found |= {f"{one.label}_ratio": round(statistics.median(each), 3), f"{one.label}_ratios": each}
    return found


def chosen() -> dict[str, int]:
    """Return the rounds of `ROUNDS` with their number of pairs (0: as usual); empty for all rounds."""
    known = {one.label for _, rounds in GROUPS for one in rounds} | {BALANCED}
    found: dict[str, int] = {}
    for word in os.environ.get(ROUNDS, "").replace(",", " ").split():
        label, colon, pairs = word.partition(":")
        if label not in known or (colon and not (pairs.isdecimal() and int(pairs))):
            raise SystemExit(
                f"{ROUNDS}: {word!r} is not a round; choose from {', '.join(sorted(known))}, or NAME:PAIRS"
            )
        found[label] = int(pairs or 0)
    return found


def narrowed(rounds: Sequence[Round], wanted: dict[str, int]) -> list[Round]:
    """Return the rounds that are *wanted*, with their number of pairs."""
    if not wanted:
        return list(rounds)
    return [msgspec.structs.replace(one, pairs=wanted[one.label] or one.pairs) for one in rounds if one.label in wanted]


def full(bed: Testbed, wanted: dict[str, int]) -> dict[str, Any]:
    """Run everything, or what is *wanted*."""
    series = Series(bed)
    pairs: list[Pair] = []
    for nodes, rounds in GROUPS:
        mine = narrowed(rounds, wanted)
        if mine:
            series.grow(nodes)
            pairs += series.pairs(mine)
    found: dict[str, Any] = {"nodes": series.nodes}
    for label, suffix in SUFFIXES.items():
        found |= summary(pairs, label, suffix)
    found |= ratios(pairs)
    if not wanted or BALANCED in wanted:
        series.grow(5_000)
        tell_layers(bed, 5_000)
        alone = [series.trial(Contender(LAMINA, "lamina-balanced"), PODS) for _ in range(wanted.get(BALANCED) or ALONE)]
        found["lamina_balanced_pods_per_second"] = round(statistics.median(one.pods_per_second for one in alone), 1)
    return found | GOALS


def quick(bed: Testbed) -> dict[str, Any]:
    """Run one pair of each kind on few nodes."""
    series = Series(bed)
    series.grow(200)
    pairs = series.pairs((Round("large", 1, 200),))
    pairs += series.pairs([msgspec.structs.replace(one, pairs=1, pods=100) for one in OTHER_WORKLOADS])
    return {"nodes": 200, **summary(pairs, "large", ""), **ratios(pairs)}


def profiled(bed: Testbed, wanted: dict[str, int]) -> dict[str, Any]:
    """Run Lamina under a profiler, once for each round that is *wanted*."""
    series = Series(bed)
    series.grow(5_000)
    for _, rounds in GROUPS:
        for one in narrowed(rounds, wanted or {"large": 0}):
            series.trial(Contender(LAMINA, "kube-default", one.all_nodes), one.pods, one.workload)
    return {"nodes": 5_000, "profile": os.environ[PROFILE]}


def main() -> dict[str, object]:
    """Start a control plane and run the selected trials."""
    wanted = chosen()
    flags = {"kube-apiserver": ["--delete-collection-workers=8"]}
    with Testbed.start(flags=flags) as bed:
        allow_layers(bed, CRDS)
        add_priorities(bed)
        if os.environ.get(PROFILE):
            return profiled(bed, wanted)
        return quick(bed) if os.environ.get("LAMINA_QUICK") else full(bed, wanted)


if __name__ == "__main__":
    print(json.dumps({"benchmark": NAME, **main()}))
