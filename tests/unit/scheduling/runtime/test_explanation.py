"""Explain: an evaluation in words and figures."""

from typing import Any

import pytest

from lamina.model.decision import Decision, NodeVerdict, PluginScore, Refusal
from lamina.model.taints import Taint
from lamina.scheduling.contract.status import unschedulable
from lamina.scheduling.runtime.explanation import Attempt, Detail, explain, groups, refusal_of
from lamina.scheduling.runtime.shape_evaluation import ShapeEvaluation
from lamina.testing import a_node, a_pod, a_profile
from tests.unit.scheduling.bench import Bench
from tests.unit.scheduling.zoo import AlsoNarrowing, Doorman, Narrowing, Points, Relative, Zone

ALL = ("PrioritySort", "DefaultBinder", Narrowing, AlsoNarrowing, Doorman, Zone, "NodeResourcesFit", Points, Relative)


def a_bench() -> Bench:
    """Three zones; b is the best, d and e tie behind it, c is full."""
    bench = Bench(
        a_node("a", labels={"zone": "1", "points": "10"}),
        a_node("b", labels={"zone": "2", "points": "80"}),
        a_node("c", labels={"zone": "2", "points": "90"}, cpu=1),
        a_node("d", labels={"zone": "2", "points": "40"}),
        a_node("e", labels={"zone": "3", "points": "40"}),
    )
    bench.place("c", a_pod(cpu=1))
    return bench


def evaluate(bench: Bench, pod, plugins=ALL) -> ShapeEvaluation:
    weights = {"Points": 2, "Relative": 3}
    return ShapeEvaluation(a_profile(bench.context, plugins, name="mine", weights=weights), bench.columns, pod)


def decide(
    bench: Bench, pod, detail: Detail = "brief", plugins=("PrioritySort", "DefaultBinder", Zone, Points), **more: Any
) -> Decision:
    """Choose as the loop does, and explain."""
    evaluation = evaluate(bench, pod, plugins)
    row, tied = (-1, 0) if evaluation.stop is not None else evaluation.choose(lambda count: 0)
    return explain(evaluation, pod, Attempt(7.5, 3, row, tied, **more), detail)


# -------------------------------------------------------------------------------------------------------------- placed


def test_a_brief_decision_tells_the_node_and_the_runner_up():
    """With what each plugin gave them; nobody else is listed."""
    bench = a_bench()
    bench.remove("c")
    decision = decide(bench, a_pod("web", labels={"zone": "2"}))

    assert decision == Decision(
        pod="default/web",
        uid="web",
        at=7.5,
        attempt=3,
        profile="mine",
        outcome="placed",
        nodes=4,
        feasible=2,
        chosen=NodeVerdict("b", 160, (PluginScore("Points", 80, 2),)),
        runner_up=NodeVerdict("d", 80, (PluginScore("Points", 40, 2),)),
        tied=1,
    )
    assert 80 == decision.margin


def test_without_detail_only_the_node_is_told():
    """For loads where every microsecond counts."""
    decision = decide(a_bench(), a_pod(), "none")

    assert (NodeVerdict("c"), None, {}, ()) == (
        decision.chosen,
        decision.runner_up,
        decision.refusals,
        decision.verdicts,
    )
    assert ("placed", 5, 5) == (decision.outcome, decision.nodes, decision.feasible)


def test_a_full_decision_tells_every_node():
    """In row order: refused with the first reason, or scored with what the score was made of."""
    pod = a_pod(cpu=1, labels={"zone": "2", "ambitious": "yes"})
    decision = decide(a_bench(), pod, "full", [*ALL[:2], Zone, "NodeResourcesFit", Points, Relative])
    elsewhere = {zone: Refusal("Zone", (f"in zone {zone}",)) for zone in (1, 3)}

    def scores(points: int, share: int) -> tuple[PluginScore, ...]:
        # NodeResourcesFit: cpu 3000 of 4000 left = 75, memory 200Mi of 16Gi = 98: 173/2 = 86
        return (
            PluginScore("NodeResourcesFit", 86, 1),
            PluginScore("Points", points, 2),
            PluginScore("Relative", share, 3, {"points": points}),
        )

    assert decision.verdicts == (
        NodeVerdict("a", refusal=elsewhere[1]),
        NodeVerdict("b", 86 + 160 + 300, scores(80, 100)),
        NodeVerdict("c", refusal=Refusal("NodeResourcesFit", ("Insufficient cpu",))),
        NodeVerdict("d", 86 + 80 + 150, scores(40, 50)),
        NodeVerdict("e", refusal=elsewhere[3]),
    )
    assert {"in zone 1": 1, "in zone 3": 1, "Insufficient cpu": 1} == decision.refusals
    assert ("b", "d", 2) == (decision.chosen.node, decision.runner_up.node, decision.feasible)


