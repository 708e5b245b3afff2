"""
Play the validations and kwok sets of the QoS-driven scheduling experiments under every policy of POLICIES.

The scenarios are those of examples/qos, under the seeds 1 to SEEDS. If the data folder has the published workload
tables, validation 1 and 2 read them instead of drawing the order. Each class has the mean, the standard deviation and
the share `met` of controllers that keep their SLO; `evictions` are pods that were evicted in favour of others. All are
means over the seeds. The table shows the published figures of the real cluster and of kwok beside them.
"""

import json
import os
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Final

from _qos_logs import WORKLOADS
from _real_data import data_folder
from lamina.cli.compare.run_pool import cores
from lamina.cli.options.scheduler_profile import configuration
from lamina.simulator.run import simulate
from lamina.simulator.workloads import Scenario, load_scenario

NAME = "qos"
SUMMARY = "availability by class and evictions in the published workloads of QoS-driven scheduling"

EXAMPLES: Final = Path(__file__).resolve().parents[1] / "examples" / "qos"
POLICIES: Final[Mapping[str, str]] = {"priority": "kube-default"}
"""Policy → profile."""
SETS: Final = ("validation1", "validation2", "kwok80", "kwok120", "kwok160", "kwok200", "kwok256")
KWOK: Final = "kwok"
SEEDS: Final = int(os.environ.get("SEEDS", "3"))

PUBLISHED: Final[Mapping[tuple[str, str], str]] = {
    ("validation1", "priority"): "prod .999, batch .999, free .42 (sd .48, 41 % met); 38 to 54 evictions",
    ("validation2", "priority"): "batch .901 (sd .296, 90 % met)",
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
    classes = {group: {"mean": one.mean, "sd": one.sd, "met": one.met} for group, one in levels.classes.items()}
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
        f"{name} {one['mean']:.3f} (sd {one['sd']:.3f}, {one['met']:.0%} met)"
        for name, one in sorted(figures.items())
        if isinstance(one, dict)
    ]
    return f"{', '.join(classes)}; {figures['evictions']:g} evictions, {figures['capacity_lost']:.1%} capacity lost"


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
    print(json.dumps({"benchmark": NAME, "seeds": SEEDS, **record}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
