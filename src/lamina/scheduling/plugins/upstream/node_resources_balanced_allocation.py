"""
NodeResourcesBalancedAllocation: prefers nodes whose resource usage the pod would make more even.

Exactly upstream's formula. The balance of a node is 100 minus the standard deviation of its used shares, in percent.
The score is the change of balance by the pod: 75 for no change, up to 100 if usage becomes more even, down to 50 if
less even. Requests are used as they are, without the defaults that other scorers assume for containers without
requests. A pod that requests none of the resources is not scored.
"""

import math
from collections.abc import Hashable, Sequence
from typing import Annotated, ClassVar, Final

import msgspec
import numpy as np

from lamina.model.pod import Pod
from lamina.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from lamina.scheduling.contract.cycle_state import CycleState, StateKey
from lamina.scheduling.contract.plugin_registry import PluginArgs
from lamina.scheduling.contract.points import MAX_SCORE, Reads
from lamina.scheduling.contract.status import SKIP, Status
from lamina.scheduling.state.columns import LARGEST, Bools, Floats, Ints
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeRow, NodeView

NAME: Final = "NodeResourcesBalancedAllocation"
HALF: Final = MAX_SCORE // 2
SCORED_ALWAYS: Final = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE})

ASKED: Final[StateKey[tuple[tuple[str, int], ...]]] = StateKey("node-resources-balanced-allocation/asked")
"""Resources to score, each with the amount that the pod adds."""


class BalancedResource(msgspec.Struct, frozen=True):
    """A resource to score; all have the same weight."""

    name: str
    weight: Annotated[int, msgspec.Meta(ge=0, le=1)] = 1
    """0 means 1; as upstream, no other weight is allowed."""


class BalancedAllocationArgs(PluginArgs, frozen=True, kw_only=True, rename="camel"):
    """Arguments of NodeResourcesBalancedAllocation."""

    resources: tuple[BalancedResource, ...] = ()
    """Empty means cpu and memory."""

    def __post_init__(self) -> None:
        """Reject a resource that is listed twice."""
        names = [one.name for one in self.resources]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"resource {name!r} is listed twice; keep one of them")


