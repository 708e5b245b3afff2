"""
Compare placement policies on sixteen clusters by bytes pulled, start times and peak load: docs/policy.md.

Runs every scenario of `_policy_scenarios` under every profile, with the same pods at the same times. Profiles are
compared by ratios to ``kube-default``, scenario by scenario and seed by seed, joined as geometric means; *worst* is the
largest single ratio. A start lasts from the binding until the containers run. 4b, in which kube-default breaks down
(hours of waiting pods, and as long to simulate), runs only if SCENARIOS names it, and is never in the means.
*layers_worth* compares lamina-balanced with the same profile for whole images only.

SCENARIOS, PROFILES (names or files) and SEEDS in the environment select; KEEP names a file that keeps the rows for the
next run. LAMINA_DATA names the catalogs; without them it prints that and does nothing.
"""

import json
import math
import os
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from _policy_scenarios import BUILD, NEEDED, build
from _real_data import data_folder, missing
from lamina.cli.compare.run_pool import cores
from lamina.cli.options.scheduler_profile import configuration
from lamina.simulator.run import simulate, summary

NAME = "policy"
SUMMARY = "lamina-balanced and others against kube-default on sixteen clusters with real catalogs (half an hour)"

BASE, OURS, WHOLE = "kube-default", "lamina-balanced", "lamina-images"
PROFILES = tuple(os.environ.get("PROFILES", f"{BASE},{OURS},{WHOLE}").split(","))
APART = ("4b",)
SCENARIOS = tuple(os.environ.get("SCENARIOS", ",".join(name for name in BUILD if name not in APART)).split(","))
KEEP = Path(os.environ["KEEP"]) if "KEEP" in os.environ else None
SEEDS = int(os.environ.get("SEEDS", "2"))
CHURN = ("3b", "3c", "3d")
FIGURES = ("bytes", "mean_start", "p95_start", "p99_start", "peak_load", "imbalance", "wait")

Row = dict[str, float]


def run(scenario: str, profile: str, seed: int, folder: Path) -> Row:
    """Run one scenario under one profile."""
    begin = time.process_time()
    built = build(scenario, seed, folder).under(profile)
    result = summary(simulate(built, configuration(profile), seed=seed))
    start, waiting = result["startup_seconds"]["pulling"], result["startup_seconds"]["waiting"]
    return {
        "bytes": result["bytes_pulled"],
        "mean_start": start["mean"],
        "p50_start": start["p50"],
        "p95_start": start["p95"],
        "p99_start": start["p99"],
        "peak_load": result["peak_load"],
        "imbalance": result["imbalance"],
        "wait": waiting["mean"],
        "started": result["pods"]["started"],
        "seconds": time.process_time() - begin,
    }


def run_all(folder: Path) -> dict[tuple[str, str, int], Row]:
    """Run everything, one run per core at a time; the largest first."""
    tasks = [(name, profile, seed) for name in SCENARIOS for seed in range(1, SEEDS + 1) for profile in PROFILES]
    tasks.sort(key=lambda task: task[0] not in ("6", "7a", "7b", "4b", "4a"))
    found = {key: row for key, row in _kept().items() if key in tasks}
    tasks = [task for task in tasks if task not in found]
    left = len(tasks)
    with ProcessPoolExecutor(cores()) as pool:
        waiting = {pool.submit(run, *task, folder): task for task in tasks}
        for done in as_completed(waiting):
            task = waiting[done]
            row = found[task] = done.result()
            if KEEP:
                with KEEP.open("a") as file:
                    file.write(json.dumps([task, row]) + "\n")
            left -= 1
            print(f"{task} {row['seconds']:.0f} s, {left} to go", file=sys.stderr, flush=True)
    return found


def _kept() -> dict[tuple[str, str, int], Row]:
    if KEEP is None or not KEEP.is_file():
        return {}
    rows = [json.loads(line) for line in KEEP.read_text().splitlines()]
    # Rows kept by an older release have the former names.
    former = {"heating": "peak_load", "balance": "imbalance"}
    return {
        (name, profile, seed): {former.get(key, key): value for key, value in row.items()}
        for (name, profile, seed), row in rows
    }


def ratio(found: dict[tuple[str, str, int], Row], key: tuple[str, str, int], other: str, figure: str) -> float:
    """Return a figure of a run relative to another profile's."""
    above, below = found[key][figure], found[key[0], other, key[2]][figure]
    return above / below if below else 1.0