def test_a_plugin_that_skipped_is_not_listed():
    """It gave nothing, which is not the same as giving 0."""
    decision = decide(a_bench(), a_pod(), "full", [*ALL[:2], Points, Relative])

    assert {("Points",)} == {tuple(one.plugin for one in verdict.scores) for verdict in decision.verdicts}


@pytest.mark.parametrize(
    ("zone", "chosen", "second", "margin"),
    [
        pytest.param("2", "c", "b", 20, id="the next best"),
        pytest.param("1", "a", None, None, id="nobody else passed"),
    ],
)
def test_the_runner_up_is_the_best_of_the_others_that_passed(zone, chosen, second, margin):
    """How close it was, in points."""
    decision = decide(a_bench(), a_pod(labels={"zone": zone}))

    assert (chosen, second, margin) == (
        decision.chosen.node,
        decision.runner_up and decision.runner_up.node,
        decision.margin,
    )


def test_a_runner_up_may_have_as_many_points_as_the_node():
    """Then it was a tie, and the margin is nothing."""
    bench = Bench(*(a_node(name, labels={"points": "30"}) for name in "abc"))
    decision = decide(bench, a_pod())

    assert ("a", "b", 3, 0) == (decision.chosen.node, decision.runner_up.node, decision.tied, decision.margin)


def test_a_runner_up_may_have_no_points_at_all():
    """Passing is what counts."""
    decision = decide(Bench(a_node("a"), a_node("b")), a_pod())

    assert "b" == decision.runner_up.node


def test_explaining_changes_nothing():
    """The evaluation is kept for the next pod of this shape."""
    bench, pod = a_bench(), a_pod()
    evaluation = evaluate(bench, pod, [*ALL[:2], Points])
    before = evaluation.totals.copy()
    for _ in range(2):
        explain(evaluation, pod, Attempt(0, 1, 2, 1), "full")

    assert before.tolist() == evaluation.totals.tolist()


def test_rows_without_a_node_are_not_told():
    """They are nobody."""
    bench = a_bench()
    bench.remove("b", "e")
    decision = decide(bench, a_pod(labels={"zone": "2"}), "full")

    assert ["a", "c", "d"] == [verdict.node for verdict in decision.verdicts]
    assert ({"in zone 1": 1}, 3) == (decision.refusals, decision.nodes)


# ---------------------------------------------------------------------------------------------------------- not placed


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        pytest.param(
            a_pod(labels={"zone": "9"}),
            "0/5 nodes are available: 1 in zone 1, 1 in zone 3, 3 in zone 2.",
            id="sorted as text",
        ),
        pytest.param(
            a_pod(cpu=64, memory="1Ti", labels={"zone": "2"}),
            "0/5 nodes are available: 1 in zone 1, 1 in zone 3, 3 Insufficient cpu, 3 Insufficient memory.",
            id="several reasons of one node are counted each",
        ),
        pytest.param(
            a_pod(labels={"door": "shut"}),
            "0/5 nodes are available: the door is shut, and locked.",
            id="refused before any node",
        ),
        pytest.param(
            a_pod(labels={"door": "walled"}),
            "0/5 nodes are available: there is no door.",
            id="refused before any node, for good",
        ),
        pytest.param(
            a_pod(labels={"nodes": "y-z"}),
            "0/5 nodes are available: 5 node(s) didn't satisfy plugin(s) [Narrowing].",
            id="narrowed down to nodes that are not there",
        ),
        pytest.param(
            a_pod(labels={"nodes": "a-z", "zone": "2"}),
            "0/5 nodes are available: 1 in zone 1, 4 node(s) didn't satisfy plugin(s) [Narrowing].",
            id="narrowed down to one that is refused",
        ),
        pytest.param(
            a_pod(labels={"nodes": "a-z", "also": "b-z"}),
            "0/5 nodes are available: 5 node(s) didn't satisfy plugin(s) [AlsoNarrowing Narrowing].",
            id="narrowed down by two, which are sorted",
        ),
        pytest.param(
            a_pod(labels={"nodes": "a", "also": "b"}),
            "0/5 nodes are available: node(s) didn't satisfy plugin(s) [AlsoNarrowing Narrowing] simultaneously.",
            id="narrowed down by two who cannot agree",
        ),
    ],
)
def test_a_pod_that_fits_nowhere_is_told_why_in_kube_words(pod, message):
    """The sentence people search the web for."""
    decision = decide(a_bench(), pod, plugins=ALL)

    assert ("unschedulable", message) == (decision.outcome, decision.message)
    assert (None, None, 0, 0) == (decision.chosen, decision.runner_up, decision.tied, decision.feasible)


