"""What plugins learn beside pods and nodes: the time, the lives of pods, and the pods on a node."""

import math
from typing import ClassVar

import pytest

from lamina.model import events
from lamina.model.decision import Refusal
from lamina.model.pod import Pod, PodUid
from lamina.scheduling.contract.commands import Bind, Command, ReportPluginError, WakeAt
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.points import Reads, Verdicts, Wait
from lamina.scheduling.contract.status import Status, unschedulable
from lamina.scheduling.contract.waiting_pods import WaitingPods
from lamina.scheduling.state.cluster_changes import ChangeKind
from lamina.scheduling.state.columns import Bools
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView
from lamina.testing import a_loop, a_node, a_pod

CORE = ("PrioritySort", "NodeResourcesFit", "DefaultBinder")


class Watch:
    """Writes down the time of every call."""

    name: ClassVar = "Watch"

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        self.log: list[tuple[str, float]] = []

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> None:
        self.log.append(("filter", state.now))

    def post_filter(self, state: CycleState, pod: Pod, nodes: NodeView, resolvable: Bools) -> Status:
        self.log.append(("post_filter", state.now))
        return unschedulable("no room")

    def reserve(self, state: CycleState, pod: Pod, node: str) -> None:
        self.log.append(("reserve", state.now))

    def unreserve(self, state: CycleState, pod: Pod, node: str) -> None:
        self.log.append(("unreserve", state.now))

    def pre_bind(self, state: CycleState, pod: Pod, node: str) -> None:
        self.log.append(("pre_bind", state.now))

    def post_bind(self, state: CycleState, pod: Pod, node: str) -> None:
        self.log.append(("post_bind", state.now))


class Curfew:
    """Refuses every pod until its bell rings, and then asks for no other bell."""

    name: ClassVar = "Curfew"
    reads: ClassVar = Reads()
    retry_on: ClassVar[frozenset[ChangeKind]] = frozenset()

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        self.wake_at: float | None = 50.0
        self.over = False
        self.woken: list[float] = []

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | None:
        return None if self.over else unschedulable("curfew")

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
        return None

    def wake(self, now: float) -> bool:
        self.woken.append(now)
        self.over = True
        return True


class Snorer(Curfew):
    """Raises when it is woken."""

    name: ClassVar = "Snorer"

    def wake(self, now: float) -> bool:
        super().wake(now)
        raise RuntimeError("too early")


class Follower:
    """Follows all pods, and refuses nodes that run a pod of its own namespace already."""

    name: ClassVar = "Follower"

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        self._context = context
        self.log: list[tuple[float, str]] = []

    def pod_seen(self, pod: Pod, now: float) -> None:
        where = pod.node_name or "nowhere"
        self.log.append((now, f"{pod.name} on {where}{' ended' if pod.finished else ''}"))

    def pod_gone(self, uid: PodUid, now: float) -> None:
        self.log.append((now, f"{uid} gone"))

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts:
        taken = nodes.free("cpu") < 0
        for place in range(len(nodes)):
            node = nodes.node(place)
            there = () if node is None else self._context.pods_on(node.name)
            taken[place] = any(one.namespace == pod.namespace and dict(one.requests).get("cpu", 0) > 0 for one in there)
        return Verdicts(taken, lambda code: Refusal(self.name, ("taken",)))


def bound(commands: list[Command]) -> list[tuple[str, str]]:
    return [(one.pod.name, one.node) for one in commands if isinstance(one, Bind)]


def test_the_time_reaches_every_point_after_a_node_was_chosen_and_none_before() -> None:
    loop = a_loop((*CORE, Watch))
    loop.feed(events.TimePassed(5.0), events.NodeSeen(a_node("n", cpu=2)), events.PodSeen(a_pod("p", cpu=1)))
    loop.feed(events.TimePassed(7.0), events.BindDone(PodUid("p")))
    loop.feed(events.TimePassed(9.0), events.PodSeen(a_pod("big", cpu=3)))

    watch = loop.profiles["default-scheduler"].plugins["Watch"]
    assert isinstance(watch, Watch)
    assert [("reserve", 5.0), ("pre_bind", 5.0), ("post_bind", 7.0), ("post_filter", 9.0)] == [
        one for one in watch.log if one[0] != "filter"
    ]
    assert all(math.isnan(at) for point, at in watch.log if point == "filter")


def test_a_plugin_is_woken_at_the_time_it_asked_for_and_pods_it_refused_are_tried_again() -> None:
    loop = a_loop((*CORE, Curfew))

    asked = loop.feed(events.NodeSeen(a_node("n")), events.PodSeen(a_pod("p")))
    early = loop.feed(events.TimePassed(49.0))
    late = loop.feed(events.TimePassed(51.0))

    assert [50.0] == [one.at for one in asked if isinstance(one, WakeAt)]
    assert [] == bound(early)
    assert [("p", "n")] == bound(late)
    curfew = loop.profiles["default-scheduler"].plugins["Curfew"]
    assert isinstance(curfew, Curfew)
    assert [51.0] == curfew.woken


