"""
LayerLocality: prefers nodes where the pod's images are ready soonest.

    E     = seconds until the images are ready + penalty for bytes to download + penalty for crowding
    score = 100 · T / (T + E)     0 on nodes that the crowding guard excludes

The scale is absolute: a node's score does not depend on other nodes, except through the mean load. The first seconds
matter most. At long waiting times, a second is worth less than one point. To let less download win there too, scores
are rounded down on nodes with a significant download, and up on the others.

Missing data is never treated as data. If an image is unknown, the plugin skips the pod. A node without a report gets
the mean of the feasible nodes with reports, and a node with an outdated report moves towards that mean.

Other modes, for comparison: *bytes* (share of bytes that need no download, with the same guard) and *original*.
"""

from collections.abc import Hashable, Sequence
from typing import ClassVar, Final

import msgspec
import numpy as np

from lamina.layers.readiness_estimator import Readiness
from lamina.model.layer_wish import FULL, weight_of_layers, wish
from lamina.model.locality_explanation import LocalityExplanation
from lamina.model.pod import Pod
from lamina.scheduling.contract.cycle_state import CycleState, StateKey
from lamina.scheduling.contract.normalize import unscored
from lamina.scheduling.contract.points import MAX_SCORE, Reads
from lamina.scheduling.contract.status import SKIP, Status
from lamina.scheduling.plugins.locality.layer_locality import explanation_part, ryax_formula
from lamina.scheduling.plugins.locality.layer_locality.args import LayerLocalityArgs
from lamina.scheduling.plugins.locality.layer_locality.crowding_guard import (
    NodeCrowding,
    barrier,
    crowded,
    read_crowding,
)
from lamina.scheduling.state.columns import Bools, Floats, Ints
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.pod_counts import owner_key
from lamina.scheduling.state.view import NodeView

NAME: Final = "LayerLocality"
# Subtracted from a score before it is rounded up: to round up, to the nearest integer, and down. Integers stay.
UP: Final = 1e-9
NEAREST: Final = 0.5
DOWN: Final = 1.0 - 1e-9


class LocalityScores(msgspec.Struct, frozen=True):
    """Costs of all nodes, before feasibility is known."""

    seconds: Floats
    """Seconds until the images are ready, with the penalty for the download; 0 where unknown."""
    trust: Floats | None
    """Trust in that, from 0 (unknown) to 1; None if all are 1."""
    rounding: Floats
    crowd: NodeCrowding


SCORES: Final[StateKey[LocalityScores]] = StateKey("layer-locality/costs")
PRICED: Final[StateKey[tuple[Floats | None, Bools | None]]] = StateKey("layer-locality/priced")
"""Crowding penalty of each node in seconds, and which nodes score 0."""


