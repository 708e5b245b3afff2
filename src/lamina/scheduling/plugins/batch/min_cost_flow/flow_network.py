"""
The flow network of a batch, and its flow of least cost.

    class of equal pods ──slots, cost──> node ──room, price of each level──> sink
            └──────────── pending, cost ────────────────────────────────────> sink

A class is one node of the network, however many pods it has. A node's levels have rising prices: the more pods it
takes, the more the next one costs. Costs are integers, in milliseconds.

The network is solved as a linear program, whose vertices are integral. The program begins with the few cheapest nodes
of each class. Its dual prices then show which other nodes could lower the cost. They are added until there are none,
so that the result is the optimum of the complete network. A single class needs no program: its pods take the cheapest
places in order.
"""

from collections.abc import Callable
from typing import Final

import msgspec
import numpy as np

from lamina.scheduling.state.columns import Bools, Floats, Ints

FIRST_ARCS: Final = 16
"""Nodes of each class in the first program, besides one for each of its pods."""
MORE_ARCS: Final = 8
"""Nodes added to a class in each further program, besides one for every fourth of its pods."""
PROGRAMS: Final = 40
"""Maximum number of programs for one flow. The measured networks needed at most 20 for the proof of optimality."""
TOLERANCE: Final = 1e-3
FORBIDDEN: Final = 2.0**60


class LinearProgram(msgspec.Struct, frozen=True):
    """Minimise costs · x with 0 ≤ x ≤ bounds and matrix · x = demands; the matrix is given by its entries."""

    costs: Floats
    bounds: Floats
    demands: Floats
    rows: Ints
    columns: Ints
    entries: Floats


class Solution(msgspec.Struct, frozen=True):
    """A vertex of least cost."""

    values: Floats
    duals: Floats
    """For each demand: how much a unit more would cost."""
    steps: int


Solver = Callable[[LinearProgram, int], Solution | None]
"""Solves a program within a number of steps; None if it needs more."""


class FlowNetwork(msgspec.Struct, frozen=True):
    """Classes of equal pods, nodes, and the costs between them."""

    counts: Ints
    """Pods of each class."""
    costs: Ints
    """Class × node."""
    slots: Ints
    """Class × node: how many pods of the class the node can take; 0 where it must not."""
    prices: Ints
    """Node × level; must not fall from level to level."""
    rooms: Ints
    """Node × level: pods of any class."""
    pending_class: Ints
    """For each arc to pending: its class. The arcs of a class have room for all of its pods together."""
    pending_cost: Ints
    pending_count: Ints


class Flow(msgspec.Struct, frozen=True):
    """Pods by class and node."""

    classes: Ints
    nodes: Ints
    pods: Ints
    """At least 1 in each entry."""
    cost: int
    """With the cost of pods that stay pending."""
    optimal: bool
    """Whether no flow costs less."""
    steps: int


