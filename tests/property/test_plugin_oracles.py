"""
Every plugin in tree against a plain-Python oracle, on random clusters; and what they make of a pod together.

A plugin answers in three forms, which all have to agree with the oracle: for all rows, for some rows, and (some plugins)
for one node in plain integers. Rows without a node may hold anything.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.model.image import Image
from lamina.model.node import Node
from lamina.model.pod import Pod, SpreadConstraint
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import PluginArgs
from lamina.scheduling.contract.status import Code
from lamina.scheduling.plugins.locality.layer_locality import LayerLocalityArgs
from lamina.scheduling.plugins.upstream.node_resources_balanced_allocation import (
    BalancedAllocationArgs,
    BalancedResource,
)
from lamina.scheduling.plugins.upstream.node_resources_fit import (
    FitArgs,
    RequestedToCapacityRatio,
    ResourceWeight,
    ScoringStrategy,
    ShapePoint,
)
from lamina.scheduling.runtime.explanation import Attempt, explain
from lamina.scheduling.runtime.shape_evaluation import ShapeEvaluation
from lamina.scheduling.state.view import NodeRow, only
from lamina.testing import a_node, a_pod, a_profile, held
from tests.property import oracles, spread_oracle
from tests.property.clusters import GPU, SPELLINGS, Cluster, clusters, pods
from tests.unit.scheduling.bench import Bench, final

pytestmark = pytest.mark.slow


def built(cluster: Cluster) -> tuple[Bench, oracles.ImageStates]:
    """Play a cluster into columns and inventory, and into upstream's cache of images."""
    bench, images = Bench(), oracles.ImageStates()
    bench.learn(*cluster.known)
    for name, node in cluster.nodes.items():
        bench.put(node)
        images.add(node)
        bench.place(name, *cluster.placed[name])
        if name in cluster.reports:
            bench.report(held(name, *cluster.reports[name]))
    for name in cluster.gone:
        bench.remove(name)
        images.remove(cluster.nodes[name])
    return bench, images


def alive(cluster: Cluster) -> dict[str, Node]:
    return {name: node for name, node in cluster.nodes.items() if name not in cluster.gone}


def some_rows(bench: Bench) -> list[list[int]]:
    """Choose views of some rows: each alone, every second one, all backwards."""
    height = bench.columns.size
    return [*([row] for row in range(height)), list(range(0, height, 2)), list(range(height))[::-1]]


def filtered(bench: Bench, plugin: Any, pod: Pod) -> dict[str, oracles.Words]:
    """Ask a filter in all its forms and return its words for every node."""
    state = CycleState()
    if hasattr(plugin, "pre_filter"):
        assert plugin.pre_filter(state, pod, bench.view) is None
    verdicts = plugin.filter(state, pod, bench.view)
    codes = [0] * bench.columns.size if verdicts is None else verdicts.codes.tolist()
    living = set(bench.columns.rows.values())
    for rows in some_rows(bench):
        part = plugin.filter(state, pod, only(bench.columns, rows))
        answer = [0] * len(rows) if part is None else part.codes.tolist()
        assert [codes[row] for row in rows if row in living] == [
            code for row, code in zip(rows, answer, strict=True) if row in living
        ]
    if hasattr(plugin, "filter_node"):
        for row in living:
            assert codes[row] == plugin.filter_node(state, pod, NodeRow(bench.columns, row))
    words = {0: oracles.PASSES}
    for code in set(codes) - {0}:
        refusal = verdicts.tell(code)
        assert refusal.plugin == plugin.name
        words[code] = (refusal.reasons, refusal.final)
    return {name: words[codes[row]] for name, row in bench.columns.rows.items()}


