"""A plugin that needs something done before a pod is bound gets it done, and sees it fail."""

from typing import ClassVar

import pytest

from lamina.model import events
from lamina.model.pod import Pod
from lamina.scheduling.contract.commands import Bind, Command, DoWork, ReportUnschedulable
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.points import Work
from lamina.scheduling.contract.status import Status, failed, unschedulable
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.testing import a_loop, a_node, a_pod

CORE = ("PrioritySort", "NodeResourcesFit", "DefaultBinder")
log: list[str] = []


class Disks:
    """Reserves a disk, has it attached before binding, and gives it back when that fails."""

    name: ClassVar = "Disks"

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def reserve(self, state: CycleState, pod: Pod, node: str) -> None:
        log.append(f"reserve {pod.name} on {node}")

    def unreserve(self, state: CycleState, pod: Pod, node: str) -> None:
        log.append(f"unreserve {pod.name} on {node}")

    def pre_bind(self, state: CycleState, pod: Pod, node: str) -> Work:
        return Work(("attach", pod.name))

    def post_bind(self, state: CycleState, pod: Pod, node: str) -> None:
        log.append(f"bound {pod.name} to {node}")


class Addresses:
    """A second plugin with work to do: they take turns."""

    name: ClassVar = "Addresses"

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def pre_bind(self, state: CycleState, pod: Pod, node: str) -> Work | Status | None:
        if pod.labels.get("address") == "none":
            return None
        return failed("pool is empty") if pod.labels.get("address") == "exhausted" else Work("lease")


class Second:
    """A second set of books, to see in which order they are closed."""

    name: ClassVar = "Second"

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def reserve(self, state: CycleState, pod: Pod, node: str) -> Status | None:
        log.append(f"second reserve {pod.name}")
        return unschedulable("second says no") if "refuse" in pod.labels else None

    def unreserve(self, state: CycleState, pod: Pod, node: str) -> None:
        log.append(f"second unreserve {pod.name}")


@pytest.fixture
def loop() -> Loop:
    log.clear()
    loop = a_loop([*CORE, Disks, Addresses])
    loop.feed(events.NodeSeen(a_node("n1", cpu=4)))
    return loop


def brief(commands: list[Command]) -> list[str]:
    lines = []
    for command in commands:
        match command:
            case DoWork(pod, node, plugin, _, task):
                lines.append(f"{plugin}: {task} for {pod.name} on {node}")
            case Bind(pod, node, _):
                lines.append(f"bind {pod.name} to {node}")
            case ReportUnschedulable(pod, decision):
                lines.append(f"{pod.name} pending: {decision.message}")
    return lines


def test_work_is_asked_for_one_plugin_after_the_other_and_then_the_pod_is_bound(loop: Loop) -> None:
    """
    The story of a pod with two things to prepare.
    """
    assert ["Disks: ('attach', 'a') for a on n1"] == brief(loop.feed(events.PodSeen(a_pod("a", cpu=1))))
    assert ["Addresses: lease for a on n1"] == brief(loop.feed(events.WorkDone("a", "Disks", 1)))
    assert ["bind a to n1"] == brief(loop.feed(events.WorkDone("a", "Addresses", 1)))
    assert [] == brief(loop.feed(events.BindDone("a")))
    assert ["reserve a on n1", "bound a to n1"] == log


def test_failed_work_gives_everything_back_and_the_pod_is_tried_again_after_a_rest(loop: Loop) -> None:
    """
    A failure is not a refusal: the pod waits its back-off out even if nothing else is to be done.
    """
    loop.feed(events.PodSeen(a_pod("a", cpu=4)))
    failure = loop.feed(events.WorkFailed("a", "Disks", 1, "disk is on fire"))
    soon = loop.feed(events.TimePassed(0.5))
    later = loop.feed(events.TimePassed(1.0))

    assert ["a pending: disk is on fire"] == brief(failure)
    assert [] == brief(soon)
    assert ["Disks: ('attach', 'a') for a on n1"] == brief(later)
    assert ["reserve a on n1", "unreserve a on n1", "reserve a on n1"] == log


