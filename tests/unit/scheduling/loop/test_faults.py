"""What goes wrong costs one attempt: plugins that raise, answers that come late, pods that change under way."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pytest

from lamina.model import events
from lamina.model.decision import Refusal
from lamina.model.pod import Pod
from lamina.model.taints import PREFER_NO_SCHEDULE, Taint
from lamina.scheduling.contract.commands import Bind, Command, DoWork, ReportUnschedulable, WakeAt
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.placement import PlaceCandidate, Placement
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.points import Reads, Verdicts, Wait, Work
from lamina.scheduling.contract.status import SKIP, Status, failed
from lamina.scheduling.contract.waiting_pods import WaitingPods
from lamina.scheduling.loop.loop_state import LoopSettings
from lamina.scheduling.state.cluster_changes import ChangeKind, ClusterChange
from lamina.scheduling.state.columns import Ints
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView
from lamina.testing import a_loop, a_node, a_pod

CORE = ("PrioritySort", "NodeResourcesFit", "DefaultBinder")


class Clumsy:
    """Raises at the point the pod's label names."""

    name: ClassVar = "Clumsy"

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def _stumble(self, pod: Pod, point: str) -> None:
        if pod.labels.get("raise") == point:
            raise ZeroDivisionError(point)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> None:
        self._stumble(pod, "pre_filter")

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> None:
        self._stumble(pod, "filter")

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        self._stumble(pod, "score")
        return np.zeros(len(nodes), dtype=np.int64)

    def reserve(self, state: CycleState, pod: Pod, node: str) -> None:
        self._stumble(pod, "reserve")

    def unreserve(self, state: CycleState, pod: Pod, node: str) -> None: ...

    def permit(self, state: CycleState, pod: Pod, node: str, waiting: WaitingPods) -> None:
        self._stumble(pod, "permit")

    def pre_bind(self, state: CycleState, pod: Pod, node: str) -> None:
        self._stumble(pod, "pre_bind")


class Prepared:
    """Needs work done for every pod."""

    name: ClassVar = "Prepared"

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def pre_bind(self, state: CycleState, pod: Pod, node: str) -> Work:
        return Work(node)


class Silent:
    """Skips in pre_filter, and would refuse every node if it were asked all the same."""

    name: ClassVar = "Silent"
    reads: ClassVar = Reads(rows=frozenset({Facet.RESOURCES}))

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def sign(self, pod: Pod) -> bool:
        return True

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status:
        return SKIP

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts:
        raise AssertionError("it said that it has nothing to say")


class Strange:
    """Gives scores that are none."""

    name: ClassVar = "Strange"

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | None:
        return failed("cannot") if pod.name == "unprepared" else None

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        given: dict[str, object] = {
            "short": np.zeros(1, dtype=np.int64),
            "fractions": np.full(len(nodes), 0.5),
            "nothing": np.full(len(nodes), np.nan),
            "too-much": np.full(len(nodes), 101, dtype=np.int64),
        }
        return given[pod.name]  # type: ignore[return-value]


class Impatient:
    """Waits for no time at all."""

    name: ClassVar = "Impatient"

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def permit(self, state: CycleState, pod: Pod, node: str, waiting: WaitingPods) -> Wait:
        return Wait(0.0)


class First:
    """Puts every pod on the first node, or beyond the last."""

    name: ClassVar = "First"
    batch: ClassVar = 5

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def place(self, candidates: Sequence[PlaceCandidate], nodes: NodeView, now: float) -> Placement:
        pods = [one.pod for one in candidates]
        if pods[0].name == "raise":
            raise ZeroDivisionError("place")
        return Placement({pod.uid: 99 if pod.name == "beyond" else 0 for pod in pods})


def told(commands: list[Command]) -> list[str]:
    return [command.decision.message for command in commands if isinstance(command, ReportUnschedulable)]


def bound(commands: list[Command]) -> list[tuple[str, str]]:
    return [(command.pod.name, command.node) for command in commands if isinstance(command, Bind)]