def ratios(found: dict[tuple[str, str, int], Row], profile: str, other: str, figure: str) -> dict[str, list[float]]:
    """Return the ratios of a profile by scenario, one for each seed."""
    return {
        name: [ratio(found, (name, profile, seed), other, figure) for seed in range(1, SEEDS + 1)] for name in SCENARIOS
    }


def mean(values: Iterable[float]) -> float:
    """Return the geometric mean."""
    kept = [math.log(value) for value in values]
    return math.exp(math.fsum(kept) / len(kept)) if kept else math.nan


def joined(found: dict[tuple[str, str, int], Row], profile: str, other: str = BASE) -> dict[str, float]:
    """Return the means over the scenarios that count, and the worst run of each figure."""
    result = {}
    for figure in FIGURES[:-1]:
        by_name = ratios(found, profile, other, figure)
        values = [value for name, seeds in by_name.items() if name not in APART for value in seeds]
        result[figure], result[f"{figure}_worst"] = mean(values), max(values, default=math.nan)
    return {key: round(value, 4) for key, value in result.items()}


def table(found: dict[tuple[str, str, int], Row]) -> str:
    """Write the tables of the page."""
    lines = ["| profile | bytes | mean start | p95 | p99 | peak load | imbalance |", "|---|---|---|---|---|---|---|"]
    for profile in PROFILES:
        total = joined(found, profile)
        cells = [f"{total[figure]:.2f} ({total[f'{figure}_worst']:.2f})" for figure in FIGURES[:-1]]
        lines.append(f"| {profile} | " + " | ".join(cells) + " |")
    lines += ["", "| scenario | " + " | ".join(PROFILES) + " |", "|---|" + "---|" * len(PROFILES)]
    for name in SCENARIOS:
        cells = [f"{mean(ratios(found, profile, BASE, 'bytes')[name]):.2f}" for profile in PROFILES]
        lines.append(f"| {name} bytes | " + " | ".join(cells) + " |")
        cells = [_starts(found, name, profile) for profile in PROFILES]
        lines.append(f"| {name} mean / p95 / p99 start | " + " | ".join(cells) + " |")
        cells = [_load(found, name, profile) for profile in PROFILES]
        lines.append(f"| {name} peak load / imbalance | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _average(found: dict[tuple[str, str, int], Row], name: str, profile: str, figure: str) -> float:
    return math.fsum(found[name, profile, seed][figure] for seed in range(1, SEEDS + 1)) / SEEDS


def _starts(found: dict[tuple[str, str, int], Row], name: str, profile: str) -> str:
    return "/".join(f"{_average(found, name, profile, figure):.1f}" for figure in FIGURES[1:4])


def _load(found: dict[tuple[str, str, int], Row], name: str, profile: str) -> str:
    return "/".join(f"{_average(found, name, profile, figure):.2f}" for figure in ("peak_load", "imbalance"))


def main() -> dict[str, object]:
    """Run all scenarios and compare the profiles."""
    folder = data_folder(NEEDED)
    if folder is None:
        print(f"skipped: {missing(NEEDED)}")
        return {"skipped": missing(NEEDED)}
    found = run_all(folder)
    print(table(found), flush=True)
    ours = joined(found, OURS)
    result: dict[str, object] = {
        "seeds": SEEDS,
        **{figure: ours[figure] for figure in ("bytes", "mean_start", "p99_start", "peak_load", "peak_load_worst")},
        # The former names of the two, for one release.
        "heating": ours["peak_load"],
        "heating_worst": ours["peak_load_worst"],
        "profiles": {profile: joined(found, profile) for profile in PROFILES if profile != BASE},
        "scenarios": {
            name: {
                profile: {
                    figure: round(_average(found, name, profile, figure), 4)
                    for figure in (*FIGURES, "p50_start", "started")
                }
                | {
                    f"{figure}_ratio": round(mean(ratios(found, profile, BASE, figure)[name]), 4)
                    for figure in FIGURES[:-1]
                }
                for profile in PROFILES
            }
            for name in SCENARIOS
        },
    }
    if WHOLE in PROFILES:
        worth = ratios(found, OURS, WHOLE, "bytes")
        result["layers_worth"] = {name: round(mean(values), 4) for name, values in worth.items()}
        result["layers_worth_churn"] = {name: round(mean(worth[name]), 4) for name in CHURN if name in worth}
    return result


if __name__ == "__main__":
    print(json.dumps({"benchmark": NAME, **main()}))