class NodeResourcesBalancedAllocation:
    """Compares the balance of each node with and without the pod."""

    name: ClassVar = NAME
    Args: ClassVar = BalancedAllocationArgs
    reads: ClassVar = Reads(rows=frozenset({Facet.RESOURCES}))

    def __init__(self, context: PluginContext, args: BalancedAllocationArgs) -> None:
        """Score the resources of *args*."""
        self._context = context
        self._resources = tuple(one.name for one in args.resources) or (CPU, MEMORY)
        self._usage = ResourcePairUsage(self._resources) if len(self._resources) == 2 else None

    def sign(self, pod: Pod) -> Hashable:
        """Return the pod's requests."""
        return pod.requests

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | None:
        """Compute what the pod adds to each resource; skip the pod if that is nothing."""
        requests = dict(pod.requests)
        asked = [(name, min(requests.get(name, 0), LARGEST)) for name in self._resources]
        if not any(amount for _, amount in asked):
            return SKIP
        # As upstream: an extended resource that the pod does not request is not scored.
        state[ASKED] = tuple((name, one) for name, one in asked if name in SCORED_ALWAYS or (one and name != PODS))
        return None

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Score nodes by the change of their balance."""
        asked, usage = state[ASKED], self._usage
        if usage is not None and len(asked) == 2 and usage.refresh(nodes, self._context):
            return usage.score(asked[0][1], asked[1][1], nodes)
        shares, shares_with, there = [], [], np.zeros(len(nodes), dtype=np.int64)
        for resource, amount in asked:
            capacity = nodes.allocatable(resource)
            used = capacity - nodes.free(resource)
            # NaN on nodes without the resource.
            divisor = np.where(capacity == 0, np.nan, capacity)
            shares.append(np.minimum(used / divisor, 1.0))
            shares_with.append(np.minimum((used + amount) / divisor, 1.0))
            there += capacity != 0
        changed: Ints = HALF + (HALF + _balances(shares_with, there) - _balances(shares, there)) // 2
        return changed

    def score_node(self, state: CycleState, pod: Pod, node: NodeRow) -> int:
        """Return the score that `score` returns for this node."""
        shares: list[float] = []
        shares_with: list[float] = []
        for resource, amount in state[ASKED]:
            capacity, free = node.capacity_and_free(resource)
            if capacity:
                used = capacity - free
                shares.append(min(used / capacity, 1.0))
                shares_with.append(min((used + amount) / capacity, 1.0))
        return HALF + (HALF + _balance(shares_with) - _balance(shares)) // 2


class ResourcePairUsage:
    """
    Usage of two resources on every node and its balance: the part of the common case that does not depend on the pod.

    Kept from one pod to the next; a placement changes one row.
    """

    __slots__ = ("_balance", "_capacity", "_missing", "_names", "_noted", "_used")

    def __init__(self, names: Sequence[str]) -> None:
        """Start without rows."""
        self._names = names
        self._noted = 0
        # 1 on nodes without the resource, to avoid a division by zero.
        self._capacity: Floats = np.ones((2, 0))
        self._used: Floats = np.zeros((2, 0))
        self._balance: Floats = np.zeros(0)
        # Rows without one of the two resources; a single share is always balanced.
        self._missing: Bools = np.zeros(0, dtype=np.bool_)

    def refresh(self, nodes: NodeView, context: PluginContext) -> bool:
        """Update the rows that changed; return False if all rows need an update but *nodes* has only some of them."""
        rows = nodes.changed_since(Facet.RESOURCES, self._noted) if len(self._balance) == nodes.height else None
        if rows is None or len(rows) > nodes.height // 4:
            if not nodes.whole:
                return False
            self._read(nodes)
        else:
            for row in dict.fromkeys(rows):
                self._read_row(row, context.node(row))
        self._noted = nodes.noted(Facet.RESOURCES)
        return True

    def score(self, first: int, second: int, nodes: NodeView) -> Ints:
        """Score nodes by the change of balance with *first* and *second* more of the two resources in use."""
        rows = nodes.rows
        shares = (self._used[0, rows] + first) / self._capacity[0, rows]
        others = (self._used[1, rows] + second) / self._capacity[1, rows]
        balance = _paired(np.minimum(shares, 1.0, out=shares), np.minimum(others, 1.0, out=others))
        # 50 + (50 + with - without) // 2 in floats, which are exact here and faster.
        balance -= self._balance[rows]
        balance += MAX_SCORE + HALF
        balance *= 0.5
        changed: Ints = balance.astype(np.int64)
        changed[self._missing[rows]] = HALF + HALF // 2
        return changed

    def _read(self, nodes: NodeView) -> None:
        capacity = np.array([nodes.allocatable(name) for name in self._names])
        self._used = (capacity - np.array([nodes.free(name) for name in self._names])).astype(np.float64)
        self._missing = (capacity == 0).any(axis=0)
        self._capacity = np.maximum(capacity, 1).astype(np.float64)
        first, second = np.minimum(self._used / self._capacity, 1.0)
        self._balance = _paired(first, second)

    def _read_row(self, row: int, node: NodeRow) -> None:
        self._missing[row] = False
        shares = []
        for line, name in enumerate(self._names):
            capacity, free = node.capacity_and_free(name)
            used = capacity - free
            if capacity == 0:
                self._missing[row] = True
            self._capacity[line, row] = capacity or 1
            self._used[line, row] = used
            shares.append(min(used / (capacity or 1), 1.0))
        self._balance[row] = _balance(shares)


def _balance(shares: list[float]) -> int:
    """Return 100 minus the standard deviation in percent, truncated; computed in the same steps as upstream."""
    count = len(shares)
    deviation = 0.0
    if count == 2:
        deviation = abs((shares[0] - shares[1]) / 2)
    elif count > 2:
        # Not sum(), which is more exact from Python 3.12 on than upstream's loop.
        total = squares = 0.0
        for share in shares:
            total += share
        mean = total / count
        for share in shares:
            squares += (share - mean) * (share - mean)
        deviation = math.sqrt(squares / count)
    return int((1 - deviation) * MAX_SCORE)


def _balances(shares: list[Floats], there: Ints) -> Ints:
    """Return `_balance` for each node, over the resources that the node has (others are NaN)."""
    if len(shares) < 2:
        return np.full(len(there), MAX_SCORE, dtype=np.int64)
    count = np.maximum(there, 1)
    total, squares = np.zeros(len(there)), np.zeros(len(there))
    for share in shares:
        total += np.where(np.isnan(share), 0.0, share)
    mean = total / count
    for share in shares:
        squares += np.where(np.isnan(share), 0.0, (share - mean) * (share - mean))
    # For two shares: half the difference between the larger and the smaller one.
    halves = (np.fmax.reduce(shares) - np.fmin.reduce(shares)) / 2
    deviation = np.where(there == 2, halves, np.sqrt(squares / count))
    deviation[there < 2] = 0.0
    balances: Ints = ((1 - deviation) * MAX_SCORE).astype(np.int64)
    return balances


def _paired(first: Floats, second: Floats) -> Floats:
    """Return `_balance` of two shares for each node; overwrites *first*."""
    first -= second
    np.abs(first, out=first)
    first *= 0.5
    np.subtract(1.0, first, out=first)
    first *= MAX_SCORE
    return np.floor(first, out=first)
