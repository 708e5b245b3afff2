"""
What is lost when layers may say 0 to 10 instead of 0 to 100: simulated clusters with real catalogs.

The profile lamina-balanced, and the same with LayerLocality's points brought to the levels that the extender answers with: by
the table of the agent `layers`, in which a level is a doubling of the wait, and by tenths. Levels count ten points each and
have the weight that points have. "best" is the first of them as `--reply best` tells it, but for a tenth of the nodes, as a
hundred are of a cluster of a thousand. The clusters are four of those in docs/policy.md: public images, machine learning,
moving tags, and the edge. Ratios to kube-default, joined as geometric means over clusters and seeds.

SCENARIOS and SEEDS in the environment choose. LAMINA_DATA names the catalogs. Says so and does nothing without them.
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
    """LayerLocality as the agent `layers` tells it."""

    name: ClassVar = "Doubling"
    table: ClassVar = AGENT.levels

    def __init__(self, context: PluginContext, args: Any) -> None:  # Any: LayerLocality's own, whatever they are
        """Bring its points to levels."""
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
    """LayerLocality as the agent `layers` tells it when only the best nodes are to be named."""

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
    """Return lamina-balanced with another plugin in the place of LayerLocality; with none, kube-default."""
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
    """Return a figure of one kind in terms of kube-default's, over all clusters and seeds."""
    return mean(
        row[figure] / found[name, "base", seed][figure] for (name, one, seed), row in found.items() if one == kind
    )


def main() -> dict[str, object]:
    """Run all of them and compare."""
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
