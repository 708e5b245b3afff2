"""Answers: what a plugin said of all nodes is used for every shape that looks the same to it."""

from typing import ClassVar

import numpy as np
import pytest

from lamina.model import events
from lamina.model.decision import Refusal
from lamina.model.taints import NO_SCHEDULE, Taint
from lamina.scheduling.framework.points import Reads, Verdicts
from lamina.scheduling.framework.rowlog import Facet
from lamina.testing import a_loop, a_node, a_pod

asked: list[tuple[str, str]] = []


class Tidy:
    """Looks at taints and at the pod's first image, and counts how often it is asked."""

    name: ClassVar = "Tidy"
    reads: ClassVar = Reads(rows=frozenset({Facet.TAINTS}))

    def __init__(self, context, args): ...

    def sign(self, pod):
        return pod.images[0]

    def filter(self, state, pod, nodes):
        asked.append(("filter", pod.name))
        return Verdicts(nodes.taint_set > 0, lambda code: Refusal(self.name, ("tainted",)))

    def score(self, state, pod, nodes):
        asked.append(("score", pod.name))
        return np.full(len(nodes), 7, dtype=np.int64)


class Greedy(Tidy):
    """The same, but it looks at what every placement changes."""

    name: ClassVar = "Greedy"
    reads: ClassVar = Reads(rows=frozenset({Facet.TAINTS, Facet.RESOURCES}))


def a_small_loop(plugin):
    asked.clear()
    loop = a_loop(["PrioritySort", "NodeResourcesFit", plugin, "DefaultBinder"])
    loop.feed(events.NodeSeen(a_node("n1")), events.NodeSeen(a_node("n2")))
    return loop


def test_a_plugin_is_not_asked_again_for_a_shape_that_is_new_to_others_only():
    """Another request, the same image: for this plugin nothing is new."""
    loop = a_small_loop(Tidy)
    loop.feed(*(events.PodSeen(a_pod(f"p{n}", cpu=f"{n + 1}m")) for n in range(5)))

    assert [("filter", "p0"), ("score", "p0")] == asked


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(events.NodeSeen(a_node("n2", taints=[Taint("a", "", NO_SCHEDULE)])), id="a taint"),
        pytest.param(events.NodeSeen(a_node("n3")), id="a new node"),
        pytest.param(events.NodeGone("n2"), id="a node that left"),
    ],
)
def test_it_is_asked_again_when_something_it_reads_has_changed(change):
    """Its answers hold as long as what they were made from."""
    loop = a_small_loop(Tidy)
    loop.feed(events.PodSeen(a_pod("before", cpu="1m")))
    loop.feed(change)
    loop.feed(events.PodSeen(a_pod("after", cpu="2m")))

    assert [("filter", "after"), ("score", "after")] == asked[2:]


def test_it_is_asked_again_for_another_signature():
    """Another image is news to it."""
    loop = a_small_loop(Tidy)
    loop.feed(events.PodSeen(a_pod("one", image="a")), events.PodSeen(a_pod("other", image="b")))

    assert [("filter", "one"), ("score", "one"), ("filter", "other"), ("score", "other")] == asked


def test_a_plugin_that_reads_what_placements_change_is_asked_for_every_shape():
    """Its answers would be out of date at once."""
    loop = a_small_loop(Greedy)
    loop.feed(events.PodSeen(a_pod("one", cpu="1m")), events.PodSeen(a_pod("two", cpu="2m")))

    assert ["one", "two"] == [name for point, name in asked if point == "filter"]


def test_shapes_that_share_an_answer_do_not_share_its_later_changes():
    """Each keeps its own codes up to date."""
    loop = a_small_loop(Tidy)
    small, large = a_pod("s", cpu="1m"), a_pod("l", cpu="2m")
    loop.feed(events.PodSeen(small), events.PodSeen(large))
    loop.feed(events.NodeSeen(a_node("n1", taints=[Taint("a", "", NO_SCHEDULE)])))
    commands = loop.feed(events.PodSeen(a_pod("s2", cpu="1m")))
    loop.feed(events.NodeSeen(a_node("n1")), events.NodeSeen(a_node("n2", taints=[Taint("a", "", NO_SCHEDULE)])))
    others = loop.feed(events.PodSeen(a_pod("l2", cpu="2m")))

    assert ["n2", "n1"] == [command.node for command in (*commands, *others)]
