"""Commands that wait while another instance leads are withdrawn when what they are about changes."""

from typing import ClassVar

import msgspec
import pytest

from lamina.model import events
from lamina.model.pod import Pod
from lamina.scheduling.contract.commands import Bind, Command, DoWork
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.points import Wait, Work
from lamina.scheduling.contract.waiting_pods import WaitingPods
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.testing import a_loop, a_node, a_pod

POD = a_pod("a", cpu=1)
GONE = events.PodGone("a")
FINISHED = events.PodSeen(msgspec.structs.replace(POD, finished=True))


class Approval:
    """Holds every pod until it is allowed."""

    name: ClassVar = "Approval"

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def permit(self, state: CycleState, pod: Pod, node: str, waiting: WaitingPods) -> Wait | None:
        return Wait(60.0)


class Attach:
    """Asks for work before the binding."""

    name: ClassVar = "Attach"

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def pre_bind(self, state: CycleState, pod: Pod, node: str) -> Work:
        return Work(("attach", pod.name))


def a_standby(*plugins: type) -> Loop:
    """Build a loop that has chosen n1 for pod a, and has then lost the lead with a command pending."""
    loop = a_loop(["PrioritySort", "NodeResourcesFit", "DefaultBinder", Approval, *plugins])
    loop.feed(events.NodeSeen(a_node("n1", cpu=4)))
    loop.feed(events.PodSeen(POD))
    loop.take(events.PermitGiven("a", "Approval"))
    return loop


def asked(commands: list[Command]) -> list[str]:
    """List what is to be done for which pod."""
    return [
        f"{type(command).__name__} {command.pod.name}" for command in commands if isinstance(command, Bind | DoWork)
    ]


@pytest.mark.parametrize(
    ("plugins", "command"),
    [pytest.param([], "Bind a", id="bind"), pytest.param([Attach], "DoWork a", id="work before binding")],
)
def test_a_command_that_waits_is_handed_out_when_the_loop_leads_again(plugins: list[type], command: str) -> None:
    """Nothing changed: the binding cycle continues where it stopped."""
    assert [command] == asked(a_standby(*plugins).decide())


@pytest.mark.parametrize("plugins", [pytest.param([], id="bind"), pytest.param([Attach], id="work before binding")])
@pytest.mark.parametrize(
    "event",
    [
        pytest.param(GONE, id="deleted"),
        pytest.param(FINISHED, id="finished"),
        pytest.param(events.PodSeen(msgspec.structs.replace(POD, deleting=True)), id="being deleted"),
        pytest.param(events.PodSeen(msgspec.structs.replace(POD, node_name="n1")), id="bound to the same node"),
        pytest.param(events.PodSeen(msgspec.structs.replace(POD, node_name="n2")), id="bound to another node"),
    ],
)
def test_a_command_that_waits_is_withdrawn_when_its_pod_needs_it_no_more(
    plugins: list[type], event: events.Event
) -> None:
    """The host is not asked to bind a pod that is gone or that the other instance has bound."""
    loop = a_standby(*plugins)
    loop.take(event)

    assert [] == asked(loop.decide())
    assert 0 == len(loop.bindings)
    assert 0 == len(loop.queue)


@pytest.mark.parametrize("plugins", [pytest.param([], id="bind"), pytest.param([Attach], id="work before binding")])
def test_a_command_that_waits_is_withdrawn_and_the_pod_queued_when_its_node_leaves(plugins: list[type]) -> None:
    """No outcome of the binding will ever be reported, so the pod must not wait for one."""
    loop = a_standby(*plugins)
    loop.take(events.NodeGone("n1"))

    assert [] == asked(loop.decide())
    assert 0 == len(loop.bindings)
    assert 1 == len(loop.queue)


def test_commands_of_other_pods_stay_when_one_is_withdrawn() -> None:
    """Only the commands of the pod in question are taken back."""
    loop = a_loop(["PrioritySort", "NodeResourcesFit", "DefaultBinder", Approval])
    loop.feed(events.NodeSeen(a_node("n1", cpu=4)), events.PodSeen(POD), events.PodSeen(a_pod("b", cpu=1)))
    loop.take(events.PermitGiven("a", "Approval"), events.PermitGiven("b", "Approval"), GONE)

    assert ["Bind b"] == asked(loop.decide())
    assert ["b"] == [one.queued.pod.name for one in loop.bindings]
