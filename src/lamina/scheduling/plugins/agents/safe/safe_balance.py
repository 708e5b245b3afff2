"""
SafeBalance: prefers nodes with low and even usage over time.

    risk  = (mean + margin · deviation^(1 / sensitivity)) / 2     the second term within 0..1
    score = 100 · (1 - risk), of cpu or memory, whichever is less

A sensitivity of 2 is what kube-safe-scheduler's code does (its documentation says 1); 1 is LoadVariationRiskBalancing.
A node without data gets the mean of the others. *compatible* rounds to eleven levels and gives such a node 0.
"""

from collections.abc import Hashable
from typing import ClassVar, Final

import numpy as np

from lamina.model.pod import Pod
from lamina.scheduling.contract.cycle_state import CycleState, StateKey
from lamina.scheduling.contract.normalize import unscored
from lamina.scheduling.contract.points import MAX_SCORE, Reads
from lamina.scheduling.plugins.agents.safe.args import BalanceArgs
from lamina.scheduling.plugins.agents.safe.confidence import ScoresWithConfidence, settle, weakest
from lamina.scheduling.plugins.agents.safe.utilization import READS, RESOURCES, demand, utilization_reader
from lamina.scheduling.state.columns import Bools, Ints
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView

NAME: Final = "SafeBalance"
LEVELS: Final = 10

SCORES: Final[StateKey[list[ScoresWithConfidence]]] = StateKey("safe-balance/judged")


class SafeBalance:
    """Scores nodes by mean and deviation of usage."""

    name: ClassVar = NAME
    Args: ClassVar = BalanceArgs
    reads: ClassVar = Reads(rows=READS)

    def __init__(self, context: PluginContext, args: BalanceArgs) -> None:
        """Read usage as *args* say."""
        self._reader = utilization_reader(context, args)
        self._args = args

    def sign(self, pod: Pod) -> Hashable:
        """Return the pod's requests."""
        return demand(pod, compatible=self._args.compatible)

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Compute the risk of each node; `normalize`, which knows the feasible nodes, computes the scores."""
        judged = []
        for resource, asked in zip(RESOURCES, demand(pod, compatible=self._args.compatible), strict=True):
            observed = self._reader.read(nodes, resource, asked)
            uneven = self._args.margin * observed.deviation ** (1.0 / self._args.sensitivity)
            good = 1.0 - (observed.mean + np.minimum(uneven, 1.0)) / 2.0
            if self._args.compatible:
                good = np.trunc(good * LEVELS + 0.5) / LEVELS
            judged.append(ScoresWithConfidence(good * MAX_SCORE, observed.trust))
        state[SCORES] = judged
        return unscored(len(nodes))

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, feasible: Bools) -> Ints:
        """Compute the scores; where trust is below 1, mix in the mean of the feasible nodes."""
        judged = state[SCORES]
        if self._args.compatible:
            worst = weakest(judged)
            return np.where(worst.trust > 0, np.rint(worst.points), 0.0).astype(np.int64)
        return settle(judged, feasible)