def ranked(bench: Bench, plugin: Any, pod: Pod) -> dict[str, int] | None:
    """Ask a scorer in all its forms and return what it gives every node, not normalised; None when it skips."""
    state = CycleState()
    if hasattr(plugin, "pre_score"):
        answer = plugin.pre_score(state, pod, bench.view)
        if answer is not None:
            assert answer.code is Code.SKIP
            return None
    scores = plugin.score(state, pod, bench.view).tolist()
    living = set(bench.columns.rows.values())
    assert len(scores) == bench.columns.size
    for rows in some_rows(bench):
        part = plugin.score(state, pod, only(bench.columns, rows)).tolist()
        assert [scores[row] for row in rows if row in living] == [
            score for row, score in zip(rows, part, strict=True) if row in living
        ]
    if hasattr(plugin, "score_node"):
        for row in living:
            assert scores[row] == plugin.score_node(state, pod, NodeRow(bench.columns, row))
    return {name: int(scores[row]) for name, row in bench.columns.rows.items()}


def normalized(bench: Bench, plugin: Any, pod: Pod, raw: dict[str, int], feasible: set[str]) -> dict[str, int]:
    """Let a plugin normalise what it gave, and return that for the feasible nodes."""
    scores = np.zeros(bench.columns.size, dtype=np.int64)
    inside = np.zeros(bench.columns.size, dtype=np.bool_)
    for name, row in bench.columns.rows.items():
        scores[row], inside[row] = raw[name], name in feasible
    final = plugin.normalize(CycleState(), pod, scores, inside)
    return {name: int(final[row]) for name, row in bench.columns.rows.items() if name in feasible}


# -------------------------------------------------------------------------------------------------------------- filters

FILTERS: dict[str, Callable[[Node, list[Pod], Pod], oracles.Words]] = {
    "NodeName": lambda node, placed, pod: oracles.named(node, pod),
    "NodeUnschedulable": lambda node, placed, pod: oracles.cordoned(node, pod),
    "TaintToleration": lambda node, placed, pod: oracles.tainted(node, pod),
    "NodeResourcesFit": oracles.fit,
}


@pytest.mark.parametrize("name", FILTERS)
@given(clusters(), pods, st.sampled_from(["", "n0", "n3", "n99"]))
def test_filters_refuse_what_upstream_refuses_in_its_words(name, cluster, pod, on):
    """Every node, with the same reasons in the same order and the same finality."""
    pod = msgspec.structs.replace(pod, node_name=on)
    bench, _ = built(cluster)

    assert {
        node.name: FILTERS[name](node, cluster.placed[node.name], pod) for node in alive(cluster).values()
    } == filtered(bench, bench.make(name), pod)


@given(clusters(most=4), pods, st.sampled_from([(), (GPU,)]), st.sampled_from([(), ("example.com",), ("cpu",)]))
def test_ignored_resources_are_ignored_as_upstream_does(cluster, pod, ignored, groups):
    """Extended ones by name and by group, others never."""
    bench, _ = built(cluster)
    plugin = bench.make("NodeResourcesFit", FitArgs(ignored_resources=ignored, ignored_resource_groups=groups))

    assert {
        node.name: oracles.fit(node, cluster.placed[node.name], pod, ignored, groups)
        for node in alive(cluster).values()
    } == filtered(bench, plugin, pod)


# ------------------------------------------------------------------------------------------------------------- rankings

WEIGHTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "ephemeral-storage", GPU]), st.integers(1, 100), min_size=1, max_size=4
)


def fit_args(weights: dict[str, int], *, most: bool) -> PluginArgs:
    strategy = ScoringStrategy(
        "MostAllocated" if most else "LeastAllocated",
        tuple(ResourceWeight(name, weight) for name, weight in weights.items()),
    )
    return FitArgs(scoring_strategy=strategy)


@pytest.mark.parametrize("most", [pytest.param(False, id="LeastAllocated"), pytest.param(True, id="MostAllocated")])
@given(clusters(), pods, st.one_of(st.just({"cpu": 1, "memory": 1}), WEIGHTS))
def test_nodes_are_ranked_by_room_as_upstream_does(most, cluster, pod, weights):
    """To the point, for any weights and any amounts, also where more is counted than there is."""
    bench, _ = built(cluster)

    assert {
        node.name: oracles.allocation(node, cluster.placed[node.name], pod, weights, most=most)
        for node in alive(cluster).values()
    } == ranked(bench, bench.make("NodeResourcesFit", fit_args(weights, most=most)), pod)


