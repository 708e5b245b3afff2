"""Congestion: points and levels for factors, and what counts where there is none."""

import msgspec
import numpy as np
import pytest

from lamina.model import events
from lamina.model.node import Node
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.scheduling_agent import LINEAR, agent_faults
from lamina.scheduling.loop.extender_core import ExtenderCore
from lamina.scheduling.plugins.agents.congestion import AGENT, Congestion, CongestionArgs
from lamina.scheduling.plugins.agents.congestion.plugin import STAMP, environment
from lamina.scheduling.state.columns import Bools
from lamina.scheduling.state.view import NodeView, only
from lamina.services.annotator import congestion_values
from lamina.testing import LoopHarness, a_loop, a_node, a_pod
from tests.unit.scheduling.bench import Bench

POD = a_pod()


def nodes(*factors: str | None) -> Bench:
    """Nodes n0, n1, … that say these factors; None says nothing."""
    return Bench(
        *(
            a_node(f"n{number}", annotations={} if factor is None else {"congestion-factor": factor})
            for number, factor in enumerate(factors)
        )
    )


def points(bench: Bench, feasible: Bools | None = None, **args: object) -> list[int]:
    plugin = Congestion(bench.context, msgspec.convert(args, CongestionArgs))
    inside = np.ones(len(bench.view), dtype=np.bool_) if feasible is None else feasible
    return ask(plugin, bench.view, inside)


def ask(plugin: Congestion, nodes: NodeView, feasible: Bools) -> list[int]:
    state = CycleState()
    given: list[int] = plugin.normalize(state, POD, plugin.score(state, POD, nodes), feasible).tolist()
    return given


def levels(bench: Bench, **args: object) -> list[int]:
    return [AGENT.levels[one] for one in points(bench, **args)]


# -------------------------------------------------------------------------------------------------------------- factors


@pytest.mark.parametrize(
    ("factor", "expected"),
    [
        pytest.param("0", 10, id="not congested"),
        pytest.param("4", 10, id="9.6"),
        pytest.param("5", 10, id="9.5: half goes up"),
        pytest.param("6", 9, id="9.4"),
        pytest.param("50", 5, id="half"),
        pytest.param("55", 5, id="4.5: half goes up"),
        pytest.param("95", 1, id="0.5: half goes up"),
        pytest.param("96", 0, id="0.4"),
        pytest.param("100", 0, id="as congested as can be"),
        pytest.param("1000", 0, id="more than that"),
        pytest.param("-3", 10, id="less than not at all"),
    ],
)
def test_a_level_is_ten_less_a_tenth_of_the_factor(factor, expected):
    assert [expected] == levels(nodes(factor))


@pytest.mark.parametrize(("factor", "expected"), [("0", 10), ("3", 7), ("7", 3), ("10", 0), ("11", 0)])
def test_the_largest_factor_is_an_argument(factor, expected):
    assert [expected] == levels(nodes(factor), factorMax=10)