def test_room_given_back_by_a_failure_goes_to_whoever_waits_for_it(loop: Loop) -> None:
    """
    The pod that rests does not block the one that fits meanwhile.
    """
    loop.feed(events.PodSeen(a_pod("a", cpu=4)), events.PodSeen(a_pod("b", cpu=4)))
    loop.feed(events.TimePassed(2.0))

    commands = loop.feed(events.WorkFailed("a", "Disks", 1, "disk is on fire"))

    assert ["a pending: disk is on fire", "Disks: ('attach', 'b') for b on n1"] == brief(commands)


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(events.WorkDone("a", "Addresses", 1), id="done by the wrong plugin"),
        pytest.param(events.WorkFailed("a", "Addresses", 1, "?"), id="failed by the wrong plugin"),
        pytest.param(events.WorkDone("z", "Disks", 1), id="of a pod nobody knows"),
        pytest.param(events.BindDone("a"), id="bound before it was asked for"),
        pytest.param(events.BindFailed("a", "?"), id="not bound before it was asked for"),
    ],
)
def test_an_answer_to_a_question_that_was_not_asked_is_ignored(loop: Loop, event: events.Event) -> None:
    """
    Late and stray answers change nothing.
    """
    loop.feed(events.PodSeen(a_pod("a", cpu=1)))

    assert [] == brief(loop.feed(event))
    assert ["Addresses: lease for a on n1"] == brief(loop.feed(events.WorkDone("a", "Disks", 1)))


def test_a_refusal_instead_of_work_gives_everything_back(loop: Loop) -> None:
    """
    A plugin may find out at once that it cannot prepare the pod.
    """
    loop.feed(events.PodSeen(a_pod("a", cpu=1, labels={"address": "exhausted"})))

    assert ["a pending: pool is empty"] == brief(loop.feed(events.WorkDone("a", "Disks", 1)))
    assert ["reserve a on n1", "unreserve a on n1"] == log


def test_reservations_are_undone_in_reverse_order_including_the_one_that_refused() -> None:
    """
    Books are closed last opened first, as upstream does.
    """
    log.clear()
    loop = a_loop([*CORE, Disks, Second])
    loop.feed(events.NodeSeen(a_node("n1")))

    commands = loop.feed(events.PodSeen(a_pod("a", labels={"refuse": ""})))

    assert ["a pending: 0/1 nodes are available: 1 second says no."] == brief(commands)
    assert ["reserve a on n1", "second reserve a", "second unreserve a", "unreserve a on n1"] == log


def test_a_refused_binding_is_tried_again_after_a_rest(loop: Loop) -> None:
    """
    The API server has the last word; the loop takes its belief back and tries again later.
    """
    loop.feed(events.PodSeen(a_pod("a", cpu=1, labels={"address": "none"})))
    loop.feed(events.WorkDone("a", "Disks", 1))
    failure = loop.feed(events.BindFailed("a", "pod is being deleted"))

    assert ["a pending: pod is being deleted"] == brief(failure)
    assert 0 == len(loop.cluster.cache)
    assert ["Disks: ('attach', 'a') for a on n1"] == brief(loop.feed(events.TimePassed(1.0)))


def test_a_pod_seen_on_another_node_while_being_bound_is_believed_there(loop: Loop) -> None:
    """
    Somebody else was faster: our own attempt is dropped, its reservation undone.
    """
    loop.feed(events.NodeSeen(a_node("n2", cpu=4)))
    loop.feed(events.PodSeen(a_pod("a", cpu=1)))

    loop.feed(events.PodSeen(a_pod("a", cpu=1, on="n2")))

    placed = loop.cluster.cache.get(a_pod("a").uid)
    assert placed is not None
    assert ("n2", False) == (placed.node, placed.assumed)
    assert ["reserve a on n1", "unreserve a on n1"] == log
    assert 0 == len(loop.bindings)
