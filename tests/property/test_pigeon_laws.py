"""
Laws of PigeonHoling: what is worked out from sums is what one gets by trying, and demand is what a plain count gives.

The oracle places the pod on one node, looks at the whole cluster, and takes the pod away again, node by node.
"""

import math
import statistics

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.plugins.agents.pigeon import PigeonHoling, PigeonHolingArgs, objectives
from lamina.scheduling.plugins.agents.pigeon.cluster_resources import ClusterResources
from lamina.scheduling.plugins.agents.pigeon.demand_statistics import MOST_COUNTED, DemandStatistics, requested_amounts
from lamina.scheduling.state.view import only
from lamina.testing import a_node, a_pod
from tests.unit.scheduling.bench import Bench, final

Amounts = list[float]

# Roots are taken of what is left of nearly equal numbers: the oracle's own last digits are no better than this.
CLOSE = 1e-7
CAPACITIES = st.sampled_from([4000.0, 0.0, 1.0, 7.0, 500.0, 3333.0, 64_000.0])
PARTS = st.integers(0, 13).map(lambda tenths: tenths / 10)
OBJECTIVES = st.sampled_from(["A_BINPACK", "LOAD_BALANCE", "CONSOLIDATE"])


class Drawn(msgspec.Struct):
    """A cluster, the pod that comes, and what pods asked for before it."""

    capacity: list[Amounts]
    usage: list[Amounts]
    counted: list[bool]
    pod: Amounts
    earlier: list[Amounts]


@st.composite
def drawn(draw: st.DrawFn) -> Drawn:
    """Few nodes, full, empty and overfull, some with nothing of a resource and some that do not count."""
    resources = draw(st.integers(1, 5))
    alike = draw(st.booleans())
    first = [draw(CAPACITIES) for _ in range(resources)]
    capacity, usage = [], []
    for _ in range(draw(st.integers(1, 6))):
        node = first if alike else [draw(CAPACITIES) for _ in range(resources)]
        capacity.append(node)
        usage.append([amount * draw(PARTS) for amount in node])
    counted = [draw(st.booleans()) for _ in capacity]
    amounts = st.lists(st.sampled_from([0.0, 1.0, 10.0, 100.0, 333.0, 2500.0]), min_size=resources, max_size=resources)
    earlier = draw(st.lists(amounts, max_size=4))
    return Drawn(capacity, usage, counted if any(counted) else [True] * len(counted), draw(amounts), earlier)


# -------------------------------------------------------------------------------------------------------------- oracle


def share(capacity: float, usage: float) -> float:
    return usage / capacity if capacity > 0 else 1.0


def variation(mean: Amounts, covariance: list[Amounts]) -> float:
    """Albert and Zhang's coefficient of variation of several quantities together."""
    span = range(len(mean))
    varied = sum(mean[one] * covariance[one][other] * mean[other] for one in span for other in span)
    squared = sum(amount * amount for amount in mean)
    return math.sqrt(varied) / squared if varied > 0 and squared > 0 else 0.0


def moments(vectors: list[Amounts]) -> tuple[Amounts, list[Amounts]]:
    columns = list(zip(*vectors, strict=True))
    mean = [statistics.fmean(column) for column in columns]
    covariance = [
        [
            statistics.fmean((a - mean[one]) * (b - mean[other]) for a, b in zip(column, beside, strict=True))
            for other, beside in enumerate(columns)
        ]
        for one, column in enumerate(columns)
    ]
    return mean, covariance


def balance(shares: list[float]) -> float:
    return statistics.pstdev(shares)


def consolidation(shares: list[float]) -> float:
    mean = statistics.fmean(shares)
    if not 0 < mean < 1:
        return 0.0
    tension = [(mean - one) / mean if one < mean else (one - mean) / (1 - mean) for one in shares]
    return 1 - math.sqrt(statistics.fmean(one * one for one in tension))


