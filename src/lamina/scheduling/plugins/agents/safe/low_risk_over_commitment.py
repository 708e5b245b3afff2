"""
LowRiskOverCommitment: prefers nodes whose pods neither may use nor do use much more than they request.

    by limits = (L - C)/(L - R)                      where limits exceed the capacity, else 0
    by load   = 1 - P(use ≤ R⁻)/P(use ≤ L⁻)          for a Beta distribution with the mean and deviation of usage
    score     = 100 · (1 - the larger of  ω · by limits + (1 - ω) · by load  of cpu and memory)

C is the capacity. R (at most C) and L are the requests and limits of all pods on the node including the new pod; R⁻ and
L⁻ exclude it. Limits above the capacity do not bound usage: P(use ≤ L⁻) is then 1. If usage was averaged over a window,
its deviation is multiplied by the square root of the window's length.

The formula is that of the plugin of the same name in kubernetes-sigs/scheduler-plugins. Limits and requests are known
for every node. For the load, a node without measurements gets the mean of the others (*compatible*: its score is 0).
As upstream, a pod without requests and limits is not scored.
"""

import math
from collections.abc import Hashable
from typing import ClassVar, Final

import msgspec
import numpy as np

from lamina.model.pod import Pod
from lamina.model.resources import CPU, MEMORY
from lamina.scheduling.contract.cycle_state import CycleState, StateKey
from lamina.scheduling.contract.normalize import unscored
from lamina.scheduling.contract.points import MAX_SCORE, Reads
from lamina.scheduling.contract.status import SKIP, Status
from lamina.scheduling.plugins.agents.safe.args import OverCommitmentArgs
from lamina.scheduling.plugins.agents.safe.confidence import mix_in_mean, rounded
from lamina.scheduling.plugins.agents.safe.risk import chances
from lamina.scheduling.plugins.agents.safe.row_cache import RowCache
from lamina.scheduling.plugins.agents.safe.utilization import READS, RESOURCES, UtilizationReader
from lamina.scheduling.state.columns import Bools, Floats, Ints
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView

NAME: Final = "LowRiskOverCommitment"


class CommitmentRisk(msgspec.Struct, frozen=True):
    """Risk of one resource on some nodes."""

    weight: float
    """Weight of limits."""
    limits: Floats
    load: Floats
    trust: Floats
    """Trust in the load."""


RISK: Final[StateKey[list[CommitmentRisk]]] = StateKey("low-risk-over-commitment/committed")


class LowRiskOverCommitment:
    """Scores nodes by what pods may use, and do use, beyond their requests."""

    name: ClassVar = NAME
    Args: ClassVar = OverCommitmentArgs
    reads: ClassVar = Reads(rows=READS)

    def __init__(self, context: PluginContext, args: OverCommitmentArgs) -> None:
        """Use the weights of *args*."""
        self._reader = UtilizationReader(context, args.source, dated=not args.compatible)
        self._compatible = args.compatible
        self._weights = {CPU: args.risk_limit_weights.cpu, MEMORY: args.risk_limit_weights.memory}
        self._smoothed = math.sqrt(args.smoothing_window_size)
        self._loads = RowCache(_by_load)

    def sign(self, pod: Pod) -> Hashable:
        """Return the pod's requests and limits."""
        return _wanted(pod)

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | None:
        """Skip a pod without requests and limits."""
        return None if any(amount for pair in _wanted(pod) for amount in pair) else SKIP

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Compute the risk of each node; `normalize`, which knows the feasible nodes, computes the scores."""
        state[RISK] = [
            self._committed(nodes, resource, *wanted) for resource, wanted in zip(RESOURCES, _wanted(pod), strict=True)
        ]
        return unscored(len(nodes))

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, feasible: Bools) -> Ints:
        """Compute the scores; where trust is below 1, mix in the mean load of the feasible nodes."""
        worst, known = np.zeros(len(scores)), np.zeros(len(scores), dtype=np.bool_)
        for one in state[RISK]:
            load = one.load if self._compatible else mix_in_mean(one.load, one.trust, feasible, 0.0)
            worst = np.maximum(worst, one.weight * one.limits + (1.0 - one.weight) * load)
            known |= one.trust > 0
        points = rounded(MAX_SCORE * (1.0 - np.minimum(worst, 1.0)))
        return np.where(known, points, 0) if self._compatible else points

    def _committed(self, nodes: NodeView, resource: str, asked: int, most: int) -> CommitmentRisk:
        capacity = nodes.allocatable(resource).astype(np.float64)
        requested = nodes.requested(resource).astype(np.float64)
        limited = nodes.limited(resource).astype(np.float64)
        observed = self._reader.read(nodes, resource)
        unit = np.maximum(capacity, 1.0)
        figures = (
            observed.mean,
            observed.deviation * self._smoothed,
            np.minimum(requested, capacity) / unit,
            limited / unit,
        )
        # Independent of the pod, so all pods share the cached values.
        load = self._loads.of(resource, *figures) if nodes.whole else _by_load(*figures)
        return CommitmentRisk(
            self._weights[resource],
            _by_limits(capacity, np.minimum(requested + asked, capacity), limited + most),
            np.where(observed.trust > 0, load, 0.0),
            observed.trust,
        )


def _by_load(mean: Floats, deviation: Floats, requested: Floats, limited: Floats) -> Floats:
    """Return the probability that pods use more than they request, given their limits."""
    within = chances(mean, deviation, requested)[0]
    bounded = (limited < 1.0).nonzero()[0]
    if len(bounded):
        possible = chances(mean[bounded], deviation[bounded], limited[bounded])[0]
        part = np.minimum(within[bounded] / np.where(possible > 0, possible, 1.0), 1.0)
        within[bounded] = np.where(limited[bounded] > 0, part, 1.0)
    return 1.0 - within


def _by_limits(capacity: Floats, requested: Floats, limited: Floats) -> Floats:
    over = (limited > capacity) & (capacity > 0)
    return np.where(over, limited - capacity, 0.0) / np.where(over, limited - requested, 1.0)


def _wanted(pod: Pod) -> tuple[tuple[int, int], ...]:
    """Return a pod's request and limit for cpu and for memory."""
    asked, most = dict(pod.requests), dict(pod.limits or pod.requests)
    return tuple((asked.get(resource, 0), max(asked.get(resource, 0), most.get(resource, 0))) for resource in RESOURCES)
