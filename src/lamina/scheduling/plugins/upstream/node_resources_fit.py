"""
NodeResourcesFit: refuses nodes where the pod does not fit, and scores the others by free or used resources.

The filter uses requests. Scoring assumes small defaults for containers without cpu or memory requests, as upstream
does. RequestedToCapacityRatio is a line through configured points: the score for each percentage in use.
"""

import itertools
from collections.abc import Hashable, Sequence
from typing import Annotated, ClassVar, Final, Literal

import msgspec
import numpy as np

from lamina.model.decision import Refusal
from lamina.model.pod import Pod
from lamina.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from lamina.model.selectors import is_label_key
from lamina.scheduling.contract.cycle_state import CycleState, StateKey
from lamina.scheduling.contract.plugin_registry import PluginArgs
from lamina.scheduling.contract.points import MAX_SCORE, Reads, Verdicts
from lamina.scheduling.state.cluster_changes import ChangeKind, ClusterChange
from lamina.scheduling.state.columns import LARGEST, NUDGE, Floats, Ints
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeRow, NodeView

NAME: Final = "NodeResourcesFit"
REASON_TOO_MANY_PODS: Final = "Too many pods"
REASON_INSUFFICIENT: Final = "Insufficient {}"

# Upstream's order of reasons; extended resources follow.
NATIVE: Final = (PODS, CPU, MEMORY, EPHEMERAL_STORAGE)
# Set in a code if one of the shortages would remain on an empty node.
FINAL_BIT: Final = 1 << 60
# The last bit for a shortage; further resources of a pod share it.
LAST_BIT: Final = 59
SCORED_ALWAYS: Final = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE})
RANKABLE: Final = frozenset({CPU, MEMORY})
RATIO: Final = "RequestedToCapacityRatio"
# Scores of shape points are configured as 0..10.
SCALE: Final = MAX_SCORE // 10

RequestedAmounts = tuple[tuple[str, int, int], ...]
"""A pod's requests: resource, its index among the well-known resources (-1 if it is none), amount."""
ASKED: Final[StateKey[RequestedAmounts]] = StateKey("node-resources-fit/asked")
RANKED: Final[StateKey[tuple[tuple[str, int, int], ...]]] = StateKey("node-resources-fit/ranked")
"""Resources to score: name, weight, amount that the pod adds."""


def _resource(name: str) -> None:
    if not is_label_key(name):
        raise ValueError(f"{name!r:.80} is not the name of a resource; write for example example.com/gpu")


def _group(name: str) -> None:
    if "/" in name or not is_label_key(name):
        raise ValueError(f"{name!r:.80} is not a group of resources; write for example example.com")


class ResourceWeight(msgspec.Struct, frozen=True):
    """Weight of a resource in the score."""

    name: str
    weight: Annotated[int, msgspec.Meta(ge=0, le=100)] = 1
    """0 means 1, as upstream."""


BY_DEFAULT: Final = (ResourceWeight(CPU), ResourceWeight(MEMORY))


class ShapePoint(msgspec.Struct, frozen=True):
    """Score (0..10) at a utilization in percent."""

    utilization: Annotated[int, msgspec.Meta(ge=0, le=100)] = 0
    score: Annotated[int, msgspec.Meta(ge=0, le=10)] = 0


class RequestedToCapacityRatio(msgspec.Struct, frozen=True):
    """Maps the percentage in use to a score."""

    shape: Annotated[tuple[ShapePoint, ...], msgspec.Meta(min_length=1)]
    """Linear between the points, constant outside of them."""

    def __post_init__(self) -> None:
        """Reject a shape whose utilization does not increase."""
        for before, after in itertools.pairwise(point.utilization for point in self.shape):
            if before >= after:
                raise ValueError(f"utilization must increase from point to point: {after} follows {before}")


class ScoringStrategy(msgspec.Struct, frozen=True, rename="camel"):
    """How nodes are scored."""

    type: Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"] = "LeastAllocated"
    resources: tuple[ResourceWeight, ...] = ()
    """Empty means cpu and memory."""
    requested_to_capacity_ratio: RequestedToCapacityRatio | None = None

    def __post_init__(self) -> None:
        """Reject a shape without its strategy, and the strategy without a shape."""
        if self.type == RATIO and self.requested_to_capacity_ratio is None:
            raise ValueError(f"type {RATIO} needs requestedToCapacityRatio.shape, a list of points")
        if self.type != RATIO and self.requested_to_capacity_ratio is not None:
            raise ValueError(f"requestedToCapacityRatio requires type {RATIO}; change the type or remove it")


