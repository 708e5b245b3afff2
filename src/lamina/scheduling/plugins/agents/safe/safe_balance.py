"""
SafeBalance: prefer nodes that are used little and evenly over time.

    risk  = (mean + margin · deviation^(1 / sensitivity)) / 2     the second within 0..1
    score = 100 · (1 - risk), of cpu or memory, whichever is less

With a sensitivity of 2 this is what kube-safe-scheduler's code does (its words say 1), with 1 it is
LoadVariationRiskBalancing. A node counts as the mean of the others as far as nothing is known of it; *compatible* rounds to
eleven levels, and gives such a node none.
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
    """Ranks by mean and deviation of use."""

    name: ClassVar = NAME
    Args: ClassVar = BalanceArgs
    reads: ClassVar = Reads(rows=READS)

    def __init__(self, context: PluginContext, args: BalanceArgs) -> None:
        """Look at nodes as *args* say."""
        self._observer = utilization_reader(context, args)
        self._args = args

    def sign(self, pod: Pod) -> Hashable:
        """Tell pods apart by what they ask for."""
        return demand(pod, compatible=self._args.compatible)

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Find out how each node is used; what that is worth is up to `normalize`, which knows the feasible nodes."""
        judged = []
        for resource, asked in zip(RESOURCES, demand(pod, compatible=self._args.compatible), strict=True):
            observed = self._observer.look(nodes, resource, asked)
            uneven = self._args.margin * observed.deviation ** (1.0 / self._args.sensitivity)
            good = 1.0 - (observed.mean + np.minimum(uneven, 1.0)) / 2.0
            if self._args.compatible:
                good = np.trunc(good * LEVELS + 0.5) / LEVELS
            judged.append(ScoresWithConfidence(good * MAX_SCORE, observed.trust))
        state[SCORES] = judged
        return unscored(len(nodes))

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, feasible: Bools) -> Ints:
        """Score; nodes of which little is known count as the mean of the feasible ones, as far as they are not believed."""
        judged = state[SCORES]
        if self._args.compatible:
            worst = weakest(judged)
            return np.where(worst.trust > 0, np.rint(worst.points), 0.0).astype(np.int64)
        return settle(judged, feasible)
