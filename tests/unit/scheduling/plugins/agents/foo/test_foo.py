"""Foo, the template: it lets every node pass and prefers none."""

from lamina.model import events
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.scheduling_agent import agent_faults
from lamina.scheduling.plugins.agents.foo import AGENT, Foo
from lamina.testing import LoopHarness, a_loop, a_node, a_pod
from tests.unit.scheduling.bench import Bench, refused, scored


def test_every_node_passes():
    bench = Bench(a_node("n1"), a_node("n2"))

    assert {} == refused(bench, Foo(bench.context, NoArgs()), a_pod())


def test_every_node_gets_level_one():
    bench = Bench(a_node("n1"), a_node("n2"))
    points = scored(bench, Foo(bench.context, NoArgs()), a_pod())

    assert {"n1": 10, "n2": 10} == points
    assert {1} == {AGENT.levels[given] for given in points.values()}


def test_a_cluster_without_nodes_is_no_problem():
    bench = Bench()

    assert {} == scored(bench, Foo(bench.context, NoArgs()), a_pod())


def test_it_takes_part_in_a_profile():
    desk = LoopHarness(a_loop(["PrioritySort", "Foo", "DefaultBinder"]))
    desk.tell(events.NodeSeen(a_node("n1")))
    desk.see(a_pod("p1"))

    assert {"p1": "n1"} == desk.bound


def test_the_agent_can_be_served():
    assert [] == agent_faults(AGENT)
    assert ({"foo": "Foo"}, {"foo": "Foo"}) == (AGENT.predicates, AGENT.priorities)