class FitArgs(PluginArgs, frozen=True, kw_only=True, rename="camel"):
    """Arguments of NodeResourcesFit."""

    scoring_strategy: ScoringStrategy = ScoringStrategy()
    ignored_resources: tuple[Annotated[str, msgspec.Meta(extra={"reads": _resource})], ...] = ()
    ignored_resource_groups: tuple[Annotated[str, msgspec.Meta(extra={"reads": _group})], ...] = ()


class NodeResourcesFit:
    """Compares requests with free resources."""

    name: ClassVar = NAME
    Args: ClassVar = FitArgs
    reads: ClassVar = Reads(rows=frozenset({Facet.RESOURCES}))
    retry_on: ClassVar = frozenset({ChangeKind.NODE_ADDED, ChangeKind.NODE_ALLOCATABLE, ChangeKind.POD_REMOVED})
    amounts_suffice: ClassVar = True

    def __init__(self, context: PluginContext, args: FitArgs) -> None:
        """Score as *args* say."""
        self._context = context
        self._args = args
        strategy = args.scoring_strategy
        self._resources = tuple((one.name, one.weight or 1) for one in strategy.resources or BY_DEFAULT)
        self._most = strategy.type != "LeastAllocated"
        ratio = strategy.requested_to_capacity_ratio
        self._shape = None if ratio is None else np.array([_on_line(ratio.shape, used) for used in range(101)])
        """The score for each percentage in use; None without a shape."""

    def sign(self, pod: Pod) -> Hashable:
        """Return the pod's requests."""
        return (pod.requests, pod.scoring_requests)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> None:
        """Prepare the requests to compare."""
        state[ASKED] = tuple((name, nodes.column(name), amount) for name, amount in self._asked(pod))

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
        """Refuse nodes where a requested amount is not free."""
        asked = state[ASKED]
        codes: Ints | None = None
        everywhere = 0
        for bit, (resource, column, amount) in enumerate(asked):
            if column < 0 and not nodes.offered(resource):
                # No node offers the resource, so evicting pods would not help.
                everywhere |= FINAL_BIT | 1 << min(bit, LAST_BIT)
                continue
            free = nodes.free(resource)
            if free.min(initial=amount) >= amount:
                continue
            if codes is None:
                codes = np.zeros(len(nodes), dtype=np.int64)
            short = free < amount
            codes |= short.astype(np.int64) << min(bit, LAST_BIT)
            if resource != PODS:
                codes |= (short & (nodes.allocatable(resource) < amount)) * np.int64(FINAL_BIT)
        if everywhere:
            codes = np.full(len(nodes), everywhere, dtype=np.int64) if codes is None else codes | everywhere
        return None if codes is None else Verdicts(codes, lambda code: _tell(code, asked))

    def filter_node(self, state: CycleState, pod: Pod, node: NodeRow) -> int:
        """Return the code that `filter` returns for this node."""
        return _shortages(state[ASKED], node)

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeView) -> None:
        """Prepare what the pod adds to each scored resource."""
        asked = dict(pod.scoring_requests)
        state[RANKED] = tuple(
            (name, weight, asked.get(name, 0))
            for name, weight in self._resources
            # As upstream: an extended resource that the pod does not request is not scored.
            if name in SCORED_ALWAYS or (asked.get(name, 0) and name != PODS)
        )

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Score nodes by the free share (LeastAllocated), the used share (MostAllocated) or the configured shape."""
        ranked = state[RANKED]
        if not ranked:
            return np.zeros(len(nodes), dtype=np.int64)
        if not nodes.plain or self._shape is not None or any(one not in RANKABLE for one, _, _ in ranked):
            return self._score_odd(ranked, nodes)
        total: Floats | None = None
        for resource, weight, amount in ranked:
            share = nodes.headroom_with(resource, amount)
            if self._most:
                # Rounding the used share down is rounding the free share up.
                np.subtract(MAX_SCORE + 2 * NUDGE, share, out=share)
                np.minimum(share, MAX_SCORE, out=share)
            else:
                # Negative if the defaults for containers without requests exceed the capacity.
                np.maximum(share, 0.0, out=share)
            np.floor(share, out=share)
            if weight != 1:
                share *= weight
            total = share if total is None else np.add(total, share, out=total)
        assert total is not None, "something is ranked"
        total /= sum(weight for _, weight, _ in ranked)
        # floor_divide is ten times slower on floats; for numbers this small the result is the same.
        scores: Ints = np.floor(total, out=total).astype(np.int64)
        return scores

    def _score_odd(self, ranked: tuple[tuple[str, int, int], ...], nodes: NodeView) -> Ints:
        """
        Score in integers.

        Needed if a node has no cpu or memory or too much for exact floats, for other resources, and for a shape.
        """
        total = np.zeros(len(nodes), dtype=np.int64)
        weights = np.zeros(len(nodes), dtype=np.int64)
        for resource, weight, amount in ranked:
            capacity = nodes.allocatable(resource)
            in_use = nodes.ranked(resource) if resource in RANKABLE else capacity - nodes.free(resource)
            left = np.maximum(capacity - in_use - amount, 0)
            counts = capacity > 0
            points = (capacity - left if self._most else left) * MAX_SCORE // np.maximum(capacity, 1)
            if self._shape is not None:
                points = self._shape.take(points)
                # As upstream, a resource with a score of 0 is left out of the mean.
                counts &= points > 0
            total += np.where(counts, points * weight, 0)
            weights += np.where(counts, weight, 0)
        if self._shape is not None:
            return (2 * total + weights) // np.maximum(2 * weights, 1)
        return total // np.maximum(weights, 1)

    def score_node(self, state: CycleState, pod: Pod, node: NodeRow) -> int:
        """Return the score that `score` returns for this node."""
        total = weights = 0
        for resource, weight, amount in state[RANKED]:
            if resource in RANKABLE:
                capacity, in_use = node.capacity_and_ranked(resource)
                left = capacity - in_use - amount
            else:
                capacity, free = node.capacity_and_free(resource)
                left = free - amount
            if capacity <= 0:
                continue
            left = max(left, 0)
            points = (capacity - left if self._most else left) * MAX_SCORE // capacity
            if self._shape is not None:
                points = self._shape.item(points)
                if points == 0:
                    continue
            weights += weight
            total += weight * points
        if self._shape is not None:
            return (2 * total + weights) // (2 * weights) if weights else 0
        return total // weights if weights else 0

    def worth_retrying(self, pod: Pod, change: ClusterChange) -> bool:
        """Return whether the changed node has room for the pod now."""
        if change.row < 0:
            return True
        node = self._context.node(change.row)
        return all(node.free(resource) >= amount for resource, amount in self._asked(pod))

    def needs(self, pod: Pod) -> dict[str, int]:
        """Return the amounts that must be free on a node."""
        return dict(self._asked(pod))

    def offers(self, row: int) -> dict[str, int]:
        """Return the free amounts of a node; empty if it was removed."""
        node = self._context.node(row)
        known = node.node
        return {} if known is None else {name: node.free(name) for name, _ in known.allocatable}

    def _asked(self, pod: Pod) -> list[tuple[str, int]]:
        requests = dict(pod.requests)
        asked = [(PODS, 1)]
        asked += [(name, requests[name]) for name in NATIVE[1:] if requests.get(name)]
        asked += [
            (name, amount) for name, amount in pod.requests if amount and name not in NATIVE and self._counts(name)
        ]
        return [(name, min(amount, LARGEST)) for name, amount in asked]

    def _counts(self, resource: str) -> bool:
        group = resource.split("/", 1)[0]
        native = "/" not in resource or "kubernetes.io/" in resource or resource.startswith("requests.")
        return native or not (resource in self._args.ignored_resources or group in self._args.ignored_resource_groups)


def _on_line(shape: Sequence[ShapePoint], used: int) -> int:
    """Return the score for a percentage in use, with upstream's integer arithmetic."""
    before = shape[0]
    for point in shape:
        if used <= point.utilization:
            rise = (point.score - before.score) * SCALE * (used - before.utilization)
            run = point.utilization - before.utilization
            # Rounded towards zero, even on a falling line.
            way = abs(rise) // run if run else 0
            return before.score * SCALE + (way if rise >= 0 else -way)
        before = point
    return before.score * SCALE


def _shortages(asked: RequestedAmounts, node: NodeRow) -> int:
    code = 0
    free = node.free_all()
    for bit, (resource, column, amount) in enumerate(asked):
        if (free[column] if column >= 0 else node.free(resource)) < amount:
            code |= 1 << min(bit, LAST_BIT)
            if resource != PODS and node.allocatable(resource) < amount:
                code |= FINAL_BIT
    return code


def _tell(code: int, asked: RequestedAmounts) -> Refusal:
    short = [resource for bit, (resource, _, _) in enumerate(asked) if code >> min(bit, LAST_BIT) & 1]
    reasons = [REASON_TOO_MANY_PODS if one == PODS else REASON_INSUFFICIENT.format(one) for one in short]
    return Refusal(NAME, tuple(reasons), final=bool(code & FINAL_BIT))
