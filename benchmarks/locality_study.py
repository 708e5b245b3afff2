"""
Gains and costs of layer-aware placement on real catalogs: the table in docs/study.md.

Two clusters, five seeds each, the same pods under every profile (paired):

*public*: 100 nodes of 16 cpu, 0.8 Gbit/s; one image each of 400 public repositories of 2024, machine learning included;
popularity Zipf 1.0, pods of 1 to 4 cpu for ten minutes on average, 60 % load.
*churn*: 60 nodes; the last up to 30 versions of official images (repositories with at least ten), tags that move to their
next version 1,000 times during the run.

With plain pulls: one at a time per node, no unpacking, no image garbage collection; policy.py has realistic ones. PODS
and SEEDS in the environment change the size. Needs the real catalogs; without them it prints that and does nothing.
"""

import json
import os
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from _real_data import OFFICIAL, PUBLIC, data_folder, distinct, missing, official, one_of_each, public
from lamina.cli.compare.run_pool import RunTask, cores, run_all
from lamina.evaluation.comparison import ComparisonRow, ProfileComparison, Run, compare
from lamina.model.image import Image
from lamina.wire.catalog_file import encode_catalog

NAME = "locality-study"
SUMMARY = "lamina-balanced against the baselines on real catalogs, paired over five seeds (some ten minutes)"
NEEDED = (*PUBLIC, *OFFICIAL)

PROFILES = ("kube-default", "lamina-balanced", "lamina-images", "image-locality", "ryax", "least-allocated")
WHOLE_IMAGES = "lamina-images"
PODS = int(os.environ.get("PODS", "20000"))
SEEDS = int(os.environ.get("SEEDS", "5"))
SHOWN = ("bytes_pulled", "startup_mean", "startup_p50", "startup_p95", "startup_p99", "peak_load", "imbalance")

SCENARIO = """\
name: {name}
catalog: catalog.jsonl
defaults: {{runtime: plain, reportGap: 0s, statusDelay: 10s}}
nodes:
- {{name: node, count: {nodes}, cpu: 16, memory: 64Gi, bandwidth: 100MB}}
workload:
  pods: {pods}
  arrivals: {{load: 0.6}}
  popularity: {{zipf: 1.0}}
  duration: {{mean: 10m, spread: exponential}}
  cpu:
  - {{amount: 1, share: 4}}
  - {{amount: 2, share: 3}}
  - {{amount: 4, share: 1}}
  updates: {updates}
"""


def public_images(folder: Path) -> list[Image]:
    """Draw the public cluster's catalog."""
    return one_of_each(public(folder), 400, random.Random(1))


def churn_images(folder: Path) -> list[Image]:
    """Return the images of every official repository with a history."""
    return distinct([image for images in official(folder).values() if len(images) >= 10 for image in images])


CLUSTERS: dict[str, tuple[int, int, Callable[[Path], list[Image]]]] = {
    "public": (100, 0, public_images),
    "churn": (60, 1000, churn_images),
}


def study(name: str, folder: Path, out: Path) -> tuple[ProfileComparison, ProfileComparison]:
    """Write catalog and scenario, run all; compare with the first profile, and with the one for whole images only."""
    nodes, updates, draw = CLUSTERS[name]
    images = draw(folder)
    scenario = out / name / "scenario.yaml"
    scenario.parent.mkdir()
    (scenario.parent / "catalog.jsonl").write_bytes(encode_catalog(images, "catalog.jsonl"))
    scenario.write_text(SCENARIO.format(name=name, nodes=nodes, pods=PODS, updates=updates))
    tasks = [RunTask(scenario, profile, seed) for seed in range(1, SEEDS + 1) for profile in PROFILES]
    done = [0]

    def tick() -> None:
        done[0] += 1
        print(f"\r{name}: {done[0]} of {len(tasks)} runs", end="", file=sys.stderr, flush=True)

    figures = run_all(tasks, cores(), tick)
    print(file=sys.stderr)
    runs = [Run(task.profile, task.seed, one) for task, one in zip(tasks, figures, strict=True)]
    return compare(runs, PROFILES[0]), compare(runs, WHOLE_IMAGES)


def table(compared: ProfileComparison) -> str:
    """Return a comparison as the table in the docs: means, and ratios to the first profile with intervals."""
    lines = ["| profile | " + " | ".join(SHOWN) + " |", "|" + "---|" * (len(SHOWN) + 1)]
    for profile in PROFILES:
        cells = [_cell(compared.row(profile, metric)) for metric in SHOWN]
        lines.append(f"| {profile} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(row: ComparisonRow) -> str:
    if row.estimate is None:
        return "-"
    mean = row.estimate.mean
    text = f"{mean / 1e9:,.0f} GB" if row.unit == "bytes" else f"{mean:,.2f}"
    if row.against is None or row.against.ratio is None:
        return text
    return f"{text}; {row.against.ratio:.2f} [{row.against.low or 0:.2f}, {row.against.high or 0:.2f}]"


def main() -> dict[str, object]:
    """Run both clusters."""
    folder = data_folder(NEEDED)
    if folder is None:
        print(f"skipped: {missing(NEEDED)}")
        return {"skipped": missing(NEEDED)}
    found: dict[str, object] = {"pods": PODS, "seeds": SEEDS}
    with tempfile.TemporaryDirectory() as out:
        for name in CLUSTERS:
            compared, layers = study(name, folder, Path(out))
            print(f"\n{name}\n\n{table(compared)}\n", flush=True)
            worth = " | ".join(_cell(layers.row("lamina-balanced", metric)) for metric in SHOWN)
            print(f"lamina-balanced against {WHOLE_IMAGES} | {worth} |\n", flush=True)
            found[name] = {
                profile: {
                    row.metric: msgspec.to_builtins(row.against)
                    for row in compared.rows
                    if row.profile == profile and row.metric in SHOWN
                }
                for profile in PROFILES[1:]
            } | {
                "layers_worth": {
                    metric: msgspec.to_builtins(layers.row("lamina-balanced", metric).against) for metric in SHOWN
                }
            }
    return found


if __name__ == "__main__":
    print(json.dumps({"benchmark": NAME, **main()}))