SHAPES = st.dictionaries(st.integers(0, 100), st.integers(0, 10), min_size=1, max_size=4).map(
    lambda points: sorted(points.items())
)


@given(clusters(), pods, st.one_of(st.just({"cpu": 1, "memory": 1}), WEIGHTS), SHAPES)
def test_nodes_are_ranked_by_a_shape_as_upstream_does(cluster, pod, weights, shape):
    """To the point, for any shape, also where it falls."""
    bench, _ = built(cluster)
    strategy = ScoringStrategy(
        "RequestedToCapacityRatio",
        tuple(ResourceWeight(name, weight) for name, weight in weights.items()),
        RequestedToCapacityRatio(tuple(ShapePoint(*point) for point in shape)),
    )

    assert {
        node.name: oracles.ratio(node, cluster.placed[node.name], pod, weights, shape)
        for node in alive(cluster).values()
    } == ranked(bench, bench.make("NodeResourcesFit", FitArgs(scoring_strategy=strategy)), pod)


BALANCED = [
    ["cpu", "memory"],
    ["cpu", "memory", "ephemeral-storage"],
    ["cpu", "memory", "ephemeral-storage", GPU],
    [GPU, "memory"],
    ["memory"],
]


@given(clusters(), pods, st.sampled_from(BALANCED))
def test_nodes_are_ranked_by_balance_as_upstream_does(cluster, pod, resources):
    """To the point, however many resources there are; not at all where the pod asks for none of them."""
    bench, _ = built(cluster)
    args = BalancedAllocationArgs(resources=tuple(BalancedResource(name) for name in resources))
    scores = ranked(bench, bench.make("NodeResourcesBalancedAllocation", args), pod)

    assert {
        node.name: oracles.balanced(node, cluster.placed[node.name], pod, resources) for node in alive(cluster).values()
    } == (dict.fromkeys(alive(cluster)) if scores is None else scores)


