"""When a pod is tried again: back-off windows, changes that came too late, and times that plugins name."""

from collections.abc import Callable, Hashable
from typing import ClassVar

import numpy as np
import pytest

from lamina.model import events
from lamina.model.decision import Refusal
from lamina.model.pod import Pod, PodUid
from lamina.scheduling.contract.commands import Bind, Command, WakeAt
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.points import Verdicts, Wait
from lamina.scheduling.contract.status import Status, unschedulable
from lamina.scheduling.contract.waiting_pods import WaitingPods
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.loop.loop_state import LoopSettings
from lamina.scheduling.loop.scheduling_queue import PodBackoff
from lamina.scheduling.state.cluster_changes import ChangeKind
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView
from lamina.testing import a_loop, a_node, a_pod

CORE = ("PrioritySort", "NodeUnschedulable", "NodeResourcesFit", "DefaultBinder")


class Doorman:
    """Holds every pod until it is allowed or refused."""

    name: ClassVar = "Doorman"
    retry_on: ClassVar = frozenset({ChangeKind.NODE_TAINTS})

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def permit(self, state: CycleState, pod: Pod, node: str, waiting: WaitingPods) -> Wait:
        return Wait(600.0)


class Opening:
    """Refuses pods until it is opened, and says when that will be; at a gate those with the label gate."""

    name: ClassVar = "Opening"
    retry_on: ClassVar = frozenset({ChangeKind.LAYERS})
    opens: ClassVar[Callable[[float], object]]
    open: ClassVar = False
    tried: ClassVar[list[str]] = []

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def pre_enqueue(self, pod: Pod) -> Status | None:
        return unschedulable("closed") if "gate" in pod.labels and not Opening.open else None

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
        Opening.tried.append(pod.name)
        if Opening.open:
            return None
        return Verdicts(np.ones(len(nodes), dtype=np.bool_), lambda code: Refusal("Opening", ("closed",)))

    def retry_at(self, pod: Pod, now: float) -> float | None:
        return Opening.opens(now)  # type: ignore[return-value]


class SignedOpening(Opening):
    """Cannot tell pods apart: they wait as a group."""

    def sign(self, pod: Pod) -> Hashable:
        return ()


def opening(
    opens: Callable[[float], object], backoff: PodBackoff | None = None, plugin: type[Opening] = Opening
) -> Loop:
    Opening.opens, Opening.open = staticmethod(opens), False  # type: ignore[assignment]
    Opening.tried.clear()
    loop = a_loop([*CORE, plugin], settings=LoopSettings(backoff=backoff or PodBackoff()))
    loop.feed(events.TimePassed(100.0), events.NodeSeen(a_node("n", cpu=8)))
    return loop


def bound(commands: list[Command]) -> list[str]:
    return [command.pod.name for command in commands if isinstance(command, Bind)]


def wakes(commands: list[Command]) -> list[float]:
    return [command.at for command in commands if isinstance(command, WakeAt)]


# ---------------------------------------------------------------------------------------------------------------- windows


@pytest.mark.parametrize(
    ("high_at", "room_at", "want"),
    [
        pytest.param(100.2, 100.5, "high", id="both back-offs end in the same second"),
        pytest.param(100.2, 101.1, "high", id="one is over, the second in which it ended is not"),
        pytest.param(100.2, 102.0, "high", id="both windows are over"),
        pytest.param(101.2, 101.5, "low", id="the back-off of the other ends a second later"),
    ],
)
def test_back_offs_that_end_in_one_second_are_popped_by_priority(high_at: float, room_at: float, want: str) -> None:
    """kube-scheduler orders its back-off queue by whole seconds, then as the active queue is ordered."""
    loop = a_loop(CORE)
    loop.feed(events.TimePassed(100.0), events.NodeSeen(a_node("n", cpu=4)), events.PodSeen(a_pod("old", 4, on="n")))
    loop.feed(events.PodSeen(a_pod("low", cpu=3)))
    loop.feed(events.TimePassed(high_at), events.PodSeen(a_pod("high", cpu="3100m", priority=1000)))

    assert [want] == bound(loop.feed(events.TimePassed(room_at), events.PodGone(PodUid("old"))))


def test_a_pod_in_back_off_moves_with_its_priority() -> None:
    """An update that raises the priority counts for the pop that follows."""
    loop = a_loop(CORE)
    loop.feed(events.TimePassed(100.0), events.NodeSeen(a_node("n", cpu=4)), events.PodSeen(a_pod("old", 4, on="n")))
    loop.feed(events.PodSeen(a_pod("a", cpu=3)), events.PodSeen(a_pod("b", cpu="3100m")))
    loop.take(events.TimePassed(100.5), events.PodGone(PodUid("old")))
    loop.take(events.PodSeen(a_pod("b", cpu="3100m", priority=5)))

    assert ["b"] == bound(loop.decide())


def test_active_pods_go_before_those_whose_window_is_not_over() -> None:
    """As upstream: until then a pod counts as backing off, and is popped when nothing is active."""
    loop = a_loop(CORE)
    loop.feed(events.TimePassed(100.0), events.NodeSeen(a_node("n", cpu=4)), events.PodSeen(a_pod("old", 4, on="n")))
    loop.feed(events.PodSeen(a_pod("refused", cpu=3, priority=9)))

    late = events.TimePassed(101.5)
    assert ["new"] == bound(loop.feed(late, events.PodGone(PodUid("old")), events.PodSeen(a_pod("new", cpu=3))))