@pytest.mark.parametrize("point", ["pre_filter", "filter", "score", "reserve", "permit", "pre_bind"])
def test_a_plugin_that_raises_costs_the_pod_an_attempt_and_nobody_a_pod(point: str) -> None:
    """
    Its owner is told what happened, the others are placed, and the pod is tried again after a rest.
    """
    loop = a_loop([*CORE, Clumsy])
    loop.feed(events.NodeSeen(a_node("n1", cpu=4)))

    commands = loop.feed(
        events.PodSeen(a_pod("bad", cpu=4, labels={"raise": point}, priority=1)), events.PodSeen(a_pod("good", cpu=4))
    )

    assert [f"a plugin raised ZeroDivisionError: {point}"] == told(commands)
    assert [("good", "n1")] == bound(commands)
    assert ["bad"] == [queued.pod.name for queued in loop.queue]
    assert ["good"] == [placed.pod.name for placed in loop.cluster.cache]
    loop.feed(events.PodGone("good"))
    assert [("bad", "n1")] == bound(loop.feed(events.PodSeen(a_pod("bad", cpu=4)), events.TimePassed(2.0)))


class Twitchy:
    """Raises while an evaluation is brought up to date, once."""

    name: ClassVar = "Twitchy"
    reads: ClassVar = Reads(rows=frozenset({Facet.TAINTS}))
    calls: ClassVar[list[int]] = []

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def sign(self, pod: Pod) -> bool:
        return True

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        self.calls.append(len(nodes))
        if self.calls == [2, 1]:
            raise ZeroDivisionError("twitch")
        return nodes.taint_set * 10


def test_an_evaluation_left_half_done_is_not_used_again() -> None:
    """
    What was brought up to date before a plugin raised and what was not would not fit together.
    """
    Twitchy.calls.clear()
    loop = a_loop([*CORE, Twitchy])
    loop.feed(events.NodeSeen(a_node("n1")), events.NodeSeen(a_node("n2")))
    loop.feed(events.PodSeen(a_pod("first", cpu=1)))
    loop.feed(events.NodeSeen(a_node("n2", taints=[Taint("a", "", PREFER_NO_SCHEDULE)])))
    failure = loop.feed(events.PodSeen(a_pod("second", cpu=1)))

    assert ["a plugin raised ZeroDivisionError: twitch"] == told(failure)
    assert [("second", "n2")] == bound(loop.feed(events.TimePassed(1.0)))
    # What it said about both nodes before still holds for one of them.
    assert [2, 1, 1] == Twitchy.calls


class Jammed:
    """A gate that breaks, and a filter whose hint does."""

    name: ClassVar = "Jammed"
    retry_on: ClassVar = frozenset({ChangeKind.NODE_ADDED})

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def pre_enqueue(self, pod: Pod) -> None:
        if pod.labels.get("raise") == "pre_enqueue":
            raise ZeroDivisionError("gate")

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
        if len(nodes) > 1:
            return None
        return Verdicts(np.ones(len(nodes), dtype=np.bool_), lambda code: Refusal("Jammed", ("alone",)))

    def worth_retrying(self, pod: Pod, change: ClusterChange) -> bool:
        raise ZeroDivisionError("hint")


def test_a_gate_that_raises_stays_shut_until_the_pod_changes() -> None:
    """
    The pod is kept, and looked at when somebody does something about it.
    """
    loop = a_loop([*CORE, Jammed])
    loop.feed(events.NodeSeen(a_node("n1")), events.NodeSeen(a_node("n2")))

    assert [] == loop.feed(events.PodSeen(a_pod("a", labels={"raise": "pre_enqueue"})))
    assert 1 == loop.queue.counts()["gated"]
    assert [("a", "n1")] == bound(loop.feed(events.PodSeen(a_pod("a"))))


