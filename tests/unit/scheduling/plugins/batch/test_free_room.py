"""Plans for gangs: what fits where, and whose start counts."""

from collections.abc import Sequence

import msgspec
import numpy as np
import pytest

from lamina.model import events
from lamina.model.pod import Pod, PodUid
from lamina.scheduling.plugins.batch.gangs.free_room import EqualPods, FreeRoom
from lamina.scheduling.state.columns import Bools, Ints
from lamina.scheduling.state.view import NodeView, everything
from lamina.testing import a_loop, a_node, a_pod


class Shown(msgspec.Struct, frozen=True):
    """A candidate as a test shows it."""

    pod: Pod
    feasible: Bools
    scores: Ints
    key: str = "k"
    arrived_at: float = 0.0
    queued_at: float = 0.0
    attempts: int = 1


def view(*cores: int) -> NodeView:
    loop = a_loop()
    loop.feed(*(events.NodeSeen(a_node(f"n{row}", cpu=amount)) for row, amount in enumerate(cores)))
    return everything(loop.cluster.columns)


def equal(
    count: int,
    nodes: NodeView,
    *,
    cpu: int = 1,
    seconds: Sequence[float] = (),
    scores: Sequence[int] = (),
    name: str = "p",
) -> EqualPods:
    marks = np.array(scores or [0] * len(nodes), dtype=np.int64)
    fits = np.ones(len(nodes), dtype=np.bool_)
    pods = [Shown(a_pod(f"{name}{number}", cpu=cpu), fits, marks, name) for number in range(count)]
    return EqualPods(pods, pods[0].pod.requests, np.array(seconds, dtype=np.float64) if seconds else None)


def rows(found: dict[PodUid, int]) -> list[int]:
    return sorted(found.values())


@pytest.mark.parametrize(
    ("seconds", "scores", "want"),
    [
        # Six pods need two nodes of four cores. Nodes 1 and 2 are ready within 20 s, node 0 only after 90 s.
        pytest.param([90, 20, 10], [100, 0, 0], [1, 1, 1, 1, 2, 2], id="the slowest counts more than scores"),
        pytest.param([10, 10, 10], [0, 50, 100], [1, 1, 2, 2, 2, 2], id="scores decide among equally fast nodes"),
        pytest.param([], [0, 50, 100], [1, 1, 2, 2, 2, 2], id="images are unknown"),
        pytest.param([5, 500, 900], [0, 0, 0], [0, 0, 0, 0, 1, 1], id="no node is faster than needed"),
    ],
)
def test_a_gang_goes_where_its_slowest_member_starts_soonest(seconds: list[float], scores: list[int], want: list[int]):
    nodes = view(4, 4, 4)
    one = equal(6, nodes, seconds=seconds, scores=scores)

    assert want == rows(FreeRoom(nodes, one.pods).plan([one], 6))


def test_classes_of_a_gang_share_the_limit_and_the_room():
    """Two large pods fill node 2 and half of node 1; the small ones get the rest of node 1, and node 0 is too slow."""
    nodes = view(4, 3, 4)
    large = equal(3, nodes, cpu=2, seconds=[60, 10, 10], name="large")
    small = equal(1, nodes, cpu=1, seconds=[60, 10, 10], name="small")
    room = FreeRoom(nodes, [*large.pods, *small.pods])

    assert [1, 1, 2, 2] == rows(room.plan([large, small], 4))


@pytest.mark.parametrize(
    ("least", "want"), [pytest.param(5, 0, id="fewer than the minimum"), pytest.param(2, 4, id="at least the minimum")]
)
def test_a_plan_has_at_least_the_minimum_or_nothing(least: int, want: int):
    nodes = view(2, 2)
    one = equal(6, nodes)
    room = FreeRoom(nodes, one.pods)

    assert (want, want) == (len(room.plan([one], least)), 4 - int(room.places(one).sum()))


def test_closed_nodes_are_left_out():
    nodes = view(2, 2)
    one = equal(2, nodes)
    room = FreeRoom(nodes, one.pods)
    room.close([0])

    assert [1, 1] == rows(room.plan([one], 2))
