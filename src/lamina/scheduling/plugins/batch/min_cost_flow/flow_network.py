"""
The flow network of a batch, and its flow of least cost.

    class of equal pods ──slots, cost──> node ──room, price of each level──> sink
            └──────────── pending, cost ────────────────────────────────────> sink

A class is one node of the network, however many pods it has. A node's levels have rising prices: the more pods it
takes, the more the next one costs. Costs are integers, in milliseconds.

The network is solved as a linear program, whose vertices are integral. The program begins with the few cheapest nodes
of each class. Its dual prices then show which other nodes could lower the cost. They are added until there are none,
so that the result is the optimum of the complete network.
"""

from collections.abc import Callable
from typing import Final

import msgspec
import numpy as np

from lamina.scheduling.state.columns import Bools, Floats, Ints

FIRST_ARCS: Final = 16
"""Nodes of each class in the first program."""
MORE_ARCS: Final = 8
"""Nodes added to a class in each further program."""
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
    allowed = network.slots > 0
    within = np.where(allowed, network.costs + network.prices[:, 0], FORBIDDEN)
    chosen = _cheapest(within, FIRST_ARCS) & allowed
    steps = 0
    for number in range(1, PROGRAMS + 1):
        found = _solve_over(network, chosen, solver, most_steps - steps)
        if found is None:
            return None
        flow, reduced = found
        steps += flow.steps
        missing = allowed & ~chosen & (reduced < -TOLERANCE)
        if not missing.any() or number == PROGRAMS:
            return msgspec.structs.replace(flow, optimal=not missing.any(), steps=steps)
        reduced[chosen | ~allowed] = FORBIDDEN
        chosen |= _cheapest(reduced, MORE_ARCS) & allowed & missing.any(axis=1, keepdims=True)
    raise AssertionError("the last program returns")


def _cheapest(costs: Floats, count: int) -> Bools:
    """Mark the *count* cheapest nodes of each class."""
    marked = np.zeros(costs.shape, dtype=np.bool_)
    if costs.shape[1] <= count:
        return ~marked
    np.put_along_axis(marked, np.argpartition(costs, count - 1, axis=1)[:, :count], values=True, axis=1)
    return marked


def _solve_over(network: FlowNetwork, chosen: Bools, solver: Solver, most_steps: int) -> tuple[Flow, Floats] | None:
    """Solve the network with the chosen arcs only; return the flow, and the reduced costs of all arcs."""
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
    # A node outside of the program is worth the price of its first level.
    worth = -network.prices[:, 0].astype(np.float64)
    worth[used] = found.duals[len(counts) :]
    return flow, network.costs - found.duals[: len(counts), None] - worth[None, :]
