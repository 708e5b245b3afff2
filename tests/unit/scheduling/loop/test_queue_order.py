"""Who is looked at first, who rests, and what wakes a pod that was refused."""

from typing import ClassVar

import pytest

from lamina.model import events
from lamina.model.errors import WiringError
from lamina.model.pod import Pod
from lamina.model.taints import NO_SCHEDULE, Taint
from lamina.scheduling.contract.commands import Bind, Command, ReportUnschedulable, WakeAt
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.points import QueuedPod
from lamina.scheduling.contract.status import Status, unschedulable
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.loop.loop_state import LoopSettings
from lamina.scheduling.loop.scheduling_queue import PodBackoff
from lamina.scheduling.runtime.profile import Profile
from lamina.scheduling.state.cluster_changes import ChangeKind
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.testing import a_loop, a_node, a_pod, a_profile
from lamina.testing.loop_harness import first

CORE = ("NodeUnschedulable", "TaintToleration", "NodeResourcesFit", "DefaultBinder")


class Deadlines:
    """Orders by slack: the deadline in the pod's label minus now, scaled by urgency; changes with time alone."""

    name: ClassVar = "Deadlines"
    changes_with_time: ClassVar = True

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def sort_key(self, queued: QueuedPod, now: float) -> tuple[float, ...]:
        waited = now - queued.arrived_at
        return (float(queued.pod.labels["slack"]) - waited * float(queued.pod.labels["urgency"]),)


class Gate:
    """Keeps pods out that have no label "ready"; a node that joins lets it look again."""

    name: ClassVar = "Gate"
    retry_on: ClassVar = frozenset({ChangeKind.NODE_ADDED})
    open: ClassVar[set[str]] = set()

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def pre_enqueue(self, pod: Pod) -> Status | None:
        return None if "ready" in pod.labels or pod.name in self.open else unschedulable("not ready")


def bound(commands: list[Command]) -> list[str]:
    return [command.pod.name for command in commands if isinstance(command, Bind)]


def pending(commands: list[Command]) -> list[str]:
    return [command.pod.name for command in commands if isinstance(command, ReportUnschedulable)]


def a_full_loop(*plugins: object) -> Loop:
    loop = a_loop([*(plugins or ("PrioritySort",)), *CORE])  # type: ignore[list-item]
    loop.feed(events.NodeSeen(a_node("n1", cpu=4)), events.PodSeen(a_pod("filler", cpu=4, on="n1")))
    return loop


def test_higher_priority_goes_first_and_then_whoever_came_first() -> None:
    """
    Pods that arrive together are ordered before any of them is looked at.
    """
    loop = a_loop(["PrioritySort", *CORE])
    loop.feed(events.NodeSeen(a_node("n1", cpu=3)))

    commands = loop.feed(
        *(
            events.PodSeen(a_pod(name, cpu=1, priority=priority))
            for name, priority in [("a", 0), ("b", 5), ("c", 0), ("d", 5)]
        )
    )

    assert ["b", "d", "a"] == bound(commands)
    assert ["c"] == pending(commands)


def test_an_order_that_depends_on_time_changes_while_pods_wait() -> None:
    """
    The patient pod is first by its key at arrival; the urgent one has overtaken it when room appears.
    """
    loop = a_full_loop(Deadlines)
    loop.feed(
        events.PodSeen(a_pod("patient", cpu=4, labels={"slack": "10", "urgency": "0"})),
        events.PodSeen(a_pod("urgent", cpu=4, labels={"slack": "50", "urgency": "1"})),
    )

    early = a_full_loop(Deadlines)
    early.feed(
        events.PodSeen(a_pod("patient", cpu=4, labels={"slack": "10", "urgency": "0"})),
        events.PodSeen(a_pod("urgent", cpu=4, labels={"slack": "50", "urgency": "1"})),
    )

    assert ["patient"] == bound(early.feed(events.TimePassed(20.0), events.PodGone("filler")))
    assert ["urgent"] == bound(loop.feed(events.TimePassed(41.0), events.PodGone("filler")))


def test_a_queue_kept_waiting_is_sorted_anew_when_time_passes() -> None:
    """
    Also pods that sit in the active queue the whole time change places.
    """
    loop = a_loop([Deadlines, *CORE], settings=LoopSettings(cycles_per_feed=1))
    loop.feed(events.NodeSeen(a_node("n1", cpu=4)))
    commands = loop.feed(
        events.PodSeen(a_pod("now", cpu=1, labels={"slack": "0", "urgency": "0"})),
        events.PodSeen(a_pod("patient", cpu=1, labels={"slack": "10", "urgency": "0"})),
        events.PodSeen(a_pod("urgent", cpu=1, labels={"slack": "50", "urgency": "1"})),
    )

    assert ["now"] == bound(commands)
    assert WakeAt(0.0) in commands
    assert ["urgent"] == bound(loop.feed(events.TimePassed(41.0)))
    assert ["patient"] == bound(loop.feed(events.TimePassed(42.0)))