def test_a_time_that_has_passed_is_not_asked_for_again() -> None:
    """
    A plugin that leaves its time in the past would keep the host busy.
    """
    loop = a_loop((*CORE, Curfew))
    loop.feed(events.TimePassed(51.0))

    commands = loop.feed(events.TimePassed(52.0))

    assert [] == [one for one in commands if isinstance(one, WakeAt)]


def test_a_plugin_that_raises_when_woken_is_reported_and_its_pods_are_tried() -> None:
    loop = a_loop((*CORE, Snorer))
    loop.feed(events.NodeSeen(a_node("n")), events.PodSeen(a_pod("p")))

    commands = loop.feed(events.TimePassed(51.0))

    assert [("Snorer", "wake")] == [(one.plugin, one.point) for one in commands if isinstance(one, ReportPluginError)]
    assert [("p", "n")] == bound(commands)


def test_a_follower_sees_pods_of_every_scheduler_from_their_creation_to_their_end() -> None:
    loop = a_loop((*CORE, Follower))
    ended = a_pod("foreign", on="n", scheduler="another")
    loop.feed(events.TimePassed(1.0), events.PodSeen(a_pod("foreign", scheduler="another")))
    loop.feed(events.TimePassed(2.0), events.PodSeen(ended))
    loop.feed(events.TimePassed(3.0), events.PodSeen(a_pod("ours")))
    loop.feed(events.TimePassed(4.0), events.PodGone(PodUid("foreign")))

    follower = loop.profiles["default-scheduler"].plugins["Follower"]
    assert isinstance(follower, Follower)
    assert [
        (1.0, "foreign on nowhere"),
        (2.0, "foreign on n"),
        (3.0, "ours on nowhere"),
        (4.0, "foreign gone"),
    ] == follower.log


def test_a_plugin_can_look_at_the_pods_of_a_node_and_at_what_they_take() -> None:
    loop = a_loop((*CORE, Follower))
    loop.feed(
        events.NodeSeen(a_node("n1")),
        events.NodeSeen(a_node("n2")),
        events.PodSeen(a_pod("there", cpu=1, on="n1")),
    )

    assert [("p", "n2")] == bound(loop.feed(events.PodSeen(a_pod("p", cpu=1))))


class Usher:
    """Holds every pod, and lets all of them go when it is woken or when another pod is bound."""

    name: ClassVar = "Usher"

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        self.wake_at: float | None = 50.0
        self._waiting: WaitingPods | None = None

    def permit(self, state: CycleState, pod: Pod, node: str, waiting: WaitingPods) -> Wait | None:
        self._waiting = waiting
        return Wait(600.0) if pod.labels.get("held") else None

    def wake(self, now: float) -> bool:
        self._let_go()
        return False

    def post_bind(self, state: CycleState, pod: Pod, node: str) -> None:
        self._let_go()

    def _let_go(self) -> None:
        for one in self._waiting or ():
            self._waiting.allow(one.pod.uid, self.name)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "happened",
    [
        pytest.param([events.TimePassed(50.0)], id="woken"),
        pytest.param([events.BindDone(PodUid("other"))], id="another pod is bound"),
    ],
)
def test_a_waiting_pod_goes_on_wherever_a_plugin_allows_it(happened: list[events.Event]) -> None:
    loop = a_loop((*CORE, Usher))
    loop.feed(events.NodeSeen(a_node("n")), events.PodSeen(a_pod("held", labels={"held": "yes"})))
    loop.feed(events.PodSeen(a_pod("other")))

    assert [("held", "n")] == bound(loop.feed(*happened))


@pytest.mark.parametrize("odd", [math.inf, math.nan, "soon"], ids=["never", "no number", "a word"])
def test_a_time_that_is_no_finite_number_counts_as_none(odd: object) -> None:
    loop = a_loop((*CORE, Curfew))
    curfew = loop.profiles["default-scheduler"].plugins["Curfew"]
    assert isinstance(curfew, Curfew)
    curfew.wake_at = odd  # type: ignore[assignment]

    commands = loop.feed(events.TimePassed(1.0), events.NodeSeen(a_node("n")))

    assert [] == [one for one in commands if isinstance(one, WakeAt)]
    assert [] == curfew.woken


def test_a_plugin_is_woken_once_for_each_time_it_asks_for() -> None:
    loop = a_loop((*CORE, Curfew))
    curfew = loop.profiles["default-scheduler"].plugins["Curfew"]
    assert isinstance(curfew, Curfew)
    for now in (50.0, 51.0, 52.0):
        loop.feed(events.TimePassed(now))
    curfew.wake_at = 52.5
    for now in (53.0, 54.0):
        loop.feed(events.TimePassed(now))

    assert [50.0, 53.0] == curfew.woken
