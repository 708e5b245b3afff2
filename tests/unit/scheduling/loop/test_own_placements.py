"""What this scheduler places itself can help pods that wait, as what others place can."""

import msgspec
import pytest

from lamina.model import events
from lamina.model.pod import Pod, SpreadConstraint
from lamina.model.selectors import LabelSelector
from lamina.scheduling.contract.commands import Bind, Command
from lamina.scheduling.loop.loop import Loop
from lamina.testing import a_loop, a_node, a_pod

PLUGINS = ("PrioritySort", "NodeAffinity", "NodeResourcesFit", "PodTopologySpread", "DefaultBinder")
EVEN = (SpreadConstraint(1, "zone", selector=LabelSelector((("app", "b"),))),)


def bound(commands: list[Command]) -> list[tuple[str, str]]:
    return [(one.pod.name, one.node) for one in commands if isinstance(one, Bind)]


def waiting_big_pod() -> Loop:
    """Zone x has one pod of the app and zone y none; y1 is too small for `big`, and x1 would make the spread uneven."""
    loop = a_loop(PLUGINS)
    loop.feed(
        events.NodeSeen(a_node("x1", cpu=4, labels={"zone": "x"})),
        events.NodeSeen(a_node("y1", cpu=1, labels={"zone": "y"})),
        events.PodSeen(a_pod("old", labels={"app": "b"}, on="x1")),
    )
    assert [] == bound(loop.feed(events.PodSeen(a_pod("big", cpu=2, labels={"app": "b"}, spread=EVEN))))
    return loop


def small_pod() -> Pod:
    return msgspec.structs.replace(a_pod("small", labels={"app": "b"}), node_selector=(("zone", "y"),))


@pytest.mark.parametrize("ours", [True, False], ids=["placed by this scheduler", "placed by another scheduler"])
def test_a_placement_wakes_pods_that_it_makes_room_for_in_their_spread(ours: bool) -> None:
    loop = waiting_big_pod()
    small = small_pod()

    loop.feed(events.TimePassed(20.0))
    if ours:
        assert [("small", "y1")] == bound(loop.feed(events.PodSeen(small)))
    commands = loop.feed(events.PodSeen(msgspec.structs.replace(small, node_name="y1")))

    assert [("big", "x1")] == bound(commands)


def test_a_placement_that_may_still_fail_wakes_no_pod() -> None:
    """
    Until the API server has confirmed it, `small` may not stay where it was put.
    """
    loop = waiting_big_pod()

    commands = loop.feed(events.TimePassed(20.0), events.PodSeen(small_pod()))

    assert [("small", "y1")] == bound(commands)
    assert "unschedulable" == loop.queue.get("big").place  # type: ignore[arg-type,union-attr]


def test_news_that_repeat_a_confirmed_placement_wake_no_pod() -> None:
    loop = waiting_big_pod()
    old = a_pod("old", labels={"app": "b"}, on="x1")

    loop.feed(events.TimePassed(20.0), events.PodSeen(old))

    assert "unschedulable" == loop.queue.get("big").place  # type: ignore[arg-type,union-attr]
