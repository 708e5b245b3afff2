"""
SafeOverload: refuse nodes that would probably be overloaded with the pod, and prefer those that hardly could be.

    risk  = how likely a node is to be used for more than `threshold` (see `risk`), for cpu and for memory
    no      where the risk of either exceeds `tolerance`
    score = 100 · (1 - √(risk / tolerance)), of cpu or memory, whichever is less

Nobody is refused for what is not known, or was known some time ago only: then the node's score drifts to the mean.

*compatible* is kube-safe-scheduler to the letter: from annotations, scores cut to eleven levels, none of the points for a
node without annotations, and certain overload where the deviation is too large for any distribution.
"""

from collections.abc import Hashable, Iterator, Sequence
from typing import ClassVar, Final

import numpy as np

from lamina.model.decision import Refusal
from lamina.model.pod import Pod
from lamina.scheduling.contract.cycle_state import CycleState, StateKey
from lamina.scheduling.contract.normalize import unscored
from lamina.scheduling.contract.points import MAX_SCORE, Reads, Verdicts
from lamina.scheduling.plugins.agents.safe.args import OverloadArgs
from lamina.scheduling.plugins.agents.safe.confidence import ScoresWithConfidence, settle, weakest
from lamina.scheduling.plugins.agents.safe.risk import chances
from lamina.scheduling.plugins.agents.safe.row_cache import RowCache
from lamina.scheduling.plugins.agents.safe.utilization import (
    READS,
    RESOURCES,
    NodeUtilization,
    demand,
    utilization_reader,
)
from lamina.scheduling.state.cluster_changes import ChangeKind
from lamina.scheduling.state.columns import Bools, Floats, Ints
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView

NAME: Final = "SafeOverload"
REASON: Final = "node(s) would risk {} overload"
# Set in a code when the pod alone is more than a node may be used for.
FINAL_BIT: Final = 1 << len(RESOURCES)
LEVELS: Final = 10

SCORES: Final[StateKey[list[ScoresWithConfidence]]] = StateKey("safe-overload/judged")


class SafeOverload:
    """Judges nodes by how likely they are to be overloaded."""

    name: ClassVar = NAME
    Args: ClassVar = OverloadArgs
    reads: ClassVar = Reads(rows=READS)
    retry_on: ClassVar = frozenset(
        {
            ChangeKind.NODE_ADDED,
            ChangeKind.NODE_ALLOCATABLE,
            ChangeKind.NODE_ANNOTATIONS,
            ChangeKind.POD_REMOVED,
            ChangeKind.USAGE,
        }
    )

    def __init__(self, context: PluginContext, args: OverloadArgs) -> None:
        """Look at nodes as *args* say."""
        self._observer = utilization_reader(context, args)
        self._compatible = args.compatible
        self._threshold = args.threshold / 100.0
        self._tolerance = args.tolerance / 100.0
        self._risks = RowCache(self._risk)

    def sign(self, pod: Pod) -> Hashable:
        """Tell pods apart by what they ask for."""
        return demand(pod, compatible=self._compatible)

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
        """Refuse nodes of which it is known that they would risk too much."""
        codes = np.zeros(len(nodes), dtype=np.int64)
        for bit, (resource, asked) in enumerate(self._asked(pod)):
            observed, risk = self._look(nodes, resource, asked)
            over: Bools = (risk > self._tolerance) & (observed.trust >= 1.0)
            codes |= over.astype(np.int64) << bit
            alone = over & (asked > self._threshold * nodes.allocatable(resource))
            codes |= alone * np.int64(FINAL_BIT)
        return Verdicts(codes, _tell) if codes.any() else None

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Find out what each node risks; what that is worth is up to `normalize`, which knows the feasible nodes."""
        judged = []
        for resource, asked in self._asked(pod):
            observed, risk = self._look(nodes, resource, asked)
            judged.append(ScoresWithConfidence(self._points(risk), observed.trust))
        state[SCORES] = judged
        return unscored(len(nodes))

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, feasible: Bools) -> Ints:
        """Score; nodes of which little is known count as the mean of the feasible ones, as far as they are not believed."""
        judged = state[SCORES]
        if self._compatible:
            worst = weakest(judged)
            return np.where(worst.trust > 0, worst.points, 0.0).astype(np.int64)
        return settle(judged, feasible)

    def facts(self, state: CycleState, pod: Pod, nodes: NodeView) -> Sequence[dict[str, int]]:
        """Tell what was made of each node, in percent; nothing of a resource of which nothing is known."""
        told: list[dict[str, int]] = [{} for _ in range(len(nodes))]
        for resource, asked in self._asked(pod):
            observed, risk = self._look(nodes, resource, asked)
            for row in observed.trust.nonzero()[0].tolist():
                told[row][f"{resource}_mean_percent"] = round(100 * observed.mean.item(row))
                told[row][f"{resource}_deviation_percent"] = round(100 * observed.deviation.item(row))
                told[row][f"{resource}_risk_percent"] = round(100 * risk.item(row))
        return told

    def _asked(self, pod: Pod) -> Iterator[tuple[str, int]]:
        return zip(RESOURCES, demand(pod, compatible=self._compatible), strict=True)

    def _look(self, nodes: NodeView, resource: str, asked: int) -> tuple[NodeUtilization, Floats]:
        observed = self._observer.look(nodes, resource, asked)
        if not nodes.whole:
            return observed, self._risk(observed.mean, observed.deviation)
        return observed, self._risks.of((resource, asked), observed.mean, observed.deviation)

    def _risk(self, mean: Floats, deviation: Floats) -> Floats:
        return chances(mean, deviation, self._threshold, capped=not self._compatible)[1]

    def _points(self, risk: Floats) -> Floats:
        # Whoever tolerates no risk is not asked how much of it is there.
        part = np.minimum(risk / self._tolerance, 1.0) if self._tolerance > 0 else (risk > 0).astype(np.float64)
        free = 1.0 - np.sqrt(part)
        points: Floats = np.trunc(free * LEVELS) * (MAX_SCORE // LEVELS) if self._compatible else free * MAX_SCORE
        return points


def _tell(code: int) -> Refusal:
    reasons = [REASON.format(resource) for bit, resource in enumerate(RESOURCES) if code >> bit & 1]
    return Refusal(NAME, tuple(reasons), final=bool(code & FINAL_BIT))
