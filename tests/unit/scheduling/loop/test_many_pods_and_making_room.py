"""Policies that place many pods at once, and policies that make room."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pytest

from lamina.model import events
from lamina.model.pod import Pod, PodUid
from lamina.model.taints import NO_SCHEDULE, Taint
from lamina.scheduling.contract.commands import Bind, Command, Evict, Nominate, ReportUnschedulable
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.placement import PlaceCandidate, Placement
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.points import PostFilterResult, PreFilterResult
from lamina.scheduling.contract.status import Status, unresolvable, unschedulable
from lamina.scheduling.state.columns import Bools
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView
from lamina.testing import a_loop, a_node, a_pod

CORE = ("PrioritySort", "TaintToleration", "NodeResourcesFit", "DefaultBinder")


class AllOrNone:
    """Places pods of one team together on the nodes with most room, or none of them; others it leaves alone."""

    name: ClassVar = "AllOrNone"
    batch: ClassVar = 10
    asked: ClassVar[list[list[str]]] = []

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def place(self, candidates: Sequence[PlaceCandidate], nodes: NodeView, now: float) -> Placement:
        pods = [one.pod for one in candidates]
        self.asked.append([pod.name for pod in pods])
        team = [pod for pod in pods if "team" in pod.labels]
        free = nodes.free("cpu").copy()
        chosen: dict[PodUid, int] = {}
        for pod in team:
            best = int(np.argmax(free))
            if free[best] < dict(pod.requests)["cpu"]:
                return Placement({}, {one.uid: unschedulable("the team does not fit") for one in team})
            free[best] -= dict(pod.requests)["cpu"]
            chosen[pod.uid] = best
        return Placement(chosen)


class Stubborn:
    """Always chooses the first node, fit or not."""

    name: ClassVar = "Stubborn"
    batch: ClassVar = 5

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def place(self, candidates: Sequence[PlaceCandidate], nodes: NodeView, now: float) -> Placement:
        return Placement({one.pod.uid: 0 for one in candidates})


class Bully:
    """Makes room on the first node where eviction can help by evicting everything."""

    name: ClassVar = "Bully"
    seen: ClassVar[list[list[bool]]] = []

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def post_filter(self, state: CycleState, pod: Pod, nodes: NodeView, resolvable: Bools) -> Status | PostFilterResult:
        self.seen.append(resolvable.tolist())
        if not resolvable.any():
            return unschedulable("preemption: nowhere")
        node = nodes.node(int(np.flatnonzero(resolvable)[0]))
        assert node is not None
        return PostFilterResult(node.name, (a_pod("victim", cpu=4, on=node.name),))


class Chooser:
    """Refuses outright, or narrows the nodes, by label."""

    name: ClassVar = "Chooser"

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | PreFilterResult | None:
        if "only" in pod.labels:
            return PreFilterResult(frozenset({pod.labels["only"]}))
        return unresolvable("no claim by that name") if "claim" in pod.labels else None


def brief(commands: list[Command]) -> list[str]:
    lines = []
    for command in commands:
        match command:
            case Bind(pod, node, _):
                lines.append(f"{pod.name} -> {node}")
            case Evict(pod, preemptor, node):
                lines.append(f"evict {pod.name} from {node} for {preemptor.name}")
            case Nominate(pod, node):
                lines.append(f"nominate {node} for {pod.name}")
            case ReportUnschedulable(pod, decision):
                lines.append(f"{pod.name} pending: {decision.message}")
    return lines


def seen(*pods: Pod) -> list[events.Event]:
    return [events.PodSeen(pod) for pod in pods]


def test_a_team_is_placed_together_and_the_rest_as_usual() -> None:
    """
    The policy sees all pods of the batch in queue order and leaves those it does not care for.
    """
    AllOrNone.asked.clear()
    loop = a_loop([*CORE, AllOrNone])
    loop.feed(events.NodeSeen(a_node("n1", cpu=4)), events.NodeSeen(a_node("n2", cpu=5)))

    commands = loop.feed(
        *seen(
            a_pod("a", cpu=4, labels={"team": ""}),
            a_pod("x", cpu=1, priority=1),
            a_pod("b", cpu=3, labels={"team": ""}),
        )
    )

    assert [["x", "a", "b"]] == AllOrNone.asked
    assert ["x -> n2", "a -> n2", "b -> n1"] == brief(commands)


def test_a_team_that_does_not_fit_stays_whole_and_waits() -> None:
    """
    The policy refuses for all of them, and its reason is told.
    """
    loop = a_loop([*CORE, AllOrNone])
    loop.feed(events.NodeSeen(a_node("n1", cpu=4)))

    commands = loop.feed(*seen(*(a_pod(name, cpu=3, labels={"team": ""}) for name in "ab")))

    assert [
        "a pending: 0/1 nodes are available: the team does not fit.",
        "b pending: 0/1 nodes are available: the team does not fit.",
    ] == brief(commands)


def test_a_placement_still_has_to_pass_the_filters() -> None:
    """
    Whoever places many at once may be wrong; the filters are not.
    """
    loop = a_loop([*CORE, Stubborn])
    loop.feed(events.NodeSeen(a_node("n1", cpu=4)), events.NodeSeen(a_node("n2", cpu=1)))

    commands = loop.feed(*seen(a_pod("a", cpu=3), a_pod("b", cpu=3)))

    assert ["a -> n1", "b pending: 0/2 nodes are available: 2 Insufficient cpu."] == brief(commands)


def test_making_room_is_tried_where_it_can_help_and_the_pod_then_goes_there() -> None:
    """
    A taint cannot be evicted; a full node can be emptied, and the pod for whom that was done prefers it.
    """
    Bully.seen.clear()
    loop = a_loop([*CORE, Bully])
    loop.feed(
        events.NodeSeen(a_node("tainted", taints=[Taint("a", "", NO_SCHEDULE)])),
        events.NodeSeen(a_node("full", cpu=4)),
        events.NodeSeen(a_node("small", cpu=1)),
        events.PodSeen(a_pod("victim", cpu=4, on="full")),
    )

    asked = loop.feed(*seen(a_pod("a", cpu=4)))
    loop.feed(events.NodeSeen(a_node("other", cpu=1)), *seen(a_pod("a", cpu=4, nominated="full")))
    freed = loop.feed(events.TimePassed(2.0), events.PodGone("victim"))

    assert [False, True, False] == Bully.seen[0]
    assert [
        "nominate full for a",
        "evict victim from full for a",
        "a pending: 0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu.",
    ] == brief(asked)
    assert ["a -> full"] == brief(freed)


def test_what_making_room_has_to_say_is_added_to_the_message() -> None:
    """
    As kube-scheduler adds its preemption sentence.
    """
    loop = a_loop([*CORE, Bully])
    loop.feed(events.NodeSeen(a_node("small", cpu=1)))

    assert ["a pending: 0/1 nodes are available: 1 Insufficient cpu. preemption: nowhere"] == brief(
        loop.feed(*seen(a_pod("a", cpu=4)))
    )


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param({"only": "n2"}, "a -> n2", id="narrowed to the second node"),
        pytest.param(
            {"only": "n9"},
            "a pending: 0/2 nodes are available: 2 node(s) didn't satisfy plugin(s) [Chooser].",
            id="narrowed to a node that is not there",
        ),
        pytest.param(
            {"claim": ""}, "a pending: 0/2 nodes are available: no claim by that name.", id="refused outright"
        ),
    ],
)
def test_a_pod_can_be_judged_before_any_node_is(labels: dict[str, str], expected: str) -> None:
    """
    pre_filter may narrow the choice or end it.
    """
    loop = a_loop([*CORE, Chooser])
    loop.feed(events.NodeSeen(a_node("n1")), events.NodeSeen(a_node("n2")))

    assert [expected] == brief(loop.feed(*seen(a_pod("a", labels=labels))))


class Doubtful:
    """Refuses for now."""

    name: ClassVar = "Doubtful"

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status:
        return unschedulable("not now")


def test_a_plugin_that_knows_that_room_would_not_help_is_heard_after_one_that_refuses_for_now() -> None:
    """
    As upstream goes on after a plain refusal and stops at a final one.
    """
    loop = a_loop([*CORE, Doubtful, Chooser])
    loop.feed(events.NodeSeen(a_node("n1")))

    assert ["a pending: 0/1 nodes are available: not now."] == brief(loop.feed(*seen(a_pod("a"))))
    assert ["b pending: 0/1 nodes are available: no claim by that name."] == brief(
        loop.feed(*seen(a_pod("b", labels={"claim": ""})))
    )