def packing(case: Drawn, usage: list[Amounts]) -> float:
    nodes = [node for node, counts in enumerate(case.counted) if counts]
    supply = variation(
        *moments(
            [
                [min(max(share(*one), 0.0), 1.0) for one in zip(case.capacity[node], usage[node], strict=True)]
                for node in nodes
            ]
        )
    )
    if not case.earlier:
        return supply
    mean_capacity = []
    for line in range(len(case.pod)):
        have = [case.capacity[node][line] for node in nodes if case.capacity[node][line] > 0]
        mean_capacity.append(statistics.fmean(have) if have else math.inf)
    demands = [[one / most for one, most in zip(pod, mean_capacity, strict=True)] for pod in case.earlier]
    return abs(supply - variation(*moments(demands)))


def tried(case: Drawn, objective: str, prime: int, node: int) -> float:
    """Place the pod on a node and look at the whole cluster."""
    usage = [list(one) for one in case.usage]
    usage[node] = [in_use + more for in_use, more in zip(usage[node], case.pod, strict=True)]
    if objective == "A_BINPACK":
        return packing(case, usage)
    shares = [share(case.capacity[one][prime], usage[one][prime]) for one, counts in enumerate(case.counted) if counts]
    return balance(shares) if objective == "LOAD_BALANCE" else consolidation(shares)


def has_room(case: Drawn, node: int) -> bool:
    each = zip(case.usage[node], case.pod, case.capacity[node], strict=True)
    return all(in_use + more <= most for in_use, more, most in each)


def worked_out(case: Drawn, objective: str, prime: int) -> list[float]:
    cluster = ClusterResources(np.array(case.capacity).T, np.array(case.usage).T, np.array(case.counted))
    pod, demand = np.array(case.pod), DemandStatistics(len(case.pod))
    for number, amounts in enumerate(case.earlier):
        demand.note(f"p{number}", np.array(amounts))
    if objective == "A_BINPACK":
        values = objectives.adaptive_bin_packing(cluster, pod, demand)
    elif objective == "LOAD_BALANCE":
        values = objectives.load_balance(cluster, pod, prime)
    else:
        values = objectives.consolidate(cluster, pod, prime)
    given: list[float] = values.tolist()
    return given


# ---------------------------------------------------------------------------------------------------------------- laws


@given(drawn(), OBJECTIVES, st.integers(0, 4))
def test_what_is_worked_out_from_sums_is_what_trying_every_node_gives(case, objective, prime):
    prime %= len(case.pod)
    values = worked_out(case, objective, prime)

    for node, counts in enumerate(case.counted):
        if counts and has_room(case, node):
            assert pytest.approx(tried(case, objective, prime, node), abs=CLOSE, rel=CLOSE) == values[node]


@given(drawn())
def test_room_is_where_every_resource_fits(case):
    cluster = ClusterResources(np.array(case.capacity).T, np.array(case.usage).T, np.array(case.counted))
    expected = [has_room(case, node) for node in range(len(case.capacity))]

    assert expected == cluster.fits(np.array(case.pod)).tolist()


ARRIVALS = st.lists(st.tuples(st.integers(0, 150), st.integers(1, 9), st.integers(1, 9)), max_size=300)


@given(ARRIVALS)
def test_demand_is_what_a_plain_count_gives_and_retries_do_not_count(arrivals):
    """The plain count: means of amounts and of their products, each pod with weight 1/count, and count at most 100."""
    noted = DemandStatistics(2)
    mean, products, seen = [0.0, 0.0], [[0.0, 0.0], [0.0, 0.0]], set()
    for pod, *amounts in arrivals:
        noted.note(f"p{pod}", np.array(amounts, dtype=np.float64))
        if pod in seen:
            continue
        seen.add(pod)
        weight = 1 / min(len(seen), MOST_COUNTED)
        for one in range(2):
            mean[one] += weight * (amounts[one] - mean[one])
            for other in range(2):
                products[one][other] += weight * (amounts[one] * amounts[other] - products[one][other])
    covariance = [[products[one][other] - mean[one] * mean[other] for other in range(2)] for one in range(2)]

    assert pytest.approx(mean) == noted.mean.tolist()
    assert pytest.approx(np.array(covariance), abs=1e-9) == noted.covariance


