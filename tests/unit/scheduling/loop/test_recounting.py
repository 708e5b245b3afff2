"""Counters of pods: what the loop is told about pods on nodes reaches them."""

import msgspec
import pytest

from lamina.model import events
from lamina.model.pod import Owner
from lamina.model.selectors import LabelSelector
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.view import everything
from lamina.testing import LoopHarness, a_loop, a_node, a_pod

WEB = Owner("ReplicaSet", "web", "u1")
RUNNING = a_pod("p", cpu=1, on="n1", owner=WEB, labels={"app": "web"})
APP = LabelSelector((("app", "web"),))


@pytest.fixture
def desk() -> LoopHarness:
    """Two nodes, and a pod on the first."""
    made = LoopHarness(a_loop())
    made.tell(events.NodeSeen(a_node("n1")), events.NodeSeen(a_node("n2")), events.PodSeen(RUNNING))
    return made


def counted(desk: LoopHarness) -> tuple[list[int], list[int]]:
    """Return the pods of the controller and those with the label, by row."""
    nodes = everything(desk.loop.cluster.columns)
    return nodes.owned(("default", "u1")).tolist(), nodes.matching("default", APP).tolist()


def positions(desk: LoopHarness) -> dict[Facet, int]:
    return {facet: desk.loop.cluster.columns.logs[facet].position for facet in (Facet.PODS, Facet.RESOURCES)}


def test_a_pod_counts_on_its_node(desk):
    assert ([1, 0], [1, 0]) == counted(desk)


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        pytest.param({"labels": {"app": "db"}}, ([1, 0], [0, 0]), id="other labels"),
        pytest.param({"owner": None}, ([0, 0], [1, 0]), id="no controller any more"),
        pytest.param({"deleting": True}, ([0, 0], [0, 0]), id="being deleted"),
        pytest.param({"node_name": "n2"}, ([0, 1], [0, 1]), id="on another node after all"),
    ],
)
def test_a_pod_that_changes_on_its_node_is_counted_as_it_is_now(desk, changes, want):
    """And no longer as it was."""
    counted(desk)
    desk.tell(events.PodSeen(msgspec.structs.replace(RUNNING, **changes)))

    assert want == counted(desk)


def test_a_change_of_labels_is_noted_for_pods_alone(desk):
    """It takes nothing and gives nothing back."""
    before = positions(desk)
    desk.tell(events.PodSeen(msgspec.structs.replace(RUNNING, labels={"app": "db"})))

    assert {Facet.PODS: before[Facet.PODS] + 1, Facet.RESOURCES: before[Facet.RESOURCES]} == positions(desk)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"annotations": {"note": "x"}}, id="an annotation"),
        pytest.param({"started": True}, id="it has started"),
    ],
)
def test_a_change_that_nobody_counts_by_is_no_news(desk, changes):
    before = positions(desk)
    desk.tell(events.PodSeen(msgspec.structs.replace(RUNNING, **changes)))

    assert before == positions(desk)


def test_a_pod_that_is_gone_counts_no_longer(desk):
    desk.tell(events.PodGone(RUNNING.uid))

    assert ([0, 0], [0, 0]) == counted(desk)


def test_a_pod_that_was_seen_being_deleted_can_go():
    """It was never counted, so there is nothing to take back."""
    desk = LoopHarness(a_loop())
    leaving = msgspec.structs.replace(RUNNING, deleting=True)
    desk.tell(events.NodeSeen(a_node("n1")), events.PodSeen(leaving), events.PodGone(RUNNING.uid))

    assert ([0], [0]) == counted(desk)


def test_the_pods_of_a_node_that_left_count_nowhere_until_it_is_back(desk):
    """The row is given to another node meanwhile."""
    desk.tell(events.NodeGone("n1"), events.NodeSeen(a_node("n3")))
    assert ([0, 0], [0, 0]) == counted(desk)

    desk.tell(events.NodeSeen(a_node("n1")))
    assert ([0, 0, 1], [0, 0, 1]) == counted(desk)


def test_a_pod_that_changed_while_its_node_was_away_is_counted_as_it_is(desk):
    desk.tell(
        events.NodeGone("n1"),
        events.PodSeen(msgspec.structs.replace(RUNNING, labels={"app": "db"})),
        events.NodeSeen(a_node("n1")),
    )

    assert ([1, 0], [0, 0]) == counted(desk)


def test_a_pod_counts_from_the_moment_it_is_assumed():
    """Before anybody has heard of the binding, and not twice when they have."""
    desk = LoopHarness(a_loop())
    desk.loop.feed(events.NodeSeen(a_node("n1")))
    desk.loop.feed(events.PodSeen(msgspec.structs.replace(RUNNING, node_name="")))
    assert ([1], [1]) == counted(desk)

    desk.loop.feed(events.PodSeen(RUNNING))
    assert ([1], [1]) == counted(desk)