def test_a_pod_whose_attempt_broke_is_not_popped_early() -> None:
    """It rests as long as its back-off, to the moment, whatever its priority."""
    loop = a_loop(CORE)
    loop.feed(events.TimePassed(100.0), events.NodeSeen(a_node("n", cpu=4)))
    loop.feed(events.PodSeen(a_pod("p", cpu=3, priority=1000)))
    loop.feed(events.TimePassed(100.3), events.BindFailed(PodUid("p"), "conflict"))

    assert [] == bound(loop.feed(events.TimePassed(101.2)))
    assert ["p"] == bound(loop.feed(events.TimePassed(101.3)))


# ------------------------------------------------------------------------------------------------------ changes in between


@pytest.mark.parametrize(
    ("meanwhile", "place"),
    [
        pytest.param([], "unschedulable", id="nothing happened"),
        pytest.param([events.NodeSeen(a_node("m", cpu=4))], "backoff", id="a node joined"),
    ],
)
def test_a_pod_refused_after_the_cluster_changed_does_not_wait_for_another_change(
    meanwhile: list[events.Event], place: str
) -> None:
    """The change that could have helped it came while it was on its way to a node."""
    loop = a_loop([*CORE, Doorman])
    loop.feed(events.NodeSeen(a_node("n", cpu=4)), events.PodSeen(a_pod("p", cpu=3)))
    loop.feed(*meanwhile)
    loop.take(events.PermitRefused(PodUid("p"), "Doorman", "not you"))

    queued = loop.queue.get(PodUid("p"))
    assert queued is not None
    assert place == queued.place
    loop.feed(events.TimePassed(2.0))
    assert (place == "backoff") == (loop.bindings.get(PodUid("p")) is not None)


# ----------------------------------------------------------------------------------------------------- times that are named


@pytest.mark.parametrize(
    ("opens", "due"),
    [
        pytest.param(lambda now: 130.0, 130.0, id="a time"),
        pytest.param(lambda now: 100.2, 101.0, id="within the back-off"),
        pytest.param(lambda now: now, 101.0, id="at once"),
        pytest.param(lambda now: 5.0, 101.0, id="in the past"),
        pytest.param(lambda now: -float("inf"), 400.0, id="before all times"),
        pytest.param(lambda now: None, 400.0, id="no time"),
        pytest.param(lambda now: 5000.0, 400.0, id="after the five-minute flush"),
        pytest.param(lambda now: float("inf"), 400.0, id="never"),
        pytest.param(lambda now: float("nan"), 400.0, id="no number"),
        pytest.param(lambda now: "noon", 400.0, id="text"),
        pytest.param(lambda now: 1 / 0, 400.0, id="it raises"),
    ],
)
def test_a_refused_pod_is_tried_at_the_time_its_plugin_names(opens: Callable[[float], object], due: float) -> None:
    """Never within its back-off, and after five minutes anyway."""
    loop = opening(opens)

    assert [due] == wakes(loop.feed(events.PodSeen(a_pod("p", cpu=1))))
    loop.feed(events.TimePassed(due - 0.05))
    assert ["p"] == Opening.tried
    Opening.open = True
    assert ["p"] == bound(loop.feed(events.TimePassed(due)))


def test_a_time_in_the_past_keeps_nobody_busy_also_without_back_off() -> None:
    """Between two attempts a second passes."""
    loop = opening(lambda now: 0.0, PodBackoff(0.0, 0.0))
    loop.feed(events.PodSeen(a_pod("p", cpu=1)))
    for tenths in range(1, 31):
        loop.feed(events.TimePassed(100.0 + tenths / 10))

    assert 4 == len(Opening.tried)
    assert 104.0 == loop.queue.next_time()


def test_a_group_is_woken_once_and_makes_room_one_after_the_other() -> None:
    """The first pod answers for all: if it is refused again, the others are not tried."""
    loop = opening(lambda now: now + 20.0, plugin=SignedOpening)
    loop.feed(*(events.PodSeen(a_pod(f"p{number}", cpu=1)) for number in range(4)))

    assert [] == bound(loop.feed(events.TimePassed(120.0)))
    assert 1 == len(loop.tried)
    Opening.open = True
    # No change the plugin listens to; but what it said about the node no longer holds.
    assert [] == bound(loop.feed(events.PodSeen(a_pod("foreign", on="n"))))
    assert 4 == len(bound(loop.feed(events.TimePassed(140.0))))


def test_a_named_time_ends_with_the_pods_that_waited_for_it() -> None:
    loop = opening(lambda now: now + 20.0)
    loop.feed(events.PodSeen(a_pod("p", cpu=1)), events.PodSeen(a_pod("g", labels={"gate": ""})))
    loop.feed(events.PodGone(PodUid("p")), events.PodGone(PodUid("g")))

    assert loop.queue.next_time() is None


def test_a_gate_opens_at_the_time_it_names() -> None:
    """Also later than five minutes: gated pods are not flushed."""
    loop = opening(lambda now: max(now + 1.0, 1000.0))

    assert [1000.0] == wakes(loop.feed(events.PodSeen(a_pod("p", labels={"gate": ""}))))
    Opening.open = True
    assert [] == bound(loop.feed(events.TimePassed(999.0)))
    assert ["p"] == bound(loop.feed(events.TimePassed(1000.0)))
