"""
LayerLocality: prefer nodes where the pod could start soonest, as far as its images go.

    E     = seconds until its images are ready + price of the bytes only it would download + price of crowding
    score = 100 · T / (T + E)     0 where crowding puts a node out of the question

The scale is absolute: what a node is worth does not depend on the others, except through the mean load, and the first
seconds count most. Far out on it seconds are less than a point; so that there, too, whoever downloads less wins where waiting
is equal, a score is rounded down where something worth mentioning has to be downloaded, and up where not.

Absence of data is never data: with an image nobody can resolve the plugin has nothing to say; a node that reported nothing
counts as the mean of the feasible ones that did, and one whose report grows old drifts there.

Other modes, for comparison: *bytes* (the share of bytes that need not be downloaded, guarded alike) and *original*.
"""

from collections.abc import Hashable, Sequence
from typing import ClassVar, Final

import msgspec
import numpy as np

from lamina.layers.readiness_estimator import Readiness
from lamina.model.locality_explanation import LocalityExplanation
from lamina.model.pod import Pod
from lamina.scheduling.contract.cycle_state import CycleState, StateKey
from lamina.scheduling.contract.normalize import unscored
from lamina.scheduling.contract.points import MAX_SCORE, Reads
from lamina.scheduling.contract.status import SKIP, Status
from lamina.scheduling.plugins.locality.layer_locality import explanation_part, ryax_formula
from lamina.scheduling.plugins.locality.layer_locality.args import FULL, LayerLocalityArgs, wish
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
# What is taken off a score before it is rounded up: what rounds it up, to the nearest number, and down. Whole numbers stay.
UP: Final = 1e-9
NEAREST: Final = 0.5
DOWN: Final = 1.0 - 1e-9


class LocalityScores(msgspec.Struct, frozen=True):
    """What is known of all nodes before it is clear which of them are feasible."""

    seconds: Floats
    """Until the images are ready, with the price of the download; 0 where that is not known."""
    trust: Floats | None
    """How far that is believed, from 0 (nothing is known) to 1; None where all of it is."""
    rounding: Floats
    crowd: NodeCrowding


SCORES: Final[StateKey[LocalityScores]] = StateKey("layer-locality/judged")
PRICED: Final[StateKey[tuple[Floats | None, Bools | None]]] = StateKey("layer-locality/priced")
"""What crowding costs each node in seconds, and which are out of the question."""


