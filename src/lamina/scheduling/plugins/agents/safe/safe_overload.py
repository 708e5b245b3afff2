"""
SafeOverload: refuses nodes that would probably be overloaded with the pod, and prefers those with the lowest risk.

    risk  = probability that usage exceeds `threshold` (see `risk`), for cpu and for memory
    refused where the risk of either exceeds `tolerance`
    score = 100 · (1 - √(risk / tolerance)), of cpu or memory, whichever is less

A node without data, or with outdated data, is never refused; its score moves to the mean instead.

*compatible* behaves exactly like kube-safe-scheduler: it reads annotations, truncates scores to eleven levels, gives
nodes without annotations 0, and treats an impossible deviation as certain overload.
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
# Set in a code if the pod alone would exceed the threshold.
FINAL_BIT: Final = 1 << len(RESOURCES)
LEVELS: Final = 10

SCORES: Final[StateKey[list[ScoresWithConfidence]]] = StateKey("safe-overload/judged")


class SafeOverload:
    """Filters and scores nodes by their probability of overload."""

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
        """Read usage as *args* say."""
        self._reader = utilization_reader(context, args)
        self._compatible = args.compatible
        self._threshold = args.threshold / 100.0
        self._tolerance = args.tolerance / 100.0
        self._risks = RowCache(self._risk)

    def sign(self, pod: Pod) -> Hashable:
        """Return the pod's requests."""
        return demand(pod, compatible=self._compatible)

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
        """Refuse nodes with fresh data and too much risk."""
        codes = np.zeros(len(nodes), dtype=np.int64)
        for bit, (resource, asked) in enumerate(self._asked(pod)):
            observed, risk = self._risk_of(nodes, resource, asked)
            over: Bools = (risk > self._tolerance) & (observed.trust >= 1.0)
            codes |= over.astype(np.int64) << bit
            alone = over & (asked > self._threshold * nodes.allocatable(resource))
            codes |= alone * np.int64(FINAL_BIT)
        return Verdicts(codes, _tell) if codes.any() else None

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Compute the risk of each node; `normalize`, which knows the feasible nodes, computes the scores."""
        judged = []
        for resource, asked in self._asked(pod):
            observed, risk = self._risk_of(nodes, resource, asked)
            judged.append(ScoresWithConfidence(self._points(risk), observed.trust))
        state[SCORES] = judged
        return unscored(len(nodes))

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, feasible: Bools) -> Ints:
        """Compute the scores; where trust is below 1, mix in the mean of the feasible nodes."""
        judged = state[SCORES]
        if self._compatible:
            worst = weakest(judged)
            return np.where(worst.trust > 0, worst.points, 0.0).astype(np.int64)
        return settle(judged, feasible)

    def facts(self, state: CycleState, pod: Pod, nodes: NodeView) -> Sequence[dict[str, int]]:
        """Return mean, deviation and risk of each node in percent; resources without data are left out."""
        found: list[dict[str, int]] = [{} for _ in range(len(nodes))]
        for resource, asked in self._asked(pod):
            observed, risk = self._risk_of(nodes, resource, asked)
            for row in observed.trust.nonzero()[0].tolist():
                found[row][f"{resource}_mean_percent"] = round(100 * observed.mean.item(row))
                found[row][f"{resource}_deviation_percent"] = round(100 * observed.deviation.item(row))
                found[row][f"{resource}_risk_percent"] = round(100 * risk.item(row))
        return found

    def _asked(self, pod: Pod) -> Iterator[tuple[str, int]]:
        return zip(RESOURCES, demand(pod, compatible=self._compatible), strict=True)

    def _risk_of(self, nodes: NodeView, resource: str, asked: int) -> tuple[NodeUtilization, Floats]:
        observed = self._reader.read(nodes, resource, asked)
        if not nodes.whole:
            return observed, self._risk(observed.mean, observed.deviation)
        return observed, self._risks.of((resource, asked), observed.mean, observed.deviation)

    def _risk(self, mean: Floats, deviation: Floats) -> Floats:
        return chances(mean, deviation, self._threshold, capped=not self._compatible)[1]

    def _points(self, risk: Floats) -> Floats:
        # With a tolerance of 0, any risk scores 0.
        part = np.minimum(risk / self._tolerance, 1.0) if self._tolerance > 0 else (risk > 0).astype(np.float64)
        free = 1.0 - np.sqrt(part)
        points: Floats = np.trunc(free * LEVELS) * (MAX_SCORE // LEVELS) if self._compatible else free * MAX_SCORE
        return points


def _tell(code: int) -> Refusal:
    reasons = [REASON.format(resource) for bit, resource in enumerate(RESOURCES) if code >> bit & 1]
    return Refusal(NAME, tuple(reasons), final=bool(code & FINAL_BIT))
