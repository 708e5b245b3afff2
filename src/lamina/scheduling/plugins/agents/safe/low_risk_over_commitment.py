"""
LowRiskOverCommitment: prefer nodes where pods may not use much more than they asked for, and where they do not.

    by limits = (L - C)/(L - R)                      where limits exceed the capacity, else 0
    by load   = 1 - P(use ≤ R⁻)/P(use ≤ L⁻)          of a Beta distribution with the mean and deviation of use
    score     = 100 · (1 - the larger of  ω · by limits + (1 - ω) · by load  of cpu and memory)

C is the capacity, R and L what all pods of the node have requested (C at most) and may use with the pod, R⁻ and L⁻ the same
without it. Limits within which all of the capacity may be used do not bound use, and P(use ≤ L⁻) counts as 1. The deviation
of a use that was averaged over a window is multiplied with the root of the window's length.

The formula is that of the plugin of this name among Kubernetes' scheduler plugins. Limits and requests are known of every
node; for its load a node of which nothing was measured counts as the mean of the others (*compatible*: it scores nothing). A
pod that asks for nothing is ranked no more than upstream.
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
from lamina.scheduling.plugins.agents.safe.confidence import believed, rounded
from lamina.scheduling.plugins.agents.safe.risk import chances
from lamina.scheduling.plugins.agents.safe.row_cache import RowCache
from lamina.scheduling.plugins.agents.safe.utilization import READS, RESOURCES, UtilizationReader
from lamina.scheduling.state.columns import Bools, Floats, Ints
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView

NAME: Final = "LowRiskOverCommitment"


class CommitmentRisk(msgspec.Struct, frozen=True):
    """What one resource of some nodes risks."""

    weight: float
    """How much limits count."""
    limits: Floats
    load: Floats
    trust: Floats
    """How far the load is believed."""


RISK: Final[StateKey[list[CommitmentRisk]]] = StateKey("low-risk-over-commitment/committed")


class LowRiskOverCommitment:
    """Ranks by what pods may use, and do use, beyond their requests."""

    name: ClassVar = NAME
    Args: ClassVar = OverCommitmentArgs
    reads: ClassVar = Reads(rows=READS)

    def __init__(self, context: PluginContext, args: OverCommitmentArgs) -> None:
        """Weigh as *args* say."""
        self._observer = UtilizationReader(context, args.source, dated=not args.compatible)
        self._compatible = args.compatible
        self._weights = {CPU: args.risk_limit_weights.cpu, MEMORY: args.risk_limit_weights.memory}
        self._smoothed = math.sqrt(args.smoothing_window_size)
        self._loads = RowCache(_by_load)

    def sign(self, pod: Pod) -> Hashable:
        """Tell pods apart by what they ask for and may use."""
        return _wanted(pod)

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | None:
        """Abstain from a pod that asks for nothing, and may be given nothing."""
        return None if any(amount for pair in _wanted(pod) for amount in pair) else SKIP

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Find out what each node risks; what that is worth is up to `normalize`, which knows the feasible nodes."""
        state[RISK] = [
            self._committed(nodes, resource, *wanted) for resource, wanted in zip(RESOURCES, _wanted(pod), strict=True)
        ]
        return unscored(len(nodes))

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, feasible: Bools) -> Ints:
        """Score; a load of which little is known counts as the mean of the feasible nodes', as far as it is not believed."""
        worst, known = np.zeros(len(scores)), np.zeros(len(scores), dtype=np.bool_)
        for one in state[RISK]:
            load = one.load if self._compatible else believed(one.load, one.trust, feasible, 0.0)
            worst = np.maximum(worst, one.weight * one.limits + (1.0 - one.weight) * load)
            known |= one.trust > 0
        points = rounded(MAX_SCORE * (1.0 - np.minimum(worst, 1.0)))
        return np.where(known, points, 0) if self._compatible else points

    def _committed(self, nodes: NodeView, resource: str, asked: int, most: int) -> CommitmentRisk:
        capacity = nodes.allocatable(resource).astype(np.float64)
        requested = nodes.requested(resource).astype(np.float64)
        limited = nodes.limited(resource).astype(np.float64)
        observed = self._observer.look(nodes, resource)
        unit = np.maximum(capacity, 1.0)
        figures = (
            observed.mean,
            observed.deviation * self._smoothed,
            np.minimum(requested, capacity) / unit,
            limited / unit,
        )
        # The pod has no part in it, so all pods share what is kept.
        load = self._loads.of(resource, *figures) if nodes.whole else _by_load(*figures)
        return CommitmentRisk(
            self._weights[resource],
            _by_limits(capacity, np.minimum(requested + asked, capacity), limited + most),
            np.where(observed.trust > 0, load, 0.0),
            observed.trust,
        )


def _by_load(mean: Floats, deviation: Floats, requested: Floats, limited: Floats) -> Floats:
    """Return how likely pods are to use more than they asked for, considering that limits may hold them back."""
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
    """Return what a pod asks for and what it may use at most, of cpu and of memory."""
    asked, most = dict(pod.requests), dict(pod.limits or pod.requests)
    return tuple((asked.get(resource, 0), max(asked.get(resource, 0), most.get(resource, 0))) for resource in RESOURCES)
