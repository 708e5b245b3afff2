"""The cluster's state on its own: events in, changes out, with no queue and no decision."""

import pytest

from lamina.model import events
from lamina.model.events import ClusterEvent
from lamina.model.pod import PodUid
from lamina.model.taints import NO_SCHEDULE, Taint
from lamina.scheduling.state.cluster_changes import ChangeKind
from lamina.scheduling.state.cluster_state import ClusterState
from lamina.testing import a_node, a_pod, an_image, held

N1 = events.NodeSeen(a_node("n1", cpu=4, uid="one"))
ON_N1 = events.PodSeen(a_pod("p", cpu=1, on="n1"))
IMAGE = an_image("app:1", {"base": 100})


def changes_of(*happened: ClusterEvent) -> list[ChangeKind]:
    """Apply events and return the kinds of change the last one made."""
    state = ClusterState()
    kinds: list[ChangeKind] = []
    for event in happened:
        kinds = [one.kind for one in state.apply(event)]
    return kinds


@pytest.mark.parametrize(
    ("happened", "expected"),
    [
        pytest.param([N1], [ChangeKind.NODE_ADDED], id="a node appears"),
        pytest.param([N1, N1], [], id="a node is seen again"),
        pytest.param(
            [N1, events.NodeSeen(a_node("n1", cpu=8, uid="one"))], [ChangeKind.NODE_ALLOCATABLE], id="a node grows"
        ),
        pytest.param(
            [N1, events.NodeSeen(a_node("n1", cpu=4, uid="one", taints=[Taint("a", "", NO_SCHEDULE)]))],
            [ChangeKind.NODE_TAINTS],
            id="a node is tainted",
        ),
        pytest.param(
            [N1, events.NodeSeen(a_node("n1", cpu=4, uid="two"))],
            [ChangeKind.NODE_REMOVED, ChangeKind.NODE_ADDED],
            id="a machine takes over a name",
        ),
        pytest.param([N1, events.NodeGone("n1")], [ChangeKind.NODE_REMOVED], id="a node leaves"),
        pytest.param([events.NodeGone("n1")], [], id="an unknown node leaves"),
        pytest.param([N1, events.PodSeen(a_pod("p"))], [], id="a pod waits"),
        pytest.param([N1, ON_N1], [ChangeKind.POD_PLACED], id="a pod was placed"),
        pytest.param([N1, ON_N1, ON_N1], [], id="a placed pod is seen again"),
        pytest.param(
            [N1, ON_N1, events.PodSeen(a_pod("p", cpu=2, on="n1"))],
            [ChangeKind.POD_REMOVED, ChangeKind.POD_PLACED],
            id="a placed pod asks for something else",
        ),
        pytest.param([N1, ON_N1, events.PodGone(PodUid("p"))], [ChangeKind.POD_REMOVED], id="a placed pod is gone"),
        pytest.param(
            [N1, events.LayersReported(held("n1", IMAGE, node_uid="one"))], [ChangeKind.LAYERS], id="a report"
        ),
        pytest.param([events.PodSeen(a_pod("p", nominated="n1"))], [], id="a pod is nominated"),
        pytest.param(
            [events.PodSeen(a_pod("p", nominated="n1")), events.PodGone(PodUid("p"))],
            [ChangeKind.POD_REMOVED],
            id="a nominated pod is gone",
        ),
        pytest.param(
            [events.PodSeen(a_pod("p", nominated="n1")), events.PodSeen(a_pod("p", nominated="n2"))],
            [ChangeKind.POD_REMOVED],
            id="another node is nominated",
        ),
        pytest.param(
            [events.PodSeen(a_pod("p", nominated="n1")), events.PodSeen(a_pod("p", on="n1"))],
            [ChangeKind.POD_PLACED],
            id="a nominated pod was placed there",
        ),
        pytest.param(
            [events.PodSeen(a_pod("p", nominated="n1")), events.PodSeen(a_pod("p", on="n2"))],
            [ChangeKind.POD_REMOVED, ChangeKind.POD_PLACED],
            id="a nominated pod was placed elsewhere",
        ),
        pytest.param(
            [events.PodSeen(a_pod("p", nominated="n1")), events.PodSeen(a_pod("p"))],
            [ChangeKind.POD_REMOVED],
            id="a nomination was withdrawn",
        ),
    ],
)
def test_each_event_makes_the_changes_that_may_help_waiting_pods(
    happened: list[ClusterEvent], expected: list[ChangeKind]
) -> None:
    assert expected == changes_of(*happened)


def test_an_assumed_pod_counts_until_it_is_forgotten() -> None:
    state = ClusterState()
    state.apply(N1)
    pod = a_pod("p", cpu=3)

    state.assume(pod, "n1")
    assert 1000 == state.context.node(0).free("cpu")
    assert (pod,) == state.context.pods_on("n1")

    state.forget(pod)
    assert 4000 == state.context.node(0).free("cpu")


def test_the_first_word_about_an_assumed_pod_is_a_placement() -> None:
    state = ClusterState()
    state.apply(N1)
    state.assume(a_pod("p", cpu=1), "n1")

    assert [ChangeKind.POD_PLACED] == [one.kind for one in state.apply(ON_N1)]
    assert [] == state.apply(ON_N1)


def test_nominated_pods_of_equal_or_higher_priority_come_first() -> None:
    state = ClusterState()
    for name, priority in (("low", 1), ("equal", 5), ("high", 9)):
        state.apply(events.PodSeen(a_pod(name, priority=priority, nominated="n1")))

    (found,) = state.nominations.ahead_of(a_pod("p", priority=5))

    assert ("n1", ["equal", "high"]) == (found[0], [one.name for one in found[1]])
    assert [] == list(state.nominations.ahead_of(a_pod("p", priority=10)))
    assert [["high"]] == [
        [one.name for one in pods] for _, pods in state.nominations.ahead_of(a_pod("equal", priority=5))
    ]


def test_news_older_than_our_own_nomination_do_not_end_it() -> None:
    """
    The patch that writes a nomination takes a moment to come back on the watch.
    """
    state = ClusterState()
    state.nominate(a_pod("p"), "n1")

    assert [] == state.apply(events.PodSeen(a_pod("p", labels={"changed": "yes"})))
    assert "n1" == state.nominations.node_of(PodUid("p"))
