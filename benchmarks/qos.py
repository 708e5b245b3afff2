"""
Play the validations and kwok sets of the QoS-driven scheduling experiments under every policy of POLICIES.

The scenarios are those of examples/qos, under the seeds 1 to SEEDS. If the data folder has the published workload
tables, validation 1 and 2 read them instead of drawing the order. Each class has the mean, the standard deviation and
the share `met` of controllers that keep their SLO; `evictions` are pods that were evicted in favour of others. All are
means over the seeds. The table shows the published figures of the real cluster and of kwok beside them.

    ours_evictions_ratio    evictions under qos / evictions under qos-original, by set
    ours_met_at_least       whether at least the same share of each class keeps its SLO under qos as under qos-original, by set
    us_per_decision         cost of putting a pod into a queue of 10,000 pods of 500 controllers and taking the next one,
                            under the order of QosAware and under PrioritySort

SETS restricts the sets, e.g. ``SETS=validation1,validation2``; SEEDS is the number of seeds. DOCS=1 writes
docs/qos-results.md and its plot.
"""

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Final

import msgspec

from _qos_logs import WORKLOADS
from _qos_results import write_results
from _real_data import data_folder
from lamina.cli.compare.run_pool import cores
from lamina.cli.options.scheduler_profile import configuration
from lamina.model.events import PodSeen, TimePassed
from lamina.simulator.run import simulate
from lamina.simulator.workloads import Scenario, load_scenario
from lamina.testing import a_loop, a_pod

NAME = "qos"
SUMMARY = "availability by class and evictions in the published workloads of QoS-driven scheduling"

EXAMPLES: Final = Path(__file__).resolve().parents[1] / "examples" / "qos"
POLICIES: Final[Mapping[str, str]] = {"priority": "qos-measured", "qos-original": "qos-original", "qos": "qos"}
"""Policy → profile."""
ALL_SETS: Final = "validation1,validation2,kwok80,kwok120,kwok160,kwok200,kwok256"
SETS: Final = tuple(os.environ.get("SETS", ALL_SETS).split(","))
KWOK: Final = "kwok"
WAITING: Final = 10_000
CONTROLLERS: Final = 500
DECISIONS: Final = 200
SEEDS: Final = int(os.environ.get("SEEDS", "1"))

PUBLISHED: Final[Mapping[tuple[str, str], str]] = {
    ("validation1", "priority"): "prod .999, batch .999, free .42 (sd .48, 41 % met); 38 to 54 evictions",
    ("validation2", "priority"): "batch .901 (sd .296, 90 % met)",
    ("validation1", "qos-original"): "prod .999, batch .908 (sd .004), free .473 (sd .012); about 3,190 evictions",
    ("validation2", "qos-original"): "batch .895 (sd .008); about 2,480 evictions",
    ("kwok120", "qos-original"): "bronze .865 to .882, all keep the SLO",
    ("kwok160", "qos-original"): "bronze .554 to .570, all keep the SLO",
    ("kwok200", "qos-original"): "bronze .433 to .452, none keeps the SLO",
    ("kwok120", "priority"): "gold .999; 102 of 120 bronze at .9997, 18 near 0",
    ("kwok160", "priority"): "gold .999; 102 of 160 bronze served, 58 near 0",
    ("kwok200", "priority"): "gold .999; about 102 of 200 bronze served, 98 near 0",
}

Figures = dict[str, Any]


def scenario_of(name: str, seed: int) -> Scenario:
    """Return a scenario of examples/qos; a validation has the published table if there is one."""
    tables = {Path(table).name.split("-")[0]: table for table in WORKLOADS}
    folder = data_folder([tables[name]]) if name in tables else None
    if folder is None:
        return load_scenario(EXAMPLES / f"{name}.yaml", seed)
    with tempfile.TemporaryDirectory() as temporary:
        # Includes are relative to the file, and imports are read from the data folder.
        path = Path(temporary) / "scenario.yaml"
        (Path(temporary) / "cluster.yaml").write_bytes((EXAMPLES / "cluster.yaml").read_bytes())
        path.write_text(f"name: qos-{name}\ninclude: [cluster.yaml]\nimports: [{{qosWorkload: {tables[name]}}}]\n")
        return load_scenario(path, seed, folder)


def play(name: str, policy: str, seed: int) -> Figures:
    """Play one scenario under one policy."""
    result = simulate(scenario_of(name, seed), configuration(POLICIES[policy]), seed=seed)
    levels = result.service_levels
    assert levels is not None, "all scenarios promise something"
    classes = {
        group: {
            "mean": one.mean,
            "sd": one.sd,
            "met": one.met,
            "violation_seconds": one.violation_seconds,
            "deficit": one.deficit,
        }
        for group, one in levels.classes.items()
    }
    return {**classes, "evictions": result.preemptions, "capacity_lost": levels.capacity_lost}