@pytest.mark.parametrize("most", [1, 3, 7, 10, 64, 100, 365, 999])
def test_levels_are_rounded_once_although_points_come_between(most):
    """10 · (most - factor) / most, half away from zero, in whole numbers: (20 · (most - factor) + most) // (2 · most)."""
    factors = range(most + 2)
    expected = [(20 * max(most - factor, 0) + most) // (2 * most) for factor in factors]

    assert expected == levels(nodes(*map(str, factors)), factorMax=most)


def test_a_scheduler_sees_every_point():
    """An extender has eleven levels to tell nodes apart, a scheduler a hundred points."""
    assert [88, 87, 86] == points(nodes("12", "13", "14"))


def test_a_fraction_counts_as_it_is():
    assert [97] == points(nodes("2.5"))


# ------------------------------------------------------------------------------------------------------ nothing is known


@pytest.mark.parametrize("said", [None, "", "high", "nan", "inf", "1_0_x", "9" * 65])
def test_a_node_of_which_nothing_is_known_counts_as_the_mean(said):
    # Half of 90 and 35 together, rounded down.
    assert [90, 62, 35] == points(nodes("10", said, "65"))


def test_the_mean_is_that_of_feasible_nodes():
    feasible = np.array([True, True, False])

    assert [90, 90] == points(nodes("10", None, "65"), feasible)[:2]


@pytest.mark.parametrize("feasible", [None, np.array([True, False])], ids=["all feasible", "the known one is not"])
def test_where_no_feasible_node_says_anything_all_are_alike(feasible):
    bench = nodes(None, None) if feasible is None else nodes(None, "50")

    assert [0] == points(bench, feasible)[:1]


@pytest.mark.parametrize(
    "said",
    [None, "", "high", "2.5", "nan", "50.0", "5e1", " 50 ", "0x32", "5_0", "５０", "٥٠", "+-50", "9" * 19, "9" * 65],
)
def test_as_it_was_at_first_a_node_without_a_whole_factor_is_not_congested(said):
    assert [10, 9, 4] == levels(nodes(said, "10", "65"), compatible=True)


@pytest.mark.parametrize(("said", "level"), [("50", 5), ("+50", 5), ("-50", 10), ("0050", 5), ("9" * 18, 0)])
def test_as_it_was_at_first_whole_factors_count(said, level):
    assert [level] == levels(nodes(said), compatible=True)


# --------------------------------------------------------------------------------------------------------------- old ones


def dated(at: str, factor: str) -> Node:
    """A node that said so at a time of the first day there is a date for."""
    return a_node(at, annotations={"congestion-factor": factor, STAMP: f"1970-01-01T{at}:00Z"})


def test_a_factor_that_says_when_it_was_written_is_believed_less_and_less():
    """At noon: up to twenty minutes in full, half for every ten more, and after an hour not at all."""
    bench = Bench(dated("11:45", "10"), dated("11:30", "10"), dated("10:00", "10"), a_node("silent"))
    bench.put(a_node("undated", annotations={"congestion-factor": "90"}))
    bench.context.usage.pass_time(12 * 3600.0)

    # The mean is (90 + 90/2 + 10)/2.5 = 58; half of it and of 90 are 74.
    assert [90, 74, 58, 58, 10] == points(bench)
    assert [90, 90, 90, 100, 10] == points(bench, compatible=True)


def test_the_stamp_is_the_one_that_is_written():
    assert congestion_values.STAMP == STAMP


def test_answers_follow_factors_that_grow_old():
    """Of equals the first is taken, and the second is not congested while that is believed."""
    desk = LoopHarness(a_loop(["PrioritySort", "NodeName", "Congestion", "DefaultBinder"]))
    desk.at(12 * 3600.0)
    desk.tell(events.NodeSeen(a_node("n0", annotations={"congestion-factor": "50"})))
    desk.tell(events.NodeSeen(dated("11:59", "0")))
    for number in range(3):
        desk.see(a_pod(f"p{number}"))
        desk.at(12 * 3600.0 + 3600.0 * (number + 1))

    assert {"p0": "11:59", "p1": "n0", "p2": "n0"} == desk.bound


# ------------------------------------------------------------------------------------------------------------- in a loop


def test_answers_are_kept_until_an_annotation_changes():
    loop = a_loop(["PrioritySort", "NodeName", "Congestion", "DefaultBinder"])
    desk = LoopHarness(loop)
    desk.tell(*(events.NodeSeen(node) for node in nodes("10", "20").columns.nodes))
    desk.see(a_pod("p1"), a_pod("p2"))
    desk.tell(events.NodeSeen(a_node("n0", annotations={"congestion-factor": "30"})))
    desk.see(a_pod("p3"))
    desk.tell(events.NodeSeen(a_node("n0")))
    desk.tell(events.NodeSeen(a_node("n1", annotations={"congestion-factor": "95"})))
    desk.see(a_pod("p4"))

    # In the end n0 says nothing and counts as n1 does: the first of equals.
    assert {"p1": "n0", "p2": "n0", "p3": "n1", "p4": "n0"} == desk.bound


def test_an_extender_answers_about_the_nodes_it_was_asked_about():
    panel = ExtenderCore([AGENT])
    panel.take(*(events.NodeSeen(node) for node in nodes("10", None, "65", "80").columns.nodes))

    # Of n1 nothing is known: half of 90 and 20 together, that is 55 points.
    assert [9, 6, 2] == panel.prioritize("congestion", POD, ["n0", "n1", "n3"])


def test_some_nodes_get_what_they_get_among_all():
    bench = nodes("10", None, "65", "80")
    plugin = Congestion(bench.context, CongestionArgs())
    feasible = np.array([False, True, False, True])
    whole = ask(plugin, bench.view, feasible)

    assert [whole[3], whole[1]] == ask(plugin, only(bench.columns, [3, 1]), np.ones(2, dtype=np.bool_))


# ------------------------------------------------------------------------------------------------ arguments, environment


@pytest.mark.parametrize("most", [0, -1, 10**10])
def test_a_largest_factor_that_cannot_be_meant_is_refused(most):
    with pytest.raises(msgspec.ValidationError, match=r"Expected `int` [<>]= 1.*factorMax"):
        msgspec.convert({"factorMax": most}, CongestionArgs)


@pytest.mark.parametrize(
    ("said", "expected"), [("10", {"factorMax": 10}), ("007", {"factorMax": 7}), ("", {}), (None, {})]
)
def test_the_environment_says_the_largest_factor(said, expected):
    variables = {} if said is None else {"CONGESTION_FACTOR_MAX": said}

    assert (({"Congestion": expected} if expected else {}), []) == environment(variables)


@pytest.mark.parametrize("said", ["0", "-5", "ten", "1.5", "10000000000", "٣"])
def test_what_the_environment_cannot_mean_is_told_and_the_default_holds(said):
    words = f"CONGESTION_FACTOR_MAX is {said!r}; write an integer from 1 to 1000000000; it was ignored"

    assert ({}, [words]) == environment({"CONGESTION_FACTOR_MAX": said})


def test_the_agent_can_be_served():
    assert [] == agent_faults(AGENT)
    assert ({}, {"congestion": "Congestion"}) == (AGENT.predicates, AGENT.priorities)
    assert LINEAR == AGENT.levels
    assert environment is AGENT.environment


def test_the_largest_amounts_do_not_overflow():
    assert [0, 100] == points(nodes("1e308", "-1e308"), factorMax=10**9)