def test_a_hint_that_raises_counts_as_yes() -> None:
    """
    When in doubt, the pod is tried again.
    """
    loop = a_loop([*CORE, Jammed])
    loop.feed(events.NodeSeen(a_node("n1")), events.PodSeen(a_pod("a")))

    assert [("a", "n1")] == bound(loop.feed(events.TimePassed(20.0), events.NodeSeen(a_node("n2"))))


def test_a_policy_that_raises_leaves_its_pods_waiting() -> None:
    """
    All of the batch, each told.
    """
    loop = a_loop([*CORE, First])
    loop.feed(events.NodeSeen(a_node("n1")))

    commands = loop.feed(events.PodSeen(a_pod("raise", priority=1)), events.PodSeen(a_pod("other")))

    assert ["a plugin raised ZeroDivisionError: place"] * 2 == told(commands)
    assert 2 == len(loop.queue)


def test_a_policys_choice_that_is_no_longer_possible_falls_back_to_the_ordinary_cycle() -> None:
    """
    The node filled up meanwhile, or never was.
    """
    loop = a_loop([*CORE, First])
    loop.feed(events.NodeSeen(a_node("n1", cpu=1)), events.NodeSeen(a_node("n2", cpu=8)))

    commands = loop.feed(*(events.PodSeen(a_pod(name, cpu=1)) for name in ("a", "b", "beyond")))

    assert [("a", "n1"), ("b", "n2"), ("beyond", "n2")] == bound(commands)


def test_an_answer_about_work_for_an_earlier_attempt_counts_for_nothing() -> None:
    """
    The node left, another was chosen, and only then came the word that the first one is prepared.
    """
    loop = a_loop([*CORE, Prepared])
    loop.feed(events.NodeSeen(a_node("n1")), events.PodSeen(a_pod("a")))
    loop.feed(events.NodeGone("n1"), events.NodeSeen(a_node("n2")))
    (again,) = [command for command in loop.feed(events.TimePassed(2.0)) if isinstance(command, DoWork)]

    assert ("n2", 2) == (again.node, again.attempt)
    assert [] == bound(loop.feed(events.WorkDone("a", "Prepared", 1)))
    assert [] == told(loop.feed(events.WorkFailed("a", "Prepared", 1, "too late")))
    assert [("a", "n2")] == bound(loop.feed(events.WorkDone("a", "Prepared", 2)))


def test_a_pod_changed_while_it_is_bound_is_retried_as_it_is_now() -> None:
    """
    The old binding failed; the new pod is larger and does not fit where the old one would.
    """
    loop = a_loop(CORE)
    loop.feed(events.NodeSeen(a_node("n1", cpu=4)), events.PodSeen(a_pod("a", cpu=1)))
    loop.feed(events.PodSeen(a_pod("a", cpu=3)), events.PodSeen(a_pod("b", cpu=2, on="n1")))

    commands = loop.feed(events.BindFailed("a", "changed"), events.TimePassed(1.0))

    assert [] == bound(commands)
    assert ["changed", "0/1 nodes are available: 1 Insufficient cpu."] == told(commands)


def test_a_woken_pod_that_is_changed_before_it_is_tried_does_not_keep_its_group_asleep() -> None:
    """
    It no longer speaks for the others.
    """
    loop = a_loop(CORE)
    loop.feed(events.NodeSeen(a_node("n1", cpu=4)), events.PodSeen(a_pod("filler", cpu=4, on="n1")))
    loop.feed(events.PodSeen(a_pod("a", cpu=4)), events.PodSeen(a_pod("b", cpu=4)))
    loop.feed(events.TimePassed(50.0))

    assert [("b", "n1")] == bound(loop.feed(events.PodGone("filler"), events.PodSeen(a_pod("a", cpu=100))))


