"""
Laws of the agent `safe`: what an array is told is what each node is told, and what is not known is no verdict.

*compatible* is held against a plain-Python reading of how kube-safe-scheduler behaves, node by node.
"""

import math
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from lamina.model.node import Node
from lamina.model.node_usage import NodeUsage, ResourceUsage
from lamina.model.pod import Container, Pod, total_limits, total_requests
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.plugins.agents.safe import (
    BalanceArgs,
    LowRiskOverCommitment,
    OverloadArgs,
    SafeBalance,
    SafeOverload,
    TargetLoadPacking,
)
from lamina.scheduling.plugins.agents.safe.beta import split
from lamina.scheduling.plugins.agents.safe.risk import chances
from lamina.scheduling.state.view import only
from lamina.testing import a_node, a_pod
from tests.unit.scheduling.bench import Bench
from tests.unit.scheduling.plugins.agents.safe import oracle
from tests.unit.scheduling.plugins.agents.safe.usage import ask, points

# A cluster is many values; many more are tried under `make soak`.
FEWER = settings(max_examples=settings().max_examples * 3 // 5)

shares = st.floats(0, 1, allow_subnormal=False)
parameters = st.floats(-3, 6).map(lambda power: 10.0**power)
percents = st.sampled_from([0.0, 1.0, 10.0, 30.0, 50.0, 90.0, 99.0, 100.0])
ANY: Any = [SafeOverload, SafeBalance, LowRiskOverCommitment, TargetLoadPacking]


# ----------------------------------------------------------------------------------------------------------- one number


def both(a: float, b: float, x: float) -> tuple[float, float]:
    low, high = split(np.array([a]), np.array([b]), np.array([x]))
    return float(low[0]), float(high[0])


@given(parameters, parameters, shares)
def test_what_is_below_and_what_is_above_is_everything(a, b, x):
    low, high = both(a, b, x)

    assert 0.0 <= low <= 1.0
    assert 0.0 <= high <= 1.0
    assert pytest.approx(1.0, abs=1e-15) == low + high


@given(parameters, parameters, shares, shares)
def test_more_is_below_more(a, b, x, other):
    smaller, larger = sorted((x, other))

    assert both(a, b, smaller)[0] <= both(a, b, larger)[0] + 1e-11


@given(parameters, parameters, st.integers(0, 1024))
def test_seen_from_the_other_end_it_is_the_other_way_round(a, b, parts):
    """Shares that have no rounding error when they are taken from 1."""
    low, high = both(a, b, parts / 1024)

    assert pytest.approx((high, low), abs=1e-11) == both(b, a, 1 - parts / 1024)


@settings(max_examples=settings().max_examples // 2)
@given(st.floats(-2, 3), st.floats(-2, 3), st.floats(0.001, 0.999))
def test_it_is_what_another_way_of_integrating_gives(a, b, x):
    assert pytest.approx(oracle.incomplete_beta(10.0**a, 10.0**b, x), abs=1e-10) == both(10.0**a, 10.0**b, x)


def risk(mean: float, deviation: float, threshold: float, *, capped: bool = True) -> float:
    return float(chances(np.array([mean]), np.array([deviation]), threshold, capped=capped)[1][0])


@given(shares, shares, shares, shares, st.booleans())
def test_a_higher_threshold_is_no_higher_risk(mean, deviation, threshold, other, capped):
    lower, higher = sorted((threshold, other))

    assert risk(mean, deviation, higher, capped=capped) <= risk(mean, deviation, lower, capped=capped) + 1e-11


@given(shares, st.floats(0, 1), shares)
def test_a_higher_mean_of_a_steady_use_is_no_lower_risk(mean, further, threshold):
    higher = mean + further * (1 - mean)

    assert risk(mean, 0.0, threshold) <= risk(higher, 0.0, threshold)


@given(st.floats(0.01, 0.99), st.floats(0, 1), st.floats(0.001, 0.5), shares)
def test_a_higher_mean_is_no_lower_risk_where_the_distribution_moves_up(mean, further, deviation, threshold):
    """
    A Beta distribution moves up when α grows and β shrinks.

    With one deviation that is so for means from a third to two thirds, and for others as far as the deviation allows.
    Where it is not, the tails may cross: see `risk`.
    """
    higher = mean + further * (0.99 - mean)
    (a, b), (a_too, b_too) = fit(mean, deviation), fit(higher, deviation)
    assume(a <= a_too and b >= b_too)

    assert risk(mean, deviation, threshold) <= risk(higher, deviation, threshold) + 1e-11


def fit(mean: float, deviation: float) -> tuple[float, float]:
    spread = mean * (1 - mean)
    k = spread / min(deviation**2, 0.99 * spread) - 1
    return mean * k, (1 - mean) * k


# ------------------------------------------------------------------------------------------------------------- clusters


def said(largest: int) -> st.SearchStrategy[str]:
    """What an annotator may write: as a rule a number of units that are free."""
    numbers = st.integers(-largest // 4, largest + largest // 4) | st.sampled_from([0, largest // 10, largest])
    return numbers.map(str) | st.sampled_from(["N/A", "", "nan", "1e3", "-0.0"])


@st.composite
def annotations(draw: st.DrawFn, cpu: int, memory: int) -> dict[str, str]:
    found = {}
    for resource, capacity in (("cpu", cpu), ("memory", memory)):
        for key, largest in (("mean-free", capacity), ("std-free", capacity // 2), ("forcasted-free", capacity)):
            if draw(st.booleans()):
                found[f"{key}-{resource}"] = draw(said(largest))
    return found


@st.composite
def nodes(draw: st.DrawFn) -> list[Node]:
    made = []
    for number in range(draw(st.integers(1, 6))):
        cpu, memory = draw(st.sampled_from([1000, 3000, 4000, 64000])), draw(st.sampled_from([1000, 2**34, 3 * 10**9]))
        made.append(a_node(f"n{number}", cpu=f"{cpu}m", memory=str(memory), annotations=draw(annotations(cpu, memory))))
    return made


amounts = st.fixed_dictionaries({}, optional={"cpu": st.integers(0, 2000), "memory": st.integers(0, 2**32)})


@st.composite
def containers(draw: st.DrawFn, most: int) -> tuple[Container, ...]:
    drawn = draw(st.lists(st.tuples(amounts, amounts), max_size=most))
    return tuple(
        Container("app:1", tuple(sorted(asked.items())), limits=tuple(sorted(at_most.items())))
        for asked, at_most in drawn
    )


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    running, before = draw(containers(3)), draw(containers(2))
    overhead = (("cpu", draw(st.integers(0, 100))),)
    requests, ranked = total_requests(running, before, overhead=overhead)
    return msgspec.structs.replace(
        a_pod(),
        containers=running,
        init_containers=before,
        requests=requests,
        scoring_requests=ranked,
        limits=total_limits(running, before, overhead=overhead),
    )


loads = st.builds(
    ResourceUsage,
    st.floats(0, 5000).map(round).map(float),
    st.floats(0, 2000).map(round).map(float),
    st.none() | st.floats(0, 5000).map(float),
)


@st.composite
def reports(draw: st.DrawFn, names: list[str]) -> tuple[NodeUsage, ...]:
    chosen = draw(st.lists(st.sampled_from(names), unique=True))
    return tuple(
        NodeUsage(
            name, draw(st.none() | loads), draw(st.none() | loads), renews_within=draw(st.sampled_from([0.0, 60.0]))
        )
        for name in chosen
    )


@st.composite
def benches(draw: st.DrawFn) -> Bench:
    bench = Bench(*draw(nodes()))
    names = list(bench.columns.rows)
    for number, name in enumerate(draw(st.lists(st.sampled_from(names), max_size=4))):
        bench.place(name, msgspec.structs.replace(draw(pods()), uid=f"on {number}"))
    bench.context.usage.report(draw(reports(names)))
    bench.context.usage.pass_time(draw(st.sampled_from([0.0, 150.0, 200.0, 1000.0])))
    return bench


def codes(plugin: SafeOverload, view: Any, pod: Pod) -> list[int]:
    verdicts = plugin.filter(CycleState(), pod, view)
    return [0] * len(view) if verdicts is None else verdicts.codes.tolist()


# ---------------------------------------------------------------------------------------------- all nodes and each node


@FEWER
@given(benches(), pods(), st.booleans())
def test_all_nodes_at_once_are_refused_as_each_by_itself(bench, pod, compatible):
    plugin = SafeOverload(bench.context, OverloadArgs(compatible=compatible))
    rows = range(len(bench.view))

    assert [codes(plugin, only(bench.columns, [row]), pod)[0] for row in rows] == codes(plugin, bench.view, pod)


@FEWER
@given(benches(), pods(), st.sampled_from(ANY))
def test_where_only_one_node_is_feasible_it_scores_as_it_does_by_itself(bench, pod, kind):
    """Whatever the others are."""
    plugin = kind(bench.context, kind.Args())
    for row in range(len(bench.view)):
        feasible = np.arange(len(bench.view)) == row

        alone = ask(plugin, only(bench.columns, [row]), pod)

        assert alone == [ask(plugin, bench.view, pod, feasible)[row]]


@FEWER
@given(benches(), pods(), st.sampled_from(ANY), st.booleans())
def test_points_are_within_a_hundred(bench, pod, kind, compatible):
    scores = ask(kind(bench.context, kind.Args(compatible=compatible)), bench.view, pod)

    assert all(0 <= score <= 100 for score in scores)


@FEWER
@given(benches(), st.sampled_from([SafeOverload, LowRiskOverCommitment]), st.data())
def test_what_is_kept_from_pod_to_pod_makes_no_difference(bench, kind, data):
    """However use and pods change in between, a plugin that was asked before says what a new one says."""
    old = kind(bench.context, kind.Args())
    kinds = data.draw(st.lists(pods(), min_size=1, max_size=2))
    names = list(bench.columns.rows)
    for until in range(1, 4):
        pod = data.draw(st.sampled_from(kinds))
        new = kind(bench.context, kind.Args())

        assert ask(new, bench.view, pod) == ask(old, bench.view, pod)
        if kind is SafeOverload:
            assert codes(new, bench.view, pod) == codes(old, bench.view, pod)

        news = data.draw(reports(names))
        bench.context.usage.report(tuple(msgspec.structs.replace(one, until=float(until)) for one in news))
        bench.place(data.draw(st.sampled_from(names)), msgspec.structs.replace(pod, uid=f"late {until}"))


# ------------------------------------------------------------------------------------------------------- what is unknown


@FEWER
@given(benches(), pods(), st.sampled_from([SafeOverload, SafeBalance, TargetLoadPacking]), st.data())
def test_a_node_nobody_knows_is_never_refused_and_scores_the_mean(bench, pod, kind, data):
    bench.put(a_node("silent"))
    names = list(bench.columns.rows)
    feasible = {*data.draw(st.sets(st.sampled_from(names))), "silent"}
    known = {name for name in feasible if trusted(bench, name, kind)}
    plugin = kind(bench.context, kind.Args())

    scores = points(plugin, bench, pod, feasible)

    if kind is SafeOverload:
        assert 0 == codes(plugin, bench.view, pod)[bench.columns.rows["silent"]]
    if known and known == feasible - {"silent"}:
        # Each of them is rounded, so the mean may be off by a half, and is rounded itself.
        assert abs(scores["silent"] - sum(scores[name] for name in known) / len(known)) <= 1.0
    if not known:
        assert {50} == set(scores.values())


def trusted(bench: Bench, name: str, kind: Any) -> bool:
    """Whether a node is believed in full, in whatever is known of it; half-trusted ones are left out of the law."""
    resources = ("cpu",) if kind is TargetLoadPacking else ("cpu", "memory")
    view = only(bench.columns, [bench.columns.rows[name]])
    trust = [bench.context.usage.of(view, resource).trust.item(0) for resource in resources]
    annotated = [not math.isnan(view.floats(f"mean-free-{resource}").item(0)) for resource in resources]
    assume(all(one in (0.0, 1.0) for one in trust))
    return any(trust) or any(annotated)


@FEWER
@given(benches(), pods())
def test_nobody_is_refused_who_is_not_believed_in_full(bench, pod):
    plugin = SafeOverload(bench.context, OverloadArgs(source="measured", tolerance=0, threshold=0))
    refused = codes(plugin, bench.view, pod)
    trust = [bench.context.usage.of(bench.view, resource).trust for resource in ("cpu", "memory")]

    for row, code in enumerate(refused):
        assert not code or max(one.item(row) for one in trust) == 1.0


# ------------------------------------------------------------------------------------------------------------ compatible


def levels(node: Node, pod: Pod, args: OverloadArgs) -> tuple[float | None, float | None, bool]:
    """What the oracle says of a node: its scores before they are cut (None: nothing is known), and whether it passes."""
    overload, balance, passes = [], [], True
    for (resource, capacity), asked in zip(sorted(node.allocatable)[:2], oracle.demand(pod), strict=True):
        use = oracle.use(node.annotations, resource, capacity, asked, args.forecast_weight / 100)
        if use is None:
            continue
        risk = oracle.risk(*use, args.threshold / 100)
        # Too near to say on which side of a step floats see it.
        assume(abs(risk - args.tolerance / 100) > 1e-9 or risk in (0.0, 1.0))
        passes = passes and risk <= args.tolerance / 100
        overload.append(oracle.overload_score(risk, args.tolerance / 100) if args.tolerance else 10.0 * (risk == 0))
        balance.append(oracle.balance_score(*use))
    return (min(overload), min(balance), passes) if overload else (None, None, passes)


@FEWER
@given(nodes(), pods(), st.sampled_from([0.0, 50.0, 90.0, 100.0]), percents, percents)
@example([a_node(cpu=1, annotations={"mean-free-cpu": "100"})], a_pod(), 90.0, 30.0, 20.0)
@example([a_node(cpu=1, annotations={"mean-free-cpu": "500", "std-free-cpu": "500"})], a_pod(), 90.0, 30.0, 20.0)
def test_compatible_is_what_the_original_does(cluster, pod, threshold, tolerance, weight):
    bench = Bench(*cluster)
    args = OverloadArgs(compatible=True, threshold=threshold, tolerance=tolerance, forecast_weight=weight)
    overload = SafeOverload(bench.context, args)
    balance = SafeBalance(bench.context, BalanceArgs(compatible=True, forecast_weight=weight))
    refused = codes(overload, bench.view, pod)
    scores = list(zip(ask(overload, bench.view, pod), ask(balance, bench.view, pod), strict=True))
    for row, node in enumerate(cluster):
        *wanted, passes = levels(node, pod, args)

        assert passes == (refused[row] == 0)
        for exact, given_points in zip(wanted, scores[row], strict=True):
            steps = 0.0 if exact is None else exact
            near = abs(steps - round(steps)) < 1e-9 and steps != round(steps)
            assert near or 10 * math.trunc(steps) == given_points