@st.composite
def sizes_alike(draw: st.DrawFn) -> list[int]:
    """Draw capacities of nodes that are all below some bound, and near it."""
    bound = draw(st.sampled_from([10**3, 10**6, 2**32, 2**42, 2**42 + 9, 2**45, 2**53]))
    near = st.integers(max(1, bound - 1000), bound)
    return draw(
        st.lists(st.one_of(near, st.integers(bound // 2, bound), st.integers(1, bound)), min_size=1, max_size=8)
    )


def memory_scores(nodes: Sequence[tuple[int, int]], ask: int, *, most: bool) -> tuple[list[int], list[int]]:
    """Return what exact arithmetic and what the plugin gives to nodes of some capacity with something in use."""
    there = [a_node(f"n{number}", memory=str(size)) for number, (size, _) in enumerate(nodes)]
    bench, pod = Bench(*there), a_pod(memory=str(ask))
    for node, (_, used) in zip(there, nodes, strict=True):
        bench.place(node.name, a_pod("other", memory=str(used)))
    plugin = bench.make("NodeResourcesFit", fit_args({"memory": 1}, most=most))
    scores = ranked(bench, plugin, pod)
    assert scores is not None
    taken = [min(used + ask, size) for size, used in nodes]
    exact = [(used if most else size - used) * 100 // size for (size, _), used in zip(nodes, taken, strict=True)]
    return exact, list(scores.values())


@settings(max_examples=max(300, settings().max_examples))
@given(sizes_alike(), st.fractions(0, 1), st.fractions(0, 1), st.booleans())
def test_percentages_are_exact_up_to_2_to_the_53(sizes, asked, in_use, most):
    """Whatever the size, whatever is in use, also where more is counted than there is."""
    ask = int(min(sizes) * asked)
    exact, scores = memory_scores([(size, int(size * in_use)) for size in sizes], ask, most=most)

    assert exact == scores


@pytest.mark.parametrize("most", [pytest.param(False, id="LeastAllocated"), pytest.param(True, id="MostAllocated")])
@pytest.mark.parametrize(
    "bound", [pytest.param(2**power, id=f"up to 2**{power}") for power in (10, 20, 32, 41, 42, 43, 44, 45, 53)]
)
def test_shares_next_to_a_whole_percent_are_cut_right(bound, most):
    """
    Many nodes whose share is whole, or as little below a whole percent as can be: there rounding would show.

    With 100 · left = percent · size - 1 the share that is left is 1/size below, with + 1 the share that is used. That
    takes a size whose product with the percentage ends in 01, or in 99.
    """
    dice = random.Random(bound)
    ask = dice.randrange(1, bound // 8)
    nodes = []
    for _ in range(400):
        size, percent = dice.randrange(bound // 2, bound - 100), dice.choice([1, 3, 7, 33, 49, 50, 51, 67, 77])
        inverse = 1 if percent == 50 else pow(percent, -1, 100)
        size += dice.choice([0, size % 100, inverse, 100 - inverse]) - size % 100
        left = min(size * percent // 100 + dice.choice([-1, 0, 0, 0, 1]), size - ask)
        nodes.append((size, size - ask - max(left, 0)))

    exact, scores = memory_scores(nodes, ask, most=most)

    assert exact == scores


@given(clusters(), pods, st.data())
def test_soft_taints_are_counted_and_normalised_as_upstream_does(cluster, pod, data):
    """Over whichever nodes are feasible."""
    bench, _ = built(cluster)
    plugin = bench.make("TaintToleration")
    raw = {node.name: oracles.soft_taints(node, pod) for node in alive(cluster).values()}
    feasible = data.draw(st.sets(st.sampled_from(sorted(raw))) if raw else st.just(set()))

    assert raw == ranked(bench, plugin, pod)
    if feasible:
        assert oracles.fewest({name: raw[name] for name in feasible}) == normalized(bench, plugin, pod, raw, feasible)


@given(clusters(), pods)
def test_image_locality_scores_as_upstream_does(cluster, pod):
    """By name, size and spread, whatever the nodes disagree about."""
    bench, images = built(cluster)
    nodes = alive(cluster)

    assert {name: images.score(node, pod, len(nodes)) for name, node in nodes.items()} == ranked(
        bench, bench.make("ImageLocality"), pod
    )


def catalog(known: tuple[Image, ...]) -> dict[str, Image]:
    """Return what a pod may call the images that are known."""
    by_name = {name: image for image in known for name in image.names}
    return by_name | {alias: by_name[name] for alias, name in SPELLINGS.items() if name in by_name}


def known_of(cluster: Cluster, name: str) -> list[Image] | None:
    """Return the images a node reported that are known; None when it never reported."""
    return [one for one in cluster.reports[name] if one in cluster.known] if name in cluster.reports else None


@pytest.mark.parametrize("mode", ["bytes", "seconds"])
@given(clusters(), pods, st.data())
def test_layer_locality_scores_what_is_missing_layer_by_layer(mode, cluster, pod, data):
    """Silent nodes count as the mean of those feasible nodes that spoke; within a point, which is what rounding takes."""
    bench, _ = built(cluster)
    plugin = bench.make("LayerLocality", LayerLocalityArgs(mode=mode, barrier=None, replica_share=1.0))
    wanted = oracles.wanted_images(pod, catalog(cluster.known))
    raw = ranked(bench, plugin, pod)
    if wanted is None or not alive(cluster):
        assert raw is None
        return
    worths = {name: oracles.layer_worth(wanted, known_of(cluster, name), mode) for name in alive(cluster)}
    feasible = data.draw(st.sets(st.sampled_from(sorted(worths)), min_size=1))

    scores = final(bench, plugin, pod, feasible)

    assert raw is not None
    assert scores is not None
    # Nothing is scored before it is clear who is feasible.
    assert {-1} == set(raw.values())
    want = oracles.silent_as_mean({name: worths[name] for name in feasible})
    off = 1 if mode == "seconds" else 0.5
    assert [] == [name for name in feasible if abs(want[name] - scores[name]) > off + 1e-6]


# -------------------------------------------------------------------------------------------------------- all together

DEFAULT = (
    "PrioritySort",
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeResourcesFit",
    "PodTopologySpread",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
    "LayerLocality",
    "DefaultBinder",
)
POINTS = {
    "TaintToleration": 3,
    "NodeResourcesFit": 1,
    "PodTopologySpread": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
    "LayerLocality": 5,
}
SPREAD_BY_DEFAULT = (
    SpreadConstraint(3, "kubernetes.io/hostname", "ScheduleAnyway"),
    SpreadConstraint(5, "topology.kubernetes.io/zone", "ScheduleAnyway"),
)


@given(clusters(), pods)
def test_a_pod_is_judged_by_all_plugins_as_by_each(cluster, pod):
    """Totals are weighted sums over the nodes that every filter passes; others are told the first refusal."""
    bench, images = built(cluster)
    nodes = alive(cluster)
    refusals: dict[str, tuple[str, oracles.Words]] = {}
    for name, node in nodes.items():
        for plugin in ("NodeUnschedulable", "NodeName", "TaintToleration", "NodeResourcesFit"):
            words = FILTERS[plugin](node, cluster.placed[name], pod)
            if words != oracles.PASSES:
                refusals.setdefault(name, (plugin, words))
    for name, words in (spread_oracle.refusals(nodes, cluster.placed, pod, SPREAD_BY_DEFAULT) or {}).items():
        if words != oracles.PASSES:
            refusals.setdefault(name, ("PodTopologySpread", words))
    feasible = {name: node for name, node in nodes.items() if name not in refusals}
    taints = oracles.fewest({name: oracles.soft_taints(node, pod) for name, node in feasible.items()})
    layers = final(bench, bench.make("LayerLocality"), pod, feasible)
    spread = spread_oracle.points((nodes, cluster.placed), pod, feasible, SPREAD_BY_DEFAULT, system=True)
    balance = {
        name: score
        for name, node in feasible.items()
        if (score := oracles.balanced(node, cluster.placed[name], pod, ["cpu", "memory"])) is not None
    }
    want = {
        name: {
            "TaintToleration": taints[name],
            "NodeResourcesFit": oracles.allocation(node, cluster.placed[name], pod, {"cpu": 1, "memory": 1}),
            "ImageLocality": images.score(node, pod, len(nodes)),
            **({"LayerLocality": layers[name]} if layers else {}),
            **({"PodTopologySpread": spread[name]} if spread else {}),
            **({"NodeResourcesBalancedAllocation": balance[name]} if name in balance else {}),
        }
        for name, node in feasible.items()
    }

    evaluation = ShapeEvaluation(a_profile(bench.context, DEFAULT, weights=POINTS), bench.columns, pod)
    row, tied = evaluation.choose(lambda count: count - 1)
    decision = explain(evaluation, pod, Attempt(0, 1, row, tied), "full")

    totals = {name: sum(POINTS[one] * score for one, score in scores.items()) for name, scores in want.items()}
    told = {verdict.node: verdict for verdict in decision.verdicts}
    assert set(nodes) == set(told)
    for name, verdict in told.items():
        if name in refusals:
            assert verdict.refusal is not None
            assert refusals[name] == (verdict.refusal.plugin, (verdict.refusal.reasons, verdict.refusal.final))
        else:
            assert want[name] == {one.plugin: one.score for one in verdict.scores}
            assert totals[name] == verdict.total
    best = max(totals.values(), default=None)
    assert best == (None if decision.chosen is None else decision.chosen.total)
    assert [total for total in totals.values() if total == best] == [best] * decision.tied