@st.composite
def benches(draw: st.DrawFn) -> tuple[Bench, list[str]]:
    """Nodes with pods on them, one that has left, and which of them are feasible."""
    bench = Bench(a_node("gone", 64))
    names = [f"n{number}" for number in range(draw(st.integers(1, 6)))]
    for name in names:
        bench.put(a_node(name, draw(st.sampled_from([4, 2, 16])), draw(st.sampled_from(["8Gi", "1Gi"]))))
        for number in range(draw(st.integers(0, 3))):
            size = (f"{draw(st.integers(1, 12))}00m", f"{draw(st.integers(1, 9))}00Mi")
            bench.place(name, a_pod(f"{name}-{number}", *size))
    bench.remove("gone")
    feasible = [name for name in names if draw(st.booleans())]
    return bench, feasible or names


@given(benches(), OBJECTIVES, st.booleans())
def test_the_best_gets_all_points_the_worst_a_tenth_and_order_is_kept(made, objective, compatible):
    bench, feasible = made
    args = PigeonHolingArgs(objective=objective, compatible=compatible)
    pod = a_pod("p", "700m", "300Mi")
    points = final(bench, PigeonHoling(bench.context, args), pod, feasible)
    order = values_of(bench, args, pod, feasible)

    assert set(feasible) == points.keys()
    assert {name for name, given in points.items() if given} == order.keys()
    ranked = sorted(order, key=lambda name: (order[name], -points[name]))
    assert [points[name] for name in ranked] == sorted((points[name] for name in ranked), reverse=True)
    if ranked:
        assert points[ranked[0]] == 100
        assert points[ranked[-1]] in {10, 100}


def values_of(bench: Bench, args: PigeonHolingArgs, pod, feasible: list[str]) -> dict[str, float]:
    """What the oracle says of the feasible nodes that have room."""
    names = [name for name in bench.columns.rows if not args.compatible or name in feasible]
    view, rows = bench.view, bench.columns.rows
    lines = [(view.allocatable(name), view.requested(name)) for name in ("cpu", "memory")]
    amounts = requested_amounts(pod, 2).tolist()
    case = Drawn(
        [[float(capacity[rows[name]]) for capacity, _ in lines] for name in names],
        [[float(usage[rows[name]]) for _, usage in lines] for name in names],
        [True] * len(names),
        amounts,
        [amounts],
    )
    # Nine digits: what differs by less differs by how it was worked out.
    return {
        name: round(tried(case, args.objective, 0, place), 9)
        for place, name in enumerate(names)
        if name in feasible and has_room(case, place)
    }


@given(benches(), OBJECTIVES, st.booleans())
def test_asked_about_some_nodes_it_says_what_it_says_of_them_among_all(made, objective, compatible):
    bench, feasible = made
    args = PigeonHolingArgs(objective=objective, compatible=compatible)
    pod, state = a_pod("p", "700m", "300Mi"), CycleState()
    whole = final(bench, PigeonHoling(bench.context, args), pod, feasible)
    some = only(bench.columns, [bench.columns.rows[name] for name in feasible])
    plugin = PigeonHoling(bench.context, args)
    plugin.pre_score(state, pod, bench.view)
    points = plugin.normalize(state, pod, plugin.score(state, pod, some), np.ones(len(some), dtype=np.bool_))

    assert [whole[name] for name in feasible] == points.tolist()


@given(benches(), st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9)), min_size=1, max_size=12))
def test_answers_do_not_depend_on_how_often_a_pod_was_tried(made, arrivals):
    """Whoever comes again asks for what it asked for; what others are told is the same as if it had come once."""
    bench, feasible = made
    often, once = (PigeonHoling(bench.context, PigeonHolingArgs()) for _ in range(2))
    seen: set[int] = set()
    for number, size in arrivals:
        pod = a_pod(f"p{number}", f"{size}00m", "300Mi")
        answers = [final(bench, often, pod, feasible)]
        if number not in seen:
            answers.append(final(bench, once, pod, feasible))
        seen.add(number)
        assert all(answer == answers[0] for answer in answers)
