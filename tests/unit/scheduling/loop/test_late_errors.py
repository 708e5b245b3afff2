"""Plugins that raise when there is no attempt left to fail: the pod keeps its fate and the operator is told."""

from typing import ClassVar

import pytest

from lamina.model import events
from lamina.model.events import Event
from lamina.model.pod import Pod, PodUid
from lamina.scheduling.contract.commands import Bind, ReportPluginError
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.testing import a_loop, a_node, a_pod

CORE = ("PrioritySort", "NodeResourcesFit", "DefaultBinder")
P = PodUid("p")


class Books:
    """Keeps books, and is called whatever the other one does."""

    name: ClassVar = "Books"

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        self.log: list[str] = []

    def reserve(self, state: CycleState, pod: Pod, node: str) -> None:
        self.log.append("reserve")

    def unreserve(self, state: CycleState, pod: Pod, node: str) -> None:
        self.log.append("unreserve")

    def post_bind(self, state: CycleState, pod: Pod, node: str) -> None:
        self.log.append("post_bind")


class Broken:
    """Raises wherever nothing depends on it."""

    name: ClassVar = "Broken"

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def reserve(self, state: CycleState, pod: Pod, node: str) -> None: ...

    def unreserve(self, state: CycleState, pod: Pod, node: str) -> None:
        raise RuntimeError("no unreserve")

    def post_bind(self, state: CycleState, pod: Pod, node: str) -> None:
        raise RuntimeError("no post_bind")

    def pod_seen(self, pod: Pod, now: float) -> None:
        if pod.labels.get("odd"):
            raise RuntimeError("no pod_seen")

    def pod_gone(self, uid: PodUid, now: float) -> None:
        if uid == "odd":
            raise RuntimeError("no pod_gone")


@pytest.mark.parametrize(
    ("event", "point", "placed", "waiting", "log"),
    [
        pytest.param(events.BindDone(P), "post_bind", 1, 0, ["reserve", "post_bind"], id="bound"),
        pytest.param(events.BindFailed(P, "409"), "unreserve", 0, 1, ["reserve", "unreserve"], id="binding refused"),
        pytest.param(events.PodGone(P), "unreserve", 0, 0, ["reserve", "unreserve"], id="deleted while it is bound"),
    ],
)
def test_a_plugin_that_raises_after_the_attempt_changes_nothing_for_the_pod(
    event: Event, point: str, placed: int, waiting: int, log: list[str]
) -> None:
    loop = a_loop((*CORE, Books, Broken))
    loop.feed(events.NodeSeen(a_node("n", cpu=1)), events.PodSeen(a_pod("p", cpu=1)))

    commands = loop.feed(event)

    errors = [one for one in commands if isinstance(one, ReportPluginError)]
    assert [("Broken", point, f"a plugin raised RuntimeError: no {point}")] == [
        (one.plugin, one.point, one.message) for one in errors
    ]
    assert (placed, waiting, 0) == (len(loop.cluster.cache), len(loop.queue), len(loop.bindings))
    books = loop.profiles["default-scheduler"].plugins["Books"]
    assert isinstance(books, Books)
    assert log == books.log


def test_room_is_given_back_although_unreserve_raises() -> None:
    loop = a_loop((*CORE, Broken))
    loop.feed(events.NodeSeen(a_node("n", cpu=1)), events.PodSeen(a_pod("p", cpu=1)), events.PodSeen(a_pod("q", cpu=1)))

    commands = loop.feed(events.TimePassed(2.0), events.PodGone(P))

    assert ["q"] == [one.pod.name for one in commands if isinstance(one, Bind)]


def test_a_follower_that_raises_stops_no_event() -> None:
    loop = a_loop((*CORE, Broken))

    commands = loop.feed(
        events.NodeSeen(a_node("n")), events.PodSeen(a_pod("odd", labels={"odd": "yes"})), events.PodGone(PodUid("odd"))
    )

    assert ["pod_seen", "pod_gone"] == [one.point for one in commands if isinstance(one, ReportPluginError)]
    assert 0 == len(loop.queue)
