"""A pod held by permit goes on when allowed, goes back when refused or when time is over."""

from typing import ClassVar

import pytest

from lamina.model import events
from lamina.model.pod import Pod
from lamina.scheduling.contract.commands import Bind, ReportUnschedulable, WakeAt
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.points import Wait
from lamina.scheduling.contract.waiting_pods import WaitingPods
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.testing import a_loop, a_node, a_pod

CORE = ("PrioritySort", "NodeResourcesFit", "DefaultBinder")


class Quorum:
    """Holds pods until three of them have a node, for at most a minute; then lets all go at once."""

    name: ClassVar = "Quorum"
    size: ClassVar = 3

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def permit(self, state: CycleState, pod: Pod, node: str, waiting: WaitingPods) -> Wait | None:
        if len(waiting) + 1 < self.size:
            return Wait(60.0)
        for one in waiting:
            waiting.allow(one.pod.uid, self.name)
        return None


@pytest.fixture
def loop() -> Loop:
    loop = a_loop([*CORE, Quorum])
    loop.feed(events.NodeSeen(a_node("n1", cpu=8)))
    return loop


def binds(commands: list[object]) -> list[tuple[str, str]]:
    return [(command.pod.name, command.node) for command in commands if isinstance(command, Bind)]


def told(commands: list[object]) -> list[tuple[str, str]]:
    return [
        (command.pod.name, command.decision.message) for command in commands if isinstance(command, ReportUnschedulable)
    ]


def test_pods_wait_for_one_another_and_are_bound_together(loop: Loop) -> None:
    """
    The third pod releases the two before it, and binds first itself.
    """
    first = loop.feed(events.PodSeen(a_pod("a", cpu=1)), events.PodSeen(a_pod("b", cpu=1)))
    third = loop.feed(events.PodSeen(a_pod("c", cpu=1)))

    assert [] == binds(first)
    assert [("c", "n1"), ("a", "n1"), ("b", "n1")] == binds(third)


def test_a_waiting_pod_counts_on_its_node(loop: Loop) -> None:
    """
    What is held back is promised: nobody else gets it meanwhile.
    """
    loop.feed(events.PodSeen(a_pod("a", cpu=6)))
    commands = loop.feed(events.PodSeen(a_pod("b", cpu=6)))

    assert [("b", "0/1 nodes are available: 1 Insufficient cpu.")] == told(commands)


def test_the_host_is_asked_to_come_back_when_patience_ends(loop: Loop) -> None:
    """
    Time-outs come from TimePassed, so the loop says when it needs it.
    """
    assert [WakeAt(60.0)] == loop.feed(events.PodSeen(a_pod("a", cpu=1)))


def test_a_pod_that_waited_too_long_gives_its_node_back(loop: Loop) -> None:
    """
    After the time-out the pod is queued again, its owner is told, and the room is free.
    """
    loop.feed(events.PodSeen(a_pod("a", cpu=6)))
    early = loop.feed(events.TimePassed(59.9))
    late = loop.feed(events.TimePassed(60.0))

    assert [] == told(early)
    assert [("a", "0/1 nodes are available: 1 rejected due to timeout after waiting 1m0s at plugin Quorum.")] == told(
        late
    )
    assert 0 == len(loop.cluster.cache)
    assert 1 == len(loop.queue)


@pytest.mark.parametrize(
    ("event", "bound"),
    [
        pytest.param(events.PermitGiven("a", "Quorum"), [("a", "n1")], id="allowed: it binds"),
        pytest.param(events.PermitRefused("a", "Quorum", "no"), [], id="refused: it does not"),
        pytest.param(events.PermitGiven("a", "Somebody"), [], id="allowed by a plugin that does not hold it"),
        pytest.param(events.PermitGiven("z", "Quorum"), [], id="somebody else is allowed"),
    ],
)
def test_a_word_from_outside_counts_for_the_plugin_and_pod_it_names(
    loop: Loop, event: events.Event, bound: list[tuple[str, str]]
) -> None:
    """
    Permission is per pod and per plugin.
    """
    loop.feed(events.PodSeen(a_pod("a", cpu=1)))

    assert bound == binds(loop.feed(event))


def test_a_pod_deleted_while_it_waits_is_forgotten(loop: Loop) -> None:
    """
    Nobody waits for the dead, and permission given to them is void.
    """
    loop.feed(events.PodSeen(a_pod("a", cpu=1)))
    loop.feed(events.PodGone("a"))

    assert [] == binds(loop.feed(events.PermitGiven("a", "Quorum")))
    assert 0 == len(loop.cluster.cache)
    assert 0 == len(loop.bindings.waiting)


def test_a_pod_whose_node_leaves_while_it_waits_is_placed_anew(loop: Loop) -> None:
    """
    A promise made for a machine that is gone is worth nothing.
    """
    loop.feed(events.PodSeen(a_pod("a", cpu=1)))
    gone = loop.feed(events.NodeGone("n1"))
    loop.feed(events.NodeSeen(a_node("n2")))
    loop.feed(events.TimePassed(1.0))

    assert [("a", "the chosen node has left the cluster")] == told(gone)
    assert ["n2"] == [one.node for one in loop.bindings.waiting]