def joined(runs: Sequence[Figures]) -> Figures:
    """Return the means of several runs, class by class."""
    found: Figures = {}
    for name, first in runs[0].items():
        if isinstance(first, dict):
            found[name] = {key: round(statistics.fmean(run[name][key] for run in runs), 4) for key in first}
        else:
            found[name] = round(statistics.fmean(run[name] for run in runs), 4)
    return found


def shown(figures: Figures) -> str:
    """Return one line of the table."""
    classes = [
        f"{name} {one['mean']:.3f} (sd {one['sd']:.3f}, {one['met']:.0%} met, deficit {one['deficit']:.0f} s)"
        for name, one in sorted(figures.items())
        if isinstance(one, dict)
    ]
    return f"{', '.join(classes)}; {figures['evictions']:g} evictions, {figures['capacity_lost']:.1%} capacity lost"


def evictions_ratio(policies: Mapping[str, Figures]) -> float | None:
    """Return evictions under qos by those under qos-original; None if there were none."""
    before = policies["qos-original"]["evictions"]
    return round(policies["qos"]["evictions"] / before, 3) if before else None


def met_at_least(policies: Mapping[str, Figures]) -> bool:
    """Return whether each class keeps its SLO under qos at least as often as under qos-original."""
    ours, others = policies["qos"], policies["qos-original"]
    return all(one["met"] >= others[name]["met"] for name, one in ours.items() if isinstance(one, dict))


def queue_cost(sort: str) -> float:
    """Return microseconds for taking a pod out of a long queue and putting another one in, while time passes."""
    loop = a_loop([sort, "DefaultBinder"])
    queue, profile = loop.queue, loop.profiles["default-scheduler"]
    pods = [
        msgspec.structs.replace(
            a_pod(
                f"p{number}",
                annotations={
                    "slo": f"{0.5 + number % 5 / 10:g}",
                    "controller": f"c{number % CONTROLLERS}",
                    "qosMeasuring": "average",
                },
            ),
            created_at=number / 100,
        )
        for number in range(WAITING + DECISIONS)
    ]
    for pod in pods[:WAITING]:
        loop.take(TimePassed(pod.created_at), PodSeen(pod))
    began = time.process_time()
    for number, pod in enumerate(pods[WAITING:]):
        queued = queue.pop()
        assert queued is not None
        # The pod is bound: its controller's metric changes.
        loop.followers.notice(PodSeen(msgspec.structs.replace(queued.pod, node_name="n")), queue.now)
        loop.take(TimePassed(WAITING / 100 + number / 10))
        loop.followers.notice(PodSeen(pod), queue.now)
        queue.add(pod, profile)
    return round((time.process_time() - began) / DECISIONS * 1e6, 1)


def main() -> int:
    """Play everything, print the table, end with one line of JSON."""
    tasks = [(name, policy, seed) for name in SETS for policy in POLICIES for seed in range(1, SEEDS + 1)]
    with ProcessPoolExecutor(cores()) as pool:
        runs = dict(zip(tasks, pool.map(play, *zip(*tasks, strict=True)), strict=True))
    figures: dict[str, dict[str, Figures]] = {}
    for name in SETS:
        for policy in POLICIES:
            one = joined([runs[name, policy, seed] for seed in range(1, SEEDS + 1)])
            figures.setdefault(name, {})[policy] = one
            print(f"{name:12} {policy:10} {shown(one)}")
            if (name, policy) in PUBLISHED:
                print(f"{'':12} {'published':10} {PUBLISHED[name, policy]}")
    record: dict[str, Any] = {name: policies for name, policies in figures.items() if not name.startswith(KWOK)}
    record[KWOK] = {name.removeprefix(KWOK): policies for name, policies in figures.items() if name.startswith(KWOK)}
    record["ours_evictions_ratio"] = {name: evictions_ratio(policies) for name, policies in figures.items()}
    record["ours_met_at_least"] = {name: met_at_least(policies) for name, policies in figures.items()}
    record["us_per_decision"] = {"PrioritySort": queue_cost("PrioritySort"), "QosAware": queue_cost("QosAware")}
    if os.environ.get("DOCS"):
        write_results(figures, published=PUBLISHED)
    print(json.dumps({"benchmark": NAME, "seeds": SEEDS, **record}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