class LayerLocality:
    """Scores nodes by the seconds until the pod's images are ready."""

    name: ClassVar = NAME
    Args: ClassVar = LayerLocalityArgs
    reads: ClassVar = Reads(
        whole=frozenset({Facet.CATALOG}),
        others=frozenset({Facet.LAYERS, Facet.PULLS, Facet.RESOURCES, Facet.TAINTS, Facet.PODS}),
    )

    among_asked: ClassVar = True

    def __init__(self, context: PluginContext, args: LayerLocalityArgs) -> None:
        """Use the context's inventory and load."""
        self._inventory = context.inventory
        self._readiness_cache = context.inventory.readiness_cache
        self._load = context.load
        self._namespaces = context.namespaces
        self._args = args
        self._whole_only = args.knowledge == "images"
        context.inventory.rates.assume(args.bandwidth, args.unpack_rate)

    def sign(self, pod: Pod) -> Hashable:
        """Return images, requests, controller and namespace of the pod, and its annotation."""
        return (pod.images, pod.scoring_requests, owner_key(pod), pod.namespace, wish(pod.annotations)[0])

    def notes(self, pod: Pod) -> str:
        """Return what is wrong with the annotation of the pod or its namespace."""
        return wish(pod.annotations)[1] or wish(self._namespaces.get(pod.namespace, {}))[1]

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | None:
        """Skip pods without images or with unknown images, and pods whose annotation disables the plugin."""
        if self._percent(pod) == 0 or not pod.images:
            return SKIP
        return None if self._args.mode == "original" or self._ready(pod) is not None else SKIP

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Compute the cost of each node; `normalize`, which knows the feasible nodes, computes the scores."""
        if self._args.mode == "original":
            scores = ryax_formula.score(self._inventory, pod, nodes).astype(np.float64)
            return np.rint(self._weighed(pod, scores)).astype(np.int64)
        ready = self._ready(pod)
        assert ready is not None, "pre_score skips pods with unknown images"
        seconds, rounding, unknown = self._waiting(ready, nodes)
        trust = self._inventory.freshness.of(nodes.rows, nodes.height)
        if trust is not None or unknown is not None:
            trust = np.ones(len(nodes)) if trust is None else trust
            if unknown is not None:
                trust[unknown] = 0.0
            rounding = np.where(trust < 1, NEAREST, rounding)
        state[SCORES] = LocalityScores(
            seconds, trust, rounding, read_crowding(self._load, self._args.replica_share, pod, nodes)
        )
        return unscored(len(nodes))

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, feasible: Bools) -> Ints:
        """Compute the scores; where trust is below 1, mix in the mean of the feasible nodes."""
        if self._args.mode == "original":
            return scores
        costs = state[SCORES]
        seconds = costs.seconds
        if costs.trust is not None:
            seconds = costs.trust * seconds + (1.0 - costs.trust) * self._mean(costs, costs.trust, feasible)
        guard, out = state[PRICED] = self._guard(pod, costs.crowd, feasible)
        return self._scored(pod, seconds, costs.rounding, guard, out)

    def facts(self, state: CycleState, pod: Pod, nodes: NodeView) -> Sequence[dict[str, int]]:
        """Return present, arriving and missing bytes, and waiting times."""
        ready = self._ready(pod)
        if ready is None:
            return [{}] * len(nodes)
        self._readiness_cache.look(ready, nodes.height)
        return explanation_part.facts(self._inventory, ready, nodes, *(state.get(PRICED) or (None, None)))

    def explain(
        self,
        state: CycleState,
        pod: Pod,
        nodes: NodeView,
        best: tuple[int, int],
        feasible: Bools,
        *,
        full: bool = True,
    ) -> LocalityExplanation | None:
        """Return the layers of the chosen node and the savings of the choice."""
        ready = self._ready(pod)
        if ready is None:
            return None
        self._readiness_cache.look(ready, nodes.height)
        return explanation_part.explanation(self._inventory, ready, nodes, best, feasible, layers=full)

    # -- parts of the score ------------------------------------------------------------------------------------------

    def _ready(self, pod: Pod) -> Readiness | None:
        # Never stored between calls: the readiness cache evicts what is not requested for some time.
        return self._readiness_cache.readiness(pod.images, whole_only=self._whole_only)

    def _percent(self, pod: Pod) -> int:
        return weight_of_layers(pod.annotations, self._namespaces.get(pod.namespace, {}))

    def _waiting(self, ready: Readiness, nodes: NodeView) -> tuple[Floats, Floats, Bools | None]:
        """
        Return each node's cost in seconds without crowding, its rounding, and flags for unknown nodes (None if none).

        Cached with the readiness: usually the same image was requested before and nothing about it changed.
        """
        self._readiness_cache.look(ready, nodes.height)
        key = (self._args, ready.timed, nodes.height)
        kept: tuple[Floats, Floats, Bools | None]
        if nodes.whole and ready.scratch[:1] == (key,):
            kept = ready.scratch[1]
            return kept
        price = self._args.byte_price * ready.transfer[: nodes.height][nodes.rows]
        seconds, rounding = self._cost(ready, nodes, price), self._rounding(price)
        silent = ready.unknown[: nodes.height][nodes.rows] if ready.any_unknown else None
        if silent is not None:
            seconds[silent] = 0.0
        kept = (seconds, rounding, silent)
        if nodes.whole:
            ready.scratch = (key, kept)
        return kept

    def _cost(self, ready: Readiness, nodes: NodeView, price: Floats) -> Floats:
        """Return each node's cost in seconds without crowding; NaN where unknown."""
        if self._args.mode == "bytes":
            # Makes the score equal to the share of bytes that need no download.
            not_held = np.where(np.isnan(ready.seconds), np.nan, ready.download)[: nodes.height][nodes.rows]
            return self._args.half_score / np.maximum(1.0 - not_held, 1e-6) - self._args.half_score
        seconds = ready.seconds[: nodes.height][nodes.rows].copy()
        np.putmask(seconds, seconds < self._args.neutral, 0.0)
        if self._args.byte_price:
            seconds += price
        return seconds

    def _rounding(self, price: Floats) -> Floats:
        """Return what to subtract before rounding up: less on nodes without a significant download."""
        if self._args.mode == "bytes" or not self._args.byte_price:
            return np.full(len(price), NEAREST)
        return np.where(price > self._args.neutral, DOWN, UP)

    def _mean(self, costs: LocalityScores, trust: Floats, feasible: Bools) -> float:
        """Return the seconds whose score equals the mean score of the feasible nodes, weighted by trust."""
        half, weights = self._args.half_score, np.where(feasible, trust, 0.0)
        total = float(weights.sum())
        worth = float(np.dot(half / (half + costs.seconds), weights))
        return half * total / worth - half if total > 0 else 0.0

    def _guard(self, pod: Pod, crowd: NodeCrowding, feasible: Bools) -> tuple[Floats | None, Bools | None]:
        price, out = None, None
        if self._args.barrier is not None:
            price, out = barrier(self._args.barrier, self._load, pod, crowd, feasible)
        over = crowded(crowd, feasible)
        if over is not None:
            out = over if out is None else out | over
        return price, out

    def _scored(self, pod: Pod, seconds: Floats, rounding: Floats, guard: Floats | None, out: Bools | None) -> Ints:
        half = self._args.half_score
        cost = seconds.copy() if guard is None else seconds + guard
        cost += half
        scores = self._weighed(pod, np.divide(MAX_SCORE * half, cost, out=cost))
        scores -= rounding
        if out is not None:
            np.putmask(scores, out, 0.0)
        return np.ceil(scores, out=scores).astype(np.int64)

    def _weighed(self, pod: Pod, scores: Floats) -> Floats:
        percent = self._percent(pod)
        return scores if percent == FULL else scores * percent / FULL