class LayerLocality:
    """Ranks by seconds until the pod's images are ready."""

    name: ClassVar = NAME
    Args: ClassVar = LayerLocalityArgs
    reads: ClassVar = Reads(
        whole=frozenset({Facet.CATALOG}),
        others=frozenset({Facet.LAYERS, Facet.PULLS, Facet.RESOURCES, Facet.TAINTS, Facet.PODS}),
    )

    among_asked: ClassVar = True

    def __init__(self, context: PluginContext, args: LayerLocalityArgs) -> None:
        """Look at the context's inventory and load."""
        self._inventory = context.inventory
        self._wants = context.inventory.wants
        self._load = context.load
        self._namespaces = context.namespaces
        self._args = args
        self._whole_only = args.knowledge == "images"
        context.inventory.rates.assume(args.bandwidth, args.unpack_rate)

    def sign(self, pod: Pod) -> Hashable:
        """Tell pods apart by their images, size, controller, and what they or their namespace say about locality."""
        return (pod.images, pod.scoring_requests, owner_key(pod), pod.namespace, wish(pod.annotations)[0])

    def notes(self, pod: Pod) -> str:
        """Say what is wrong with the pod's or its namespace's annotation."""
        return wish(pod.annotations)[1] or wish(self._namespaces.get(pod.namespace, {}))[1]

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | None:
        """Abstain when nobody wants to know, or one of the images is not known."""
        if self._percent(pod) == 0 or not pod.images:
            return SKIP
        return None if self._args.mode == "original" or self._ready(pod) is not None else SKIP

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Find out what each node costs; what that is worth is up to `normalize`, which knows the feasible nodes."""
        if self._args.mode == "original":
            scores = ryax_formula.score(self._inventory, pod, nodes).astype(np.float64)
            return np.rint(self._weighed(pod, scores)).astype(np.int64)
        ready = self._ready(pod)
        assert ready is not None, "asked for pods with known images only"
        seconds, rounding, unknown = self._waiting(ready, nodes)
        trust = self._inventory.trust.of(nodes.rows, nodes.height)
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
        """Score; nodes of which little is known count as the mean of the feasible ones, as far as they are not believed."""
        if self._args.mode == "original":
            return scores
        judged = state[SCORES]
        seconds = judged.seconds
        if judged.trust is not None:
            seconds = judged.trust * seconds + (1.0 - judged.trust) * self._mean(judged, judged.trust, feasible)
        guard, out = state[PRICED] = self._guard(pod, judged.crowd, feasible)
        return self._scored(pod, seconds, judged.rounding, guard, out)

    def facts(self, state: CycleState, pod: Pod, nodes: NodeView) -> Sequence[dict[str, int]]:
        """Tell what is there, what is coming and what is missing, and how long that takes."""
        ready = self._ready(pod)
        if ready is None:
            return [{}] * len(nodes)
        self._wants.look(ready, nodes.height)
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
        """Tell layer by layer what the chosen node has, and what choosing it saves."""
        ready = self._ready(pod)
        if ready is None:
            return None
        self._wants.look(ready, nodes.height)
        return explanation_part.story(self._inventory, ready, nodes, best, feasible, layers=full)

    # -- parts of the score ------------------------------------------------------------------------------------------

    def _ready(self, pod: Pod) -> Readiness | None:
        # Never kept from one call to the next: what is not asked for long enough is let go.
        return self._wants.readiness(pod.images, whole_only=self._whole_only)

    def _percent(self, pod: Pod) -> int:
        own = wish(pod.annotations)[0]
        if own is None:
            own = wish(self._namespaces.get(pod.namespace, {}))[0]
        return FULL if own is None else own

    def _waiting(self, ready: Readiness, nodes: NodeView) -> tuple[Floats, Floats, Bools | None]:
        """
        Return what each node costs in seconds before crowding, how that rounds, and where nothing is known (None: nowhere).

        Kept with the readiness: as a rule the same image was asked for before and nothing about it has changed since.
        """
        self._wants.look(ready, nodes.height)
        key = (self._args, ready.timed, nodes.height)
        kept: tuple[Floats, Floats, Bools | None]
        if nodes.whole and ready.scratch[:1] == (key,):
            kept = ready.scratch[1]
            return kept
        price = self._args.byte_price * ready.transfer[: nodes.height][nodes.rows]
        seconds, rounding = self._cost(ready, nodes, price), self._rounding(price)
        silent = ready.silent[: nodes.height][nodes.rows] if ready.unheard else None
        if silent is not None:
            seconds[silent] = 0.0
        kept = (seconds, rounding, silent)
        if nodes.whole:
            ready.scratch = (key, kept)
        return kept

    def _cost(self, ready: Readiness, nodes: NodeView, price: Floats) -> Floats:
        """Return what each node costs in seconds before crowding; NaN where that is not known."""
        if self._args.mode == "bytes":
            # Such that the score is the share of bytes that need not be downloaded.
            lacking = np.where(np.isnan(ready.seconds), np.nan, ready.download)[: nodes.height][nodes.rows]
            return self._args.half_score / np.maximum(1.0 - lacking, 1e-6) - self._args.half_score
        seconds = ready.seconds[: nodes.height][nodes.rows].copy()
        np.putmask(seconds, seconds < self._args.neutral, 0.0)
        if self._args.byte_price:
            seconds += price
        return seconds

    def _rounding(self, price: Floats) -> Floats:
        """Return what to take off before rounding up: less where no download worth mentioning is needed."""
        if self._args.mode == "bytes" or not self._args.byte_price:
            return np.full(len(price), NEAREST)
        return np.where(price > self._args.neutral, DOWN, UP)

    def _mean(self, judged: LocalityScores, trust: Floats, feasible: Bools) -> float:
        """Return the seconds that are worth as much as the mean of the feasible nodes, each as far as it is believed."""
        half, weights = self._args.half_score, np.where(feasible, trust, 0.0)
        total = float(weights.sum())
        worth = float(np.dot(half / (half + judged.seconds), weights))
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