def test_a_filter_that_has_nothing_to_say_is_not_asked_again_either() -> None:
    """
    Not when the evaluation is made, and not when it is brought up to date.
    """
    loop = a_loop([*CORE, Silent])
    loop.feed(events.NodeSeen(a_node("n1")), events.NodeSeen(a_node("n2")))

    commands = loop.feed(*(events.PodSeen(a_pod(f"p{n}", cpu="100m")) for n in range(5)))

    assert 5 == len(bound(commands))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("short", "plugin 'Strange' returned int64 of shape (1,), not one integer for each node"),
        ("fractions", "plugin 'Strange' returned float64 of shape (2,), not one integer for each node"),
        ("nothing", "plugin 'Strange' returned float64 of shape (2,), not one integer for each node"),
        ("too-much", "plugin 'Strange' returned a score outside 0..100"),
        ("unprepared", "cannot"),
    ],
)
def test_scores_that_are_none_are_held_against_the_plugin(name: str, message: str) -> None:
    """
    By name, and before anything is chosen by them.
    """
    loop = a_loop([*CORE, Strange])
    loop.feed(events.NodeSeen(a_node("n1")), events.NodeSeen(a_node("n2")))

    assert [message] == told(loop.feed(events.PodSeen(a_pod(name))))


def test_a_wait_of_no_time_is_a_refusal() -> None:
    """
    There is no moment at which it could be allowed.
    """
    loop = a_loop([*CORE, Impatient])

    commands = loop.feed(events.NodeSeen(a_node("n1")), events.PodSeen(a_pod("a")))

    assert ["0/1 nodes are available: 1 rejected due to timeout after waiting 0s at plugin Impatient."] == told(
        commands
    )


def test_a_host_that_comes_back_is_asked_to_come_again_as_long_as_pods_are_ready() -> None:
    """
    Also in the same instant.
    """
    loop = a_loop(CORE, settings=LoopSettings(cycles_per_feed=1))
    loop.feed(events.NodeSeen(a_node("n1")))
    commands = loop.feed(*(events.PodSeen(a_pod(f"p{n}")) for n in range(3)))
    again = loop.feed(events.TimePassed(0.0))
    last = loop.feed(events.TimePassed(0.0))

    assert [True, True, False] == [WakeAt(0.0) in one for one in (commands, again, last)]


@pytest.mark.parametrize("count", [58, 59, 60, 70])
def test_a_pod_may_ask_for_any_number_of_resources(count: int) -> None:
    """
    However many there are, the one that is short refuses the node, at first and after a change.
    """
    loop = a_loop(CORE)
    many: dict[str, str | int] = {f"x.example/r{n:02}": 1 for n in range(count)}
    last = f"x.example/r{count - 1:02}"
    loop.feed(events.NodeSeen(a_node("n1", more={**many, last: 1})), events.PodSeen(a_pod("a", more=many)))

    commands = loop.feed(events.PodSeen(a_pod("b", more={last: 1})), events.PodSeen(a_pod("c", more=many)))

    assert f"0/1 nodes are available: 1 Insufficient {last}." == told(commands)[0]
    assert f"1 Insufficient {last}" in told(commands)[1]


def test_absurd_amounts_are_refused_like_any_others() -> None:
    """
    Beyond 64 bits in sum: such a pod fits nowhere, and one that is said to run somewhere does not upset the books.
    """
    loop = a_loop(CORE)
    loop.feed(events.NodeSeen(a_node("n1", memory="16Gi")))
    huge = a_pod("huge", more={"memory": "8Ei"})
    running = [a_pod(f"r{n}", more={"memory": "8Ei"}, on="n1") for n in range(5)]

    assert ["0/1 nodes are available: 1 Insufficient memory."] == told(loop.feed(events.PodSeen(huge)))
    loop.feed(*(events.PodSeen(pod) for pod in running))
    assert ["0/1 nodes are available: 1 Insufficient memory."] == told(
        loop.feed(events.PodSeen(a_pod("small", memory="1Mi")))
    )
    loop.feed(*(events.PodGone(pod.uid) for pod in running), events.TimePassed(20.0))
    assert "small" in [placed.pod.name for placed in loop.cluster.cache]
