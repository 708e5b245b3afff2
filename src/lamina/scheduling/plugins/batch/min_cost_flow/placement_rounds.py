"""
Rounds: flows solved one after the other for one batch, until all pods are placed or nothing changes.

A flow counts pods, but nodes have several resources, pull one image after the other, and pull an image once for all of
its pods. So a flow's choices are accepted in queue order while amounts last, and each node and each set of images
begins at most one new pull in a round. The next round starts from the room that is left: pulls that began are ahead of
other pulls on their nodes, and free of charge for pods with the same images. The last round accepts every pull.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np

from lamina.scheduling.plugins.batch.min_cost_flow.args import MinCostFlowArgs, PendingPrice
from lamina.scheduling.plugins.batch.min_cost_flow.cost_models import MOST_SECONDS, Costs
from lamina.scheduling.plugins.batch.min_cost_flow.flow_network import Flow, FlowNetwork, Solver, solve
from lamina.scheduling.plugins.batch.min_cost_flow.pod_classes import PodClass, Room, slots
from lamina.scheduling.state.columns import Ints

SINGLE_LEVELS: Final = 4
"""The first pods on a node have a price each; later levels double their width."""
PRIORITIES: Final = 100
"""Number of distinct priorities whose pods never displace each other."""


class BatchOutcome(msgspec.Struct):
    """What the rounds decided."""

    nodes: list[list[int]]
    """For each class: a node for each placed pod, in queue order."""
    flows: list[Flow]
    held: list[int]
    """For each class: pods that the last flow left pending although nodes had room for one."""
    gave_up: bool = False
    """Whether a flow needed more steps than allowed, so that the rest was left to the ordinary cycle."""


def place_classes(
    classes: Sequence[PodClass], room: Room, costs: Costs, now: float, solver: Solver, args: MinCostFlowArgs
) -> BatchOutcome:
    """Place as many pods as possible at the least cost."""
    batch = _Batch(classes, room, costs, now, args.pending)
    outcome = BatchOutcome([[] for _ in classes], [], [0] * len(classes))
    for number in range(1, args.rounds + 1):
        network = batch.network()
        if network is None:
            break
        flow = solve(network, solver, args.most_steps)
        if flow is None:
            outcome.gave_up = True
            break
        outcome.flows.append(flow)
        pending = network.counts - np.bincount(flow.classes, flow.pods, len(classes)).astype(np.int64)
        outcome.held = np.where(network.slots.any(axis=1), pending, 0).tolist()
        if not batch.accept(flow, outcome.nodes, last=number == args.rounds):
            break
    return outcome


class _Batch:
    """Pods that are not placed yet, and the room and the pulls that the placed ones leave."""

    def __init__(
        self, classes: Sequence[PodClass], room: Room, costs: Costs, now: float, pending: PendingPrice
    ) -> None:
        self._room = msgspec.structs.replace(room, free=room.free.copy(), most=room.most.copy())
        self._costs = costs
        self._current = costs.base.copy()
        self._left = np.array([len(one.members) for one in classes], dtype=np.int64)
        self._pending = _pending_costs(classes, now, pending)
        numbers: dict[tuple[str, ...], int] = {}
        self._images = np.array([numbers.setdefault(one.pod.images, len(numbers)) for one in classes])
        """For each class, the number of its set of images."""
        self._busy: set[tuple[str, int]] = set()
        """Nodes and sets of images that began a pull in this round."""
        self._pulled = np.zeros(costs.base.shape[1], dtype=np.int64)
        """For each node, the milliseconds of all pulls begun in this batch."""
        self._begun: dict[tuple[int, int], int] = {}
        """By set of images and node: the cost with which its pull was accepted."""
        self._taken = np.zeros(costs.base.shape[1], dtype=np.int64)
        self._ends = _level_ends(int(self._left.sum()))
        middles = [(first + 1 + last) // 2 for first, last in zip([0, *self._ends], self._ends, strict=False)]
        self._prices = np.stack([costs.price(number) for number in middles], axis=1)

    def network(self) -> FlowNetwork | None:
        """Return the network of the pods that are left; None if there are none, or no room."""
        left = self._left
        available = np.stack([slots(self._room, row) if left[row] else self._none() for row in range(len(left))])
        if not left.any() or not available.any():
            return None
        # The first pods of a class are placed first, so that the last ones are left.
        waiting = [costs[len(costs) - count :] for costs, count in zip(self._pending, left.tolist(), strict=True)]
        prices, repeats = zip(*(np.unique(costs, return_counts=True) for costs in waiting), strict=True)
        return FlowNetwork(
            counts=left.copy(),
            costs=self._current,
            slots=available,
            prices=self._prices,
            rooms=self._rooms(available),
            pending_class=np.repeat(np.arange(len(left)), [len(costs) for costs in prices]),
            pending_cost=np.concatenate(prices),
            pending_count=np.concatenate(repeats),
        )

    def accept(self, flow: Flow, placed: list[list[int]], *, last: bool) -> bool:
        """Accept choices while amounts last; return whether any was."""
        self._busy.clear()
        some = False
        order = np.lexsort((flow.nodes, self._current[flow.classes, flow.nodes], flow.classes))
        for entry in order.tolist():
            row, node, wanted = int(flow.classes[entry]), int(flow.nodes[entry]), int(flow.pods[entry])
            if not last and self._must_wait(row, node):
                continue
            count = min(wanted, self._fitting(row, node))
            if count <= 0:
                continue
            some = True
            placed[row] += [node] * count
            self._left[row] -= count
            self._taken[node] += count
            self._room.free[node] -= count * self._room.requests[row]
            self._room.most[row, node] -= count
            self._begin_pull(row, node)
        self._reprice()
        return some

    def _none(self) -> Ints:
        return np.zeros(self._costs.base.shape[1], dtype=np.int64)

    def _rooms(self, available: Ints) -> Ints:
        """Return the room of each level: as many pods of the mean size as fit, less those already placed."""
        weights = self._left / self._left.sum()
        mean = weights @ self._room.requests
        fitting = np.full(len(self._taken), np.inf)
        for line in np.flatnonzero(mean).tolist():
            np.minimum(fitting, np.maximum(self._room.free[:, line], 0) / mean[line], out=fitting)
        # A node that fits one pod of some class must not be closed because the mean pod is larger.
        most = np.clip(np.floor(fitting), 1, available.max(axis=0)).astype(np.int64)
        ends = np.clip(np.array([0, *self._ends])[None, :], self._taken[:, None], (self._taken + most)[:, None])
        rooms: Ints = np.diff(ends, axis=1)
        return rooms

    def _must_wait(self, row: int, node: int) -> bool:
        """Return whether the pod would begin a pull beside one of this round, on its node or of its images."""
        images = int(self._images[row])
        if not self._costs.pulls[row, node] or (images, node) in self._begun:
            return False
        return ("node", node) in self._busy or ("images", images) in self._busy

    def _fitting(self, row: int, node: int) -> int:
        requests = self._room.requests[row]
        asked = requests > 0
        return int(min(self._room.most[row, node], (self._room.free[node][asked] // requests[asked]).min()))

    def _begin_pull(self, row: int, node: int) -> None:
        images, pull = int(self._images[row]), int(self._costs.pulls[row, node])
        if pull and (images, node) not in self._begun:
            self._begun[images, node] = int(self._current[row, node] - self._costs.downloads[row, node])
            self._busy |= {("node", node), ("images", images)}
            self._pulled[node] += pull

    def _reprice(self) -> None:
        """Put the pulls of this batch ahead of others on their nodes; pods with the same images share them."""
        pulls = self._costs.pulls > 0
        most = int(MOST_SECONDS * 1000)
        self._current = np.minimum(self._costs.base + np.where(pulls, self._pulled[None, :], 0), most)
        for (images, node), cost in self._begun.items():
            same = (self._images == images) & pulls[:, node]
            self._current[same, node] = cost


def _level_ends(most: int) -> list[int]:
    """Return the number of pods up to the end of each level."""
    ends = list(range(1, min(most, SINGLE_LEVELS) + 1))
    while ends[-1] < most:
        ends.append(min(2 * ends[-1], most))
    return ends


def _pending_costs(classes: Sequence[PodClass], now: float, price: PendingPrice) -> list[Ints]:
    """Return the cost of leaving each pod of each class pending; higher priorities cost more than waiting ever does."""
    priorities = sorted({member.pod.priority for one in classes for member in one.members})
    ranks = {value: min(rank, PRIORITIES) for rank, value in enumerate(priorities)}
    found: list[Ints] = []
    for one in classes:
        waited = np.array([max(now - member.arrived_at, 0.0) for member in one.members])
        seconds = price.seconds + np.minimum(price.growth * waited, MOST_SECONDS)
        seconds += 3 * MOST_SECONDS * np.array([ranks[member.pod.priority] for member in one.members])
        found.append(np.rint(1000 * seconds).astype(np.int64))
    return found
