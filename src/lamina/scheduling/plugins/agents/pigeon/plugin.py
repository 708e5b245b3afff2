"""
PigeonHoling: try the pod in every hole, and prefer the one that leaves the whole cluster nearest to the objective.

    level = 10 where all feasible nodes are equally good, else 1 for the worst to 10 for the best, evenly in between;
            0 where there is no room          points = 10 · level

The whole cluster counts, nodes that the pod cannot go to included, and pods count on their node from the moment they were
given to it. What pods ask for is counted once for each, when some node can have it, however often it is tried.

It signs no pod, so that it is asked about every one of them: adaptive packing goes by what all pods have asked for, and one
that was decided like another before it would be missed.
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
from lamina.scheduling.plugins.agents.pigeon.demand_statistics import DemandStatistics, asked
from lamina.scheduling.state.columns import Bools, Floats, Ints
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView

HIGHEST: Final = 10
POINTS: Final = 10
# Values that differ by less, for their size, differ by how they were worked out.
ALIKE: Final = 1e-12
# A half that was lost on the way is still a half.
HAIR: Final = 1e-9

CLUSTER: Final[StateKey[ClusterResources]] = StateKey("pigeon-holing/cluster")
ROWS: Final[StateKey[slice | npt.NDArray[np.intp]]] = StateKey("pigeon-holing/rows")
"""The rows that are scored."""


class PigeonHoling:
    """Ranks by what the cluster would be like with the pod on a node."""

    name: ClassVar = NAME
    Args: ClassVar = PigeonHolingArgs

    def __init__(self, context: PluginContext, args: PigeonHolingArgs) -> None:
        """Start with no demand."""
        self._args = args
        self._demand = DemandStatistics(args.num_resources)

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeView) -> None:
        """Look at the whole cluster."""
        state[CLUSTER] = read_cluster(nodes, self._args.num_resources, annotations=self._args.usage == "annotations")

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Note which nodes are asked about; what they are worth depends on which of them are feasible."""
        state[ROWS] = nodes.rows
        return unscored(len(nodes))

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, feasible: Bools) -> Ints:
        """Count the demand, evaluate, and rank the feasible nodes."""
        if not feasible.any():
            return np.zeros(len(scores), dtype=np.int64)
        cluster, rows = state[CLUSTER], state[ROWS]
        if self._args.compatible:
            candidates = np.zeros(len(cluster.counted), dtype=np.bool_)
            candidates[rows] = feasible
            cluster = cluster.among(candidates)
        amounts = asked(pod, self._args.num_resources, compatible=self._args.compatible)
        values = self._values(cluster, pod, amounts)
        return POINTS * levels(values[rows], feasible & cluster.fits(amounts)[rows])

    def _values(self, cluster: ClusterResources, pod: Pod, amounts: Floats) -> Floats:
        """Return what the cluster would be like with the pod on each node; lower is better."""
        match self._args.objective:
            case "LOAD_BALANCE":
                return objectives.load_balance(cluster, amounts, self._args.prime_resource)
            case "CONSOLIDATE":
                return objectives.consolidate(cluster, amounts, self._args.prime_resource)
            case "A_BINPACK":
                self._demand.note(pod.uid, amounts)
                return objectives.adaptive_bin_packing(cluster, amounts, self._demand)


def levels(values: Floats, candidates: Bools) -> Ints:
    """Return a level from 0 to 10 for each value: the lowest of the candidates gets the highest level, others get 0."""
    if not candidates.any():
        return np.zeros(len(values), dtype=np.int64)
    best = float(values.min(where=candidates, initial=np.inf))
    worst = float(values.max(where=candidates, initial=-np.inf))
    if worst - best <= ALIKE * max(worst, 1.0):
        return np.where(candidates, HIGHEST, 0)
    ranked = np.floor((HIGHEST - 1) * (worst - values) / (worst - best) + (1.5 + HAIR))
    return np.where(candidates, ranked, 0).astype(np.int64)