@pytest.mark.parametrize(
    ("attempts", "seconds"),
    [(1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (5, 10.0), (6, 10.0), (2000, 10.0)],
)
def test_the_rest_doubles_from_one_second_to_ten(attempts: int, seconds: float) -> None:
    """
    kube-scheduler's numbers.
    """
    assert seconds == PodBackoff().after(attempts)


@pytest.mark.parametrize(
    ("event", "tried"),
    [
        pytest.param(events.PodGone("filler"), ["a"], id="room appears"),
        pytest.param(events.NodeSeen(a_node("n2", cpu=4)), ["a"], id="a node with room joins"),
        pytest.param(events.NodeSeen(a_node("n1", cpu=8)), ["a"], id="the node grows"),
        pytest.param(events.NodeSeen(a_node("n2", cpu=3)), [], id="a node joins that is too small"),
        pytest.param(events.NodeSeen(a_node("n1", cpu=4, labels={"a": "b"})), [], id="a label changes"),
    ],
)
def test_a_refused_pod_is_tried_again_only_after_a_change_that_may_help(event: events.Event, tried: list[str]) -> None:
    """
    The plugin that refused says what could change its mind, and looks at the node that changed.
    """
    loop = a_full_loop()
    loop.feed(events.PodSeen(a_pod("a", cpu=4)))
    loop.feed(events.TimePassed(20.0))

    attempts = loop.queue.get(a_pod("a").uid)
    assert attempts is not None
    before = attempts.attempts
    commands = loop.feed(event)

    assert tried == bound(commands)
    assert before + len(tried) == attempts.attempts


def test_a_pod_refused_for_a_taint_is_tried_again_when_the_taint_goes() -> None:
    """
    Freed resources are no news for it.
    """
    loop = a_loop(["PrioritySort", *CORE])
    tainted = a_node("n1", taints=[Taint("a", "", NO_SCHEDULE)])
    loop.feed(events.NodeSeen(tainted), events.PodSeen(a_pod("x", cpu=1, on="n1")))
    loop.feed(events.PodSeen(a_pod("a")))
    loop.feed(events.TimePassed(20.0))

    assert [] == bound(loop.feed(events.PodGone("x")))
    assert ["a"] == bound(loop.feed(events.NodeSeen(a_node("n1"))))


def test_a_pod_that_waited_five_minutes_is_tried_again_whatever_happened() -> None:
    """
    In case a change was missed.
    """
    loop = a_full_loop()
    commands = loop.feed(events.PodSeen(a_pod("a", cpu=4)))
    queued = loop.queue.get(a_pod("a").uid)
    assert queued is not None

    assert WakeAt(300.0) in commands
    loop.feed(events.TimePassed(299.0))
    assert 1 == queued.attempts
    loop.feed(events.TimePassed(300.0))
    assert 2 == queued.attempts


def test_the_same_news_is_told_once() -> None:
    """
    An owner is not told again what has not changed.
    """
    loop = a_full_loop()

    assert ["a"] == pending(loop.feed(events.PodSeen(a_pod("a", cpu=4))))
    assert [] == pending(loop.feed(events.TimePassed(400.0)))
    assert ["a"] == pending(loop.feed(events.NodeSeen(a_node("n2", cpu=1)), events.TimePassed(800.0)))


def test_a_pod_without_any_node_waits_for_the_first() -> None:
    """
    Refused by nobody in particular: any change may help.
    """
    loop = a_loop(["PrioritySort", *CORE])
    commands = loop.feed(events.PodSeen(a_pod("a")))

    assert ["no nodes available to schedule pods"] == [
        command.decision.message for command in commands if isinstance(command, ReportUnschedulable)
    ]
    assert ["a"] == bound(loop.feed(events.TimePassed(5.0), events.NodeSeen(a_node("n1"))))


def test_a_gated_pod_is_not_looked_at_until_it_is_let_in() -> None:
    """
    By a change of the pod, or by a change its gate listens to.
    """
    Gate.open.clear()
    loop = a_loop(["PrioritySort", Gate, *CORE])
    loop.feed(events.NodeSeen(a_node("n1")))

    assert [] == loop.feed(events.PodSeen(a_pod("a")), events.PodSeen(a_pod("b")))
    assert {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 2} == loop.queue.counts()
    assert ["a"] == bound(loop.feed(events.PodSeen(a_pod("a", labels={"ready": ""}))))
    Gate.open.add("b")
    assert [] == bound(loop.feed(events.PodGone("a")))
    assert ["b"] == bound(loop.feed(events.NodeSeen(a_node("n2"))))


def test_a_changed_pod_is_tried_again() -> None:
    """
    Whoever edits a pod that does not fit expects it to be looked at.
    """
    loop = a_full_loop()
    loop.feed(events.NodeSeen(a_node("n2", cpu=1)))
    loop.feed(events.PodSeen(a_pod("a", cpu=4)))
    loop.feed(events.TimePassed(20.0))

    assert ["a"] == bound(loop.feed(events.PodSeen(a_pod("a", cpu=1))))


def test_pods_of_other_schedulers_are_left_alone() -> None:
    """
    They count where they run and are never placed.
    """
    loop = a_loop(["PrioritySort", *CORE])
    loop.feed(events.NodeSeen(a_node("n1")))

    assert [] == loop.feed(events.PodSeen(a_pod("a", scheduler="another")))
    assert 0 == len(loop.queue)


def test_profiles_that_order_the_queue_differently_are_refused() -> None:
    """
    There is one queue.
    """

    def make(context: PluginContext) -> dict[str, Profile]:
        return {
            "a": a_profile(context, ["PrioritySort", *CORE], name="a"),
            "b": a_profile(context, [Deadlines, *CORE], name="b"),
        }

    with pytest.raises(WiringError, match="must use the same queueSort plugin"):
        Loop(make, first)


def attempts(loop: Loop) -> dict[str, int]:
    return {queued.pod.name: queued.attempts for queued in loop.queue}


def test_room_for_one_pod_costs_one_attempt_however_many_wait() -> None:
    """
    Pods of one shape wait as a group; if the first that is woken finds no place, neither would the others.
    """
    loop = a_full_loop()
    loop.feed(*(events.PodSeen(a_pod(f"p{n}", cpu=2)) for n in range(20)))
    loop.feed(events.TimePassed(20.0))
    loop.feed(events.NodeSeen(a_node("n2", cpu=2)))

    assert 1 == 20 - len(loop.queue)
    assert [2] + [1] * 18 == sorted(attempts(loop).values(), reverse=True)


def test_room_for_several_is_given_to_several_in_order() -> None:
    """
    Whoever finds a place makes way for the next of its group; priority holds across groups.
    """
    loop = a_full_loop()
    loop.feed(
        *(events.PodSeen(a_pod(f"low{n}", cpu=1)) for n in range(3)),
        *(events.PodSeen(a_pod(f"high{n}", cpu=1, memory="1Gi", priority=5)) for n in range(3)),
    )
    loop.feed(events.TimePassed(20.0))

    assert ["high0", "high1", "high2", "low0"] == bound(loop.feed(events.PodGone("filler")))


@pytest.mark.parametrize("how", ["deleted", "placed elsewhere", "fails"])
def test_whoever_was_woken_and_does_not_take_the_room_leaves_it_to_the_next(how: str) -> None:
    """
    A pod that vanishes between being woken and being tried must not keep its group asleep.
    """
    loop = a_loop(["PrioritySort", *CORE], settings=LoopSettings(cycles_per_feed=1))
    loop.feed(events.NodeSeen(a_node("n1", cpu=4)), events.PodSeen(a_pod("filler", cpu=4, on="n1")))
    for name in ("first", "second"):
        loop.feed(events.PodSeen(a_pod(name, cpu=4)))
    loop.feed(events.NodeSeen(a_node("other", cpu=1)), events.TimePassed(20.0))
    loop.take(events.PodGone("filler"))
    match how:
        case "deleted":
            loop.take(events.PodGone("first"))
        case "placed elsewhere":
            loop.take(events.PodSeen(a_pod("first", cpu=4, on="n9")))
        case "fails":
            assert ["first"] == bound(loop.decide(1))
            loop.take(events.BindFailed("first", "no"))

    assert ["second"] == bound(loop.decide())


def test_a_pod_refused_while_resting_is_tried_as_soon_as_a_change_helps_and_nobody_else_waits() -> None:
    """
    kube-scheduler pops from the back-off queue when the active one is empty; so does the loop.
    """
    loop = a_full_loop()
    loop.feed(events.PodSeen(a_pod("a", cpu=4)))

    assert ["a"] == bound(loop.feed(events.TimePassed(0.1), events.PodGone("filler")))
