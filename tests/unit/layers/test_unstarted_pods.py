"""Unstarted: pods that do not run yet, by node and by name, and which of them have to be looked at again."""

import pytest

from lamina.layers.unstarted_pods import UnstartedPods
from lamina.model.pod import PodUid
from lamina.testing import a_digest

P, Q, R = map(PodUid, "pqr")
APP, TOOL = "docker.io/library/app:1", "docker.io/library/tool:1"
OLD, NEW = a_digest("old"), a_digest("new")


@pytest.fixture
def pods():
    """R came first, then P, then Q."""
    made = UnstartedPods()
    made.put(R, "n2", ("tool:1",))
    made.put(P, "n1", ("app:1", "docker.io/library/app:1"))
    made.put(Q, "n2", ("app:1", "tool:1"))
    return made


@pytest.mark.parametrize(
    ("names", "nodes", "want"),
    [
        pytest.param([], [], [], id="nothing"),
        pytest.param([APP], [], [P, Q], id="a name"),
        pytest.param([APP, TOOL], [], [R, P, Q], id="two names"),
        pytest.param([], ["n1"], [P], id="a node"),
        pytest.param([TOOL], ["n1", "n2"], [R, P, Q], id="names and nodes"),
        pytest.param(["other:1"], ["n9"], [], id="a name that no pod needs, a node without pods"),
    ],
)
def test_pods_are_found_by_name_and_by_node(pods, names, nodes, want):
    """In the order they came, whichever way they are found: that is the order in which images are pulled."""
    assert want == pods.affected(names, nodes)


def test_a_pod_that_comes_again_comes_last(pods):
    pods.put(R, "n1", ("app:1",))

    assert ([P, Q, R], [Q], [P, R]) == (
        pods.affected([APP]),
        pods.affected([TOOL]),
        pods.affected(nodes=["n1"]),
    )
    assert (3, ("n1", ("app:1",))) == (len(pods), pods[R])


def test_nothing_remains_of_pods_that_are_gone(pods):
    pods.changed_names(lambda name: (OLD,))

    assert [True, True, True, False] == [pods.pop(pod) for pod in (P, Q, R, P)]
    assert (0, {}, {}, {}) == (len(pods), pods._on, pods._naming, pods._meant)


def test_names_are_told_once_for_each_meaning_they_get(pods):
    means = {APP: (OLD,), TOOL: (None,)}

    assert [TOOL, APP] == pods.changed_names(means.__getitem__)
    assert [] == pods.changed_names(means.__getitem__)
    means[TOOL] = (NEW,)
    assert [TOOL] == pods.changed_names(means.__getitem__)


def test_what_a_name_meant_to_a_pod_in_the_meantime_is_not_forgotten(pods):
    """It means the same as before again, but not the same as when that pod was looked at."""
    pods.changed_names(lambda name: (OLD,))
    pods.checked(("app:1",), lambda name: (None,))

    assert [APP] == pods.changed_names(lambda name: (OLD,))


def test_looking_at_a_pod_that_sees_what_the_others_saw_changes_nothing(pods):
    pods.changed_names(lambda name: (OLD,))
    pods.checked(("app:1", "tool:1"), lambda name: (OLD,))

    assert [] == pods.changed_names(lambda name: (OLD,))