def solve(network: FlowNetwork, solver: Solver, most_steps: int) -> Flow | None:
    """Return the flow of least cost; None if the solver needs more than *most_steps*."""
    if len(network.counts) == 1:
        return _fill(network)
    allowed = network.slots > 0
    first = np.take_along_axis(network.prices, (network.rooms > 0).argmax(axis=1)[:, None], axis=1)[:, 0]
    within = np.where(allowed, network.costs + first, FORBIDDEN)
    chosen = _cheapest(within, FIRST_ARCS + network.counts) & allowed
    steps = 0
    for number in range(1, PROGRAMS + 1):
        found = _solve_over(network, chosen, first, solver, most_steps - steps)
        if found is None:
            return None
        flow, reduced = found
        steps += flow.steps
        missing = allowed & ~chosen & (reduced < -TOLERANCE)
        if not missing.any() or number == PROGRAMS:
            return msgspec.structs.replace(flow, optimal=not missing.any(), steps=steps)
        reduced[chosen | ~allowed] = FORBIDDEN
        more = np.where(missing.any(axis=1), MORE_ARCS + network.counts // 4, 0)
        chosen |= _cheapest(reduced, more) & allowed
    raise AssertionError("the last program returns")


def _fill(network: FlowNetwork) -> Flow:
    """Return the flow of least cost of a single class: prices rise from level to level, so the cheapest come first."""
    count, levels = int(network.counts[0]), network.prices.shape[1]
    ends = np.minimum(np.cumsum(network.rooms, axis=1), network.slots[0][:, None])
    rooms = np.diff(ends, axis=1, prepend=0).ravel()
    costs = (network.costs[0][:, None] + network.prices).ravel()
    open_ = np.flatnonzero(rooms)
    order = open_[np.argsort(costs[open_], kind="stable")]
    order = order[: np.searchsorted(np.cumsum(rooms[order]), count) + 1]
    # One entry for each place: the nth pod takes the nth place, and is spared the nth highest cost of waiting.
    places = np.repeat(order, rooms[order])[:count]
    waiting = np.sort(np.repeat(network.pending_cost, network.pending_count))[::-1]
    placed = int(np.count_nonzero(costs[places] < waiting[: len(places)]))
    nodes, pods = np.unique(places[:placed] // levels, return_counts=True)
    cost = int(costs[places[:placed]].sum() + waiting[placed:].sum())
    return Flow(np.zeros_like(nodes), nodes, pods, cost, optimal=True, steps=0)


def _cheapest(costs: Floats, numbers: Ints) -> Bools:
    """Mark the cheapest nodes of each class, as many as *numbers* has for it."""
    marked = np.zeros(costs.shape, dtype=np.bool_)
    for row, number in enumerate(numbers.tolist()):
        if number >= costs.shape[1]:
            marked[row] = True
        elif number:
            marked[row, np.argpartition(costs[row], number - 1)[:number]] = True
    return marked


def _solve_over(
    network: FlowNetwork, chosen: Bools, first: Ints, solver: Solver, most_steps: int
) -> tuple[Flow, Floats] | None:
    """
    Solve the network with the chosen arcs only; return the flow, and the reduced costs of all arcs.

    *first* has the price of each node's first pod.
    """
    classes, nodes = np.nonzero(chosen)
    used, places = np.unique(nodes, return_inverse=True)
    counts, levels, arcs, pending = network.counts, network.prices.shape[1], len(classes), len(network.pending_class)
    held = np.repeat(np.arange(len(used)), levels)
    numbers = np.arange(arcs + len(held) + pending)
    found = solver(
        LinearProgram(
            costs=np.concatenate(
                (network.costs[classes, nodes], network.prices[used].ravel(), network.pending_cost)
            ).astype(np.float64),
            bounds=np.concatenate(
                (
                    np.minimum(network.slots[classes, nodes], counts[classes]),
                    network.rooms[used].ravel(),
                    network.pending_count,
                )
            ).astype(np.float64),
            demands=np.concatenate((counts, np.zeros(len(used)))).astype(np.float64),
            # A class's pods leave it; what enters a node leaves it by its levels.
            rows=np.concatenate((classes, len(counts) + places, len(counts) + held, network.pending_class)),
            columns=np.concatenate((numbers[:arcs], numbers)),
            entries=np.concatenate((np.ones(2 * arcs), -np.ones(len(held)), np.ones(pending))),
        ),
        most_steps,
    )
    if found is None:
        return None
    values = np.rint(found.values).astype(np.int64)
    all_costs = np.concatenate((network.costs[classes, nodes], network.prices[used].ravel(), network.pending_cost))
    taken = values[:arcs] > 0
    flow = Flow(classes[taken], nodes[taken], values[:arcs][taken], int(values @ all_costs), True, found.steps)
    # For a node outside of the program, a dual price under which it stays empty.
    worth = -first.astype(np.float64)
    worth[used] = found.duals[len(counts) :]
    return flow, network.costs - found.duals[: len(counts), None] - worth[None, :]
