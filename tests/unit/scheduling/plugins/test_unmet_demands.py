"""UnmetDemands: nobody is placed as if he had not asked."""

import msgspec
import pytest

from lamina.model import events
from lamina.model.pod import Pod
from lamina.scheduling.config.named_profiles import NAMED, named
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.loop.loop_state import LoopSettings
from lamina.scheduling.plugins.in_tree import registry
from lamina.testing import LoopHarness, a_node, a_pod
from tests.unit.scheduling.bench import Bench

KNOWN = registry(entry_points=False)


def asking(*unmet: str, ignored: tuple[str, ...] = (), name: str = "p1") -> Pod:
    """Build a pod that asks for too much."""
    return msgspec.structs.replace(a_pod(name), unmet=unmet, ignored=ignored)


def desk(profile: str = "kube-default") -> LoopHarness:
    """Make a desk with a named profile and two nodes."""
    made = LoopHarness(Loop(named(profile, KNOWN).profiles, lambda count: 0, LoopSettings()))
    made.tell(events.NodeSeen(a_node("n1")), events.NodeSeen(a_node("n2")))
    return made


@pytest.mark.parametrize(
    ("unmet", "want"),
    [
        pytest.param(["inter-pod affinity"], "inter-pod affinity", id="one thing"),
        pytest.param(
            ["inter-pod affinity", 'persistent volume claim "data"'],
            'inter-pod affinity, persistent volume claim "data"',
            id="two things",
        ),
        pytest.param(list("abcdefgh"), "a, b, c, d, e, f and 2 more", id="more than an event has room for"),
    ],
)
def test_a_pod_that_asks_for_what_cannot_be_done_is_told_what_that_is(unmet, want):
    """In the words that go to its condition and its event."""
    made = desk()
    made.see(asking(*unmet))

    told = f"0/2 nodes are available: pod requires features that this scheduler does not implement yet: {want}."
    told += " preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    assert ({}, {"p1": told}) == (made.bound, made.pending)


@pytest.mark.parametrize("profile", NAMED)
def test_it_is_held_back_by_every_profile(profile):
    made = desk(profile)
    made.see(asking("a miracle"), a_pod("plain"))

    assert ["plain"] == list(made.bound)


def test_it_is_placed_when_it_does_not_ask_any_more():
    made = desk()
    made.see(asking("a miracle"))
    made.see(asking())
    made.at(1.0)

    assert ["p1"] == list(made.bound)


def test_nothing_that_happens_in_the_cluster_makes_it_worth_another_try():
    """Until the pod itself is changed."""
    made = desk()
    made.see(asking("a miracle"))
    for second in range(1, 9):
        made.tell(events.NodeSeen(a_node(f"more-{second}")), events.TimePassed(float(second)))

    (queued,) = made.loop.queue
    assert (1, "unschedulable") == (queued.attempts, queued.place)


def test_what_is_only_preferred_is_noted_and_holds_nobody_back():
    made = desk()
    made.see(asking(ignored=("preferred inter-pod affinity",)))

    assert ["p1"] == list(made.bound)
    assert ("not implemented yet and ignored: preferred inter-pod affinity",) == made.decisions["p1"].notes


def test_pods_are_told_apart_by_what_they_are_refused_for():
    plugin = Bench().make("UnmetDemands")

    assert plugin.sign(asking("a")) != plugin.sign(asking("b"))
    assert plugin.sign(asking()) == plugin.sign(asking(name="p2"))