def test_what_making_room_had_to_say_follows():
    """Upstream appends it, too."""
    decision = decide(a_bench(), a_pod(labels={"zone": "9"}), after="preemption: nobody is less important.")

    assert decision.message == (
        "0/5 nodes are available: 1 in zone 1, 1 in zone 3, 3 in zone 2. preemption: nobody is less important."
    )


def test_without_nodes_that_is_the_reason():
    """Upstream has a sentence of its own for this."""
    decision = decide(Bench(), a_pod(labels={"door": "shut"}), plugins=ALL)

    assert ("unschedulable", "no nodes available to schedule pods", 0) == (
        decision.outcome,
        decision.message,
        decision.nodes,
    )


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        pytest.param(a_pod(labels={"door": "broken"}), "the door fell on somebody", id="a plugin says so"),
        pytest.param(a_pod(), "plugin 'Points' returned a score outside 0..100", id="a plugin misbehaves"),
    ],
)
def test_a_failure_is_no_refusal(pod, message):
    """Its message is the error, without counting nodes."""
    bench = a_bench()
    bench.put(a_node("f", labels={"points": "1000"}))
    decision = decide(bench, pod, plugins=ALL)

    assert ("failed", message) == (decision.outcome, decision.message)


def test_a_refusal_from_outside_the_evaluation_is_told_like_one_from_inside():
    """A pod may be refused as a whole by whoever places many at once."""
    bench, pod = a_bench(), a_pod()
    evaluation = evaluate(bench, pod)
    stop = unschedulable("no room for the whole gang").of("Gang")
    decision = explain(evaluation, pod, Attempt(0, 1, stop=stop), "brief")

    assert "0/5 nodes are available: no room for the whole gang." == decision.message


@pytest.mark.parametrize("detail", ["none", "brief", "full"])
def test_reasons_are_counted_whenever_nothing_fits(detail):
    """Whatever the detail: this is when people look."""
    decision = decide(a_bench(), a_pod(labels={"zone": "9"}), detail)

    assert {"in zone 1": 1, "in zone 2": 3, "in zone 3": 1} == decision.refusals
    assert (5 if detail == "full" else 0) == len(decision.verdicts)


def test_a_pod_refused_before_any_node_is_refused_by_every_node():
    """In full detail each node tells the same."""
    decision = decide(a_bench(), a_pod(labels={"door": "walled"}), "full", ALL)

    assert {Refusal("Doorman", ("there is no door",), final=True)} == {one.refusal for one in decision.verdicts}
    assert 5 == len(decision.verdicts)


# -------------------------------------------------------------------------------------------------------------- groups


def test_nodes_are_grouped_by_who_refused_them_first_and_why():
    """A node that two filters refuse belongs to the first."""
    bench = a_bench()
    bench.put(a_node("b", labels={"zone": "2"}, taints=[Taint("gpu")]))
    pod = a_pod(cpu=2, labels={"zone": "2", "nodes": "a-b-c-d"})
    evaluation = evaluate(bench, pod, [*ALL[:2], Narrowing, Zone, "TaintToleration", "NodeResourcesFit"])

    assert [
        ([4], "Narrowing", ("node(s) didn't satisfy plugin(s) [Narrowing]",), True),
        ([0], "Zone", ("in zone 1",), False),
        ([1], "TaintToleration", ("node(s) had untolerated taint(s)",), True),
        ([2], "NodeResourcesFit", ("Insufficient cpu",), True),
    ] == [
        (flags.nonzero()[0].tolist(), refusal.plugin, refusal.reasons, refusal.final)
        for flags, refusal in groups(evaluation)
    ]


def test_each_node_is_told_what_its_group_is_told():
    """And a node that passed is told nothing."""
    evaluation = evaluate(a_bench(), a_pod(labels={"zone": "2"}))
    told = {int(row): refusal for flags, refusal in groups(evaluation) for row in flags.nonzero()[0].tolist()}

    assert [told.get(row) for row in range(5)] == [refusal_of(evaluation, row) for row in range(5)]
    assert [True, False, False, False, True] == [row in told for row in range(5)]


def test_groups_are_made_anew_when_something_changed():
    """They are remembered until then."""
    bench, pod = a_bench(), a_pod(labels={"zone": "2"})
    evaluation = evaluate(bench, pod)
    before = groups(evaluation)
    assert before is groups(evaluation)
    bench.put(a_node("a", labels={"zone": "3", "points": "10"}))

    assert evaluation.refresh(pod)
    assert [("in zone 3",)] == [refusal.reasons for _, refusal in groups(evaluation)]
