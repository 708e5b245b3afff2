"""Min-cost flow: optimal, within room and slots, and never an infeasible placement."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, linear_sum_assignment, milp

from lamina.model import events
from lamina.model.node import Node
from lamina.model.pod import Pod
from lamina.scheduling.contract.commands import Bind, Command, ReportUnschedulable
from lamina.scheduling.plugins.batch.min_cost_flow import flow_network
from lamina.scheduling.plugins.batch.min_cost_flow.flow_network import Flow, FlowNetwork, solve
from lamina.scheduling.plugins.batch.min_cost_flow.highs import load_solver
from lamina.testing import a_node, a_pod, an_image, held
from tests.unit.scheduling.named_profile_harness import a_harness

pytestmark = pytest.mark.slow

SOLVER = load_solver()
ENOUGH = 100_000
PENDING = 10_000
MB = 1_000_000


@st.composite
def networks(draw) -> FlowNetwork:
    """Up to four classes and eight nodes with three levels."""
    classes, nodes = draw(st.integers(1, 4)), draw(st.integers(1, 8))
    numbers = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    counts = numbers.integers(1, 5, classes)
    waiting = [np.unique(numbers.integers(0, 2 * PENDING, count), return_counts=True) for count in counts]
    return FlowNetwork(
        counts=counts,
        costs=numbers.integers(0, draw(st.sampled_from((3, PENDING))), (classes, nodes)),
        slots=numbers.integers(0, 4, (classes, nodes)),
        prices=np.cumsum(numbers.integers(0, draw(st.sampled_from((2, 500))), (nodes, 3)), axis=1),
        rooms=numbers.integers(0, 3, (nodes, 3)),
        pending_class=np.repeat(np.arange(classes), [len(costs) for costs, _ in waiting]),
        pending_cost=np.concatenate([costs for costs, _ in waiting]),
        pending_count=np.concatenate([repeats for _, repeats in waiting]),
    )


def cost_of_integers(network: FlowNetwork) -> int:
    """Return the least cost by integer programming, with a variable for each class, node and level."""
    classes, nodes = network.costs.shape
    levels = network.prices.shape[1]
    shape = (classes, nodes, levels)
    costs = np.concatenate(
        ((network.costs[:, :, None] + network.prices[None]).astype(float).ravel(), network.pending_cost)
    )
    where = np.arange(int(np.prod(shape))).reshape(shape)
    rows: list[tuple[np.ndarray, float, float]] = []

    def limit(of: Sequence[int] | np.ndarray, least: float, most: float) -> None:
        line = np.zeros(len(costs))
        line[np.asarray(of, dtype=int).ravel()] = 1
        rows.append((line, least, most))

    for one in range(classes):
        pending = where.size + np.flatnonzero(network.pending_class == one)
        limit([*where[one].ravel(), *pending], network.counts[one], network.counts[one])
        for node in range(nodes):
            limit(where[one, node], 0, network.slots[one, node])
    for node in range(nodes):
        for level in range(levels):
            limit(where[:, node, level], 0, network.rooms[node, level])
    lines, least, most = zip(*rows, strict=True)
    upper = np.concatenate((np.full(where.size, np.inf), network.pending_count))
    found = milp(
        costs,
        constraints=LinearConstraint(np.array(lines), np.array(least), np.array(most)),
        integrality=np.ones(len(costs)),
        bounds=Bounds(0, upper),
    )
    return int(np.rint(found.fun))


def solved(network: FlowNetwork, *, first: int = 16, more: int = 8) -> Flow:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flow_network, "FIRST_ARCS", first)
        patch.setattr(flow_network, "MORE_ARCS", more)
        flow = solve(network, SOLVER, ENOUGH)
    assert flow is not None
    return flow


@given(networks())
def test_the_cost_is_the_least_possible(network):
    """By an integer program of another form."""
    assert cost_of_integers(network) == solved(network).cost


@given(networks())
def test_few_nodes_to_begin_with_lead_to_the_same_cost(network):
    """Every missing node that matters is found by its price."""
    sparse = solved(network, first=0, more=1)

    assert sparse.optimal
    assert cost_of_integers(network) == sparse.cost


@given(networks())
def test_a_flow_stays_within_slots_rooms_and_counts(network):
    """Whatever it costs."""
    flow = solved(network)
    pods = np.zeros_like(network.costs)
    pods[flow.classes, flow.nodes] = flow.pods

    assert (flow.pods > 0).all()
    assert (pods <= network.slots).all()
    assert (pods.sum(axis=0) <= network.rooms.sum(axis=1)).all()
    assert (pods.sum(axis=1) <= network.counts).all()


@given(st.integers(1, 7), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_single_pods_on_single_slots_are_an_assignment(pods, nodes, seed):
    """As the Hungarian method assigns them."""
    costs = np.random.default_rng(seed).integers(0, PENDING // 10, (pods, nodes))
    single = np.ones(pods, dtype=np.int64)
    network = FlowNetwork(
        counts=single,
        costs=costs,
        slots=np.ones_like(costs),
        prices=np.zeros((nodes, 1), dtype=np.int64),
        rooms=np.ones((nodes, 1), dtype=np.int64),
        pending_class=np.arange(pods),
        pending_cost=PENDING * single,
        pending_count=single,
    )
    rows, columns = linear_sum_assignment(costs)

    assert int(costs[rows, columns].sum()) + PENDING * (pods - len(rows)) == solved(network).cost


# ------------------------------------------------------------------------------------------------------------ the plugin

IMAGES = tuple(
    an_image(f"app-{number}:1", {f"base-{number % 2}": 300 * MB, f"own-{number}": 100 * MB * number})
    for number in range(4)
)
PODS = st.lists(
    st.tuples(
        st.sampled_from(("100m", 1, 2, 5)), st.sampled_from(("1Gi", "3Gi", "9Gi")), st.integers(0, 4), st.integers(0, 2)
    ),
    min_size=1,
    max_size=12,
)
NODES = st.lists(
    st.tuples(st.sampled_from((1, 4)), st.sampled_from(("2Gi", "16Gi")), st.sampled_from((1, 110)), st.integers(0, 3)),
    min_size=1,
    max_size=5,
)


def run(pods: list[Pod], nodes: list[tuple[Node, int]]) -> list[Command]:
    """Return the commands for a batch."""
    desk = a_harness("flow")
    desk.tell(events.ImagesLearned(IMAGES))
    for node, image in nodes:
        desk.tell(events.NodeSeen(node), events.LayersReported(held(node.name, IMAGES[image])))
    desk.tell(*(events.PodSeen(pod) for pod in pods))
    return desk.commands


@given(PODS, NODES)
def test_no_node_gets_more_than_it_has_and_every_pod_is_decided(drawn, machines):
    """For cpu, memory and the number of pods; and the same batch is decided in the same way again."""
    pods = [
        a_pod(f"p{number}", cpu, memory, image=f"app-{image}:1", priority=priority)
        for number, (cpu, memory, image, priority) in enumerate(drawn)
    ]
    nodes = [
        (a_node(f"n{number}", cpu, memory, most), image) for number, (cpu, memory, most, image) in enumerate(machines)
    ]
    commands = run(pods, nodes)
    bound = {command.pod.name: command.node for command in commands if isinstance(command, Bind)}
    waiting = {command.pod.name for command in commands if isinstance(command, ReportUnschedulable)}

    assert {pod.name for pod in pods} == bound.keys() | waiting
    assert not bound.keys() & waiting
    for node, _ in nodes:
        taken: Counter[str] = Counter(pods=sum(place == node.name for place in bound.values()))
        for pod in pods:
            if bound.get(pod.name) == node.name:
                taken.update(dict(pod.requests))
        assert all(amount <= dict(node.allocatable)[name] for name, amount in taken.items())
    again = run(pods, nodes)
    assert bound == {command.pod.name: command.node for command in again if isinstance(command, Bind)}
