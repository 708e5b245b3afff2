"""
PigeonHoling: prefers the node that brings the whole cluster closest to an objective.

    level = 10 if all feasible nodes are equally good, else from 1 (worst) to 10 (best), linear in between;
            0 without room          score = 10 · level

The whole cluster is evaluated, including infeasible nodes. Assumed pods are included. The requests of a pod are counted
once, when a node is feasible, however often the pod is retried.

The plugin does not sign pods, so that it is called for every pod: adaptive packing depends on the requests of all
pods, and a pod with a cached result would be missed.
"""

from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt

from lamina.model.pod import Pod
from lamina.scheduling.contract.cycle_state import CycleState, StateKey
from lamina.scheduling.contract.normalize import unscored
from lamina.scheduling.plugins.agents.pigeon import objectives
from lamina.scheduling.plugins.agents.pigeon.args import NAME, PigeonHolingArgs
from lamina.scheduling.plugins.agents.pigeon.cluster_resources import ClusterResources, read_cluster
from lamina.scheduling.plugins.agents.pigeon.demand_statistics import DemandStatistics, requested_amounts
from lamina.scheduling.state.columns import Bools, Floats, Ints
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView

HIGHEST: Final = 10
POINTS: Final = 10
# Values with a smaller relative difference are equal up to rounding.
ALIKE: Final = 1e-12
# Tolerance when rounding half up.
HAIR: Final = 1e-9

CLUSTER: Final[StateKey[ClusterResources]] = StateKey("pigeon-holing/cluster")
ROWS: Final[StateKey[slice | npt.NDArray[np.intp]]] = StateKey("pigeon-holing/rows")
"""The rows to score."""


class PigeonHoling:
    """Scores nodes by the state of the cluster with the pod on them."""

    name: ClassVar = NAME
    Args: ClassVar = PigeonHolingArgs

    def __init__(self, context: PluginContext, args: PigeonHolingArgs) -> None:
        """Start without demand."""
        self._args = args
        self._demand = DemandStatistics(args.num_resources)

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeView) -> None:
        """Read the whole cluster."""
        state[CLUSTER] = read_cluster(nodes, self._args.num_resources, annotations=self._args.usage == "annotations")

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Store which rows to score; `normalize`, which knows the feasible nodes, computes the scores."""
        state[ROWS] = nodes.rows
        return unscored(len(nodes))

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, feasible: Bools) -> Ints:
        """Count the pod's demand, evaluate the objective and rank the feasible nodes."""
        if not feasible.any():
            return np.zeros(len(scores), dtype=np.int64)
        cluster, rows = state[CLUSTER], state[ROWS]
        if self._args.compatible:
            candidates = np.zeros(len(cluster.counted), dtype=np.bool_)
            candidates[rows] = feasible
            cluster = cluster.among(candidates)
        amounts = requested_amounts(pod, self._args.num_resources, compatible=self._args.compatible)
        values = self._values(cluster, pod, amounts)
        return POINTS * levels(values[rows], feasible & cluster.fits(amounts)[rows])

    def _values(self, cluster: ClusterResources, pod: Pod, amounts: Floats) -> Floats:
        """Return the objective's value with the pod on each node; lower is better."""
        match self._args.objective:
            case "LOAD_BALANCE":
                return objectives.load_balance(cluster, amounts, self._args.prime_resource)
            case "CONSOLIDATE":
                return objectives.consolidate(cluster, amounts, self._args.prime_resource)
            case "A_BINPACK":
                self._demand.note(pod.uid, amounts)
                return objectives.adaptive_bin_packing(cluster, amounts, self._demand)


def levels(values: Floats, candidates: Bools) -> Ints:
    """Return a level for each value: 10 for the lowest candidate, 1 for the highest, 0 for all others."""
    if not candidates.any():
        return np.zeros(len(values), dtype=np.int64)
    best = float(values.min(where=candidates, initial=np.inf))
    worst = float(values.max(where=candidates, initial=-np.inf))
    if worst - best <= ALIKE * max(worst, 1.0):
        return np.where(candidates, HIGHEST, 0)
    ranked = np.floor((HIGHEST - 1) * (worst - values) / (worst - best) + (1.5 + HAIR))
    return np.where(candidates, ranked, 0).astype(np.int64)
