"""
Loss from scoring layers with 0 to 10 instead of 0 to 100: simulated clusters with real catalogs.

Compares the profile lamina-balanced with variants whose LayerLocality points are converted to the extender's levels: by
the table of the agent `layers`, in which a level is a doubling of the wait, and by tenths. A level gives ten points and
has the weight of points. "best" is the first variant with `--reply best`, but for a tenth of the nodes, because 100 are
a tenth of a cluster of 1,000. The clusters are four of those in docs/policy.md: public images, machine learning, moving
tags, and the edge. Ratios to kube-default, joined as geometric means over clusters and seeds.

SCENARIOS and SEEDS in the environment select. LAMINA_DATA names the catalogs; without them it prints that and does
nothing.
"""

import json
import os
import sys
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, ClassVar, Final
from zlib import crc32

import numpy as np
import yaml

from _policy_scenarios import NEEDED, build
from _real_data import data_folder, missing
from lamina.cli.compare.run_pool import cores
from lamina.model.pod import Pod
from lamina.scheduling.config.loader import Configuration, load
from lamina.scheduling.config.named_profiles import NAMED
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.scheduling_agent import LINEAR
from lamina.scheduling.plugins.in_tree import registry
from lamina.scheduling.plugins.locality.layer_locality import LayerLocality
from lamina.scheduling.plugins.locality.layer_locality.layers_agent import AGENT
from lamina.scheduling.state.columns import Bools, Ints
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.simulator.run import simulate, summary
from policy import mean

NAME: Final = "extender-levels"
SUMMARY: Final = "LayerLocality in eleven levels instead of a hundred points: what that loses, on simulated clusters"

SCENARIOS: Final = tuple(os.environ.get("SCENARIOS", "1b,2a,3c,5a").split(","))
SEEDS: Final = int(os.environ.get("SEEDS", "2"))
FIGURES: Final = ("bytes_pulled", "mean_start", "p99_start", "peak_load")


class Doubling(LayerLocality):
    """LayerLocality with the levels of the agent `layers`."""

    name: ClassVar = "Doubling"
    table: ClassVar = AGENT.levels

    def __init__(self, context: PluginContext, args: Any) -> None:  # Any: LayerLocality's own, whatever they are
        """Convert its points to levels."""
        super().__init__(context, args)
        self._points = np.array(self.table, dtype=np.int64) * 10

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, feasible: Bools) -> Ints:
        """Return ten points for each level."""
        return self._points.take(super().normalize(state, pod, scores, feasible))


class Tenths(Doubling):
    """LayerLocality in tenths of its points."""

    name: ClassVar = "Tenths"
    table: ClassVar = LINEAR


class Best(Doubling):
    """LayerLocality with the levels of the agent `layers` under `--reply best`."""

    name: ClassVar = "Best"

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, feasible: Bools) -> Ints:
        """Return ten points for each level above the lowest, for the best tenth of the nodes."""
        levels = super().normalize(state, pod, scores, feasible)
        places = np.roll(np.flatnonzero(feasible), -crc32(pod.uid.encode()))
        named = places[np.argsort(-levels[places], kind="stable")[: max(1, len(feasible) // 10)]]
        told = np.zeros_like(levels)
        told[named] = levels[named] - levels[places].min(initial=100)
        return told


def configured(plugin: str) -> Configuration:
    """Return lamina-balanced with *plugin* in place of LayerLocality; without a plugin, kube-default."""
    known = registry(entry_points=False)
    for one in (Doubling, Tenths, Best):
        known.register(one)
    text = NAMED["lamina-balanced"][1] if plugin else NAMED["kube-default"][1]
    if plugin:
        document = yaml.safe_load(text.replace("LayerLocality", plugin))
        text = yaml.safe_dump(document)
    return load(text, plugin or "kube-default", known)


def run(scenario: str, plugin: str, seed: int, folder: Path) -> dict[str, float]:
    """Run one cluster."""
    profile = "lamina-balanced" if plugin else "kube-default"
    result = summary(simulate(build(scenario, seed, folder).under(profile), configured(plugin), seed=seed))
    start = result["startup_seconds"]["pulling"]
    return {
        "bytes_pulled": result["bytes_pulled"],
        "mean_start": start["mean"],
        "p99_start": start["p99"],
        "peak_load": result["peak_load"],
    }


def joined(found: Mapping[tuple[str, str, int], dict[str, float]], kind: str, figure: str) -> float:
    """Return a figure of one kind relative to kube-default, over all clusters and seeds."""
    return mean(
        row[figure] / found[name, "base", seed][figure] for (name, one, seed), row in found.items() if one == kind
    )


def main() -> dict[str, object]:
    """Run all variants and compare them."""
    folder = data_folder(NEEDED)
    if folder is None:
        print(f"skipped: {missing(NEEDED)}")
        return {"skipped": missing(NEEDED)}
    kinds = {"base": "", "points": "LayerLocality", "doubling": "Doubling", "tenths": "Tenths", "best": "Best"}
    tasks = [(name, kind, seed) for name in SCENARIOS for seed in range(1, SEEDS + 1) for kind in kinds]
    with ProcessPoolExecutor(cores()) as pool:
        waiting = {task: pool.submit(run, task[0], kinds[task[1]], task[2], folder) for task in tasks}
        found = {}
        for task, done in waiting.items():
            found[task] = done.result()
            print(*task, {key: round(value, 3) for key, value in found[task].items()}, file=sys.stderr, flush=True)
    result: dict[str, object] = {"scenarios": list(SCENARIOS), "seeds": SEEDS}
    print(f"{'levels':<10} " + " ".join(f"{figure:>13}" for figure in FIGURES))
    for kind in ("points", "doubling", "tenths", "best"):
        ratios = {figure: round(joined(found, kind, figure), 4) for figure in FIGURES}
        print(f"{kind:<10} " + " ".join(f"{value:>13.3f}" for value in ratios.values()))
        result |= {f"{figure}_{kind}": value for figure, value in ratios.items()}
    return result


if __name__ == "__main__":
    print(json.dumps({"benchmark": NAME, **main()}))
