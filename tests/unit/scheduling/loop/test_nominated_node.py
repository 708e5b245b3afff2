"""A pod for which room was made goes there first, if it fits."""

import pytest

from lamina.model import events
from lamina.scheduling.contract.commands import Bind
from lamina.testing import a_loop, a_node, a_pod

CORE = ("PrioritySort", "NodeResourcesFit", "DefaultBinder")


@pytest.mark.parametrize(
    ("nominated", "expected"),
    [
        pytest.param("busy", "busy", id="it fits there, although another node scores better"),
        pytest.param("full", "empty", id="it does not fit there"),
        pytest.param("unknown", "empty", id="the node is not known"),
        pytest.param("", "empty", id="no node is nominated"),
    ],
)
def test_the_nominated_node_comes_first_if_the_pod_fits_there(nominated: str, expected: str) -> None:
    loop = a_loop(CORE)
    loop.feed(
        events.NodeSeen(a_node("empty", cpu=4)),
        events.NodeSeen(a_node("busy", cpu=4)),
        events.NodeSeen(a_node("full", cpu=4)),
        events.PodSeen(a_pod("some", cpu=2, on="busy")),
        events.PodSeen(a_pod("all", cpu=4, on="full")),
    )

    commands = loop.feed(events.PodSeen(a_pod("p", cpu=1, nominated=nominated)))

    assert [expected] == [one.node for one in commands if isinstance(one, Bind)]
