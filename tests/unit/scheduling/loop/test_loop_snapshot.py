"""Snapshots of the loop: shallow, complete, and refused when they contradict themselves; the law is in tests/property."""

from typing import Any, ClassVar

import msgspec
import pytest

from lamina.model import events
from lamina.scheduling.contract.commands import Bind, ReportUnschedulable
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.points import Wait
from lamina.scheduling.contract.waiting_pods import WaitingPods
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.loop.loop_snapshot import (
    LISTS,
    PIECE,
    LoopSnapshot,
    SnapshotError,
    assemble,
    pieces,
    what_is_lost,
)
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.testing import a_loop, a_node, a_pod
from lamina.testing.loop_harness import DEFAULT


class Hold:
    """Holds every pod until an event allows it."""

    name: ClassVar = "Hold"

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def permit(self, state: CycleState, pod: Any, node: str, waiting: WaitingPods) -> Wait | None:
        return Wait(30.0)


def twin_of(loop: Loop, plugins: Any = DEFAULT) -> Loop:
    twin = a_loop(plugins)
    twin.restore(assemble(pieces(loop.snapshot())))
    return twin


def test_a_snapshot_shares_pods_and_nodes_with_the_loop():
    """Taking one costs a pass over the objects, and no copy of them."""
    node, placed, waiting = a_node("n1", cpu=1), a_pod("p1", cpu=1, on="n1"), a_pod("p2", cpu=9)
    loop = a_loop()
    loop.feed(events.NodeSeen(node), events.PodSeen(placed), events.PodSeen(waiting))
    snapshot = loop.snapshot()

    assert snapshot.cluster.columns.nodes[0] is node
    assert snapshot.cluster.placed[0][0] is placed
    assert snapshot.queue.pods[0].pod is waiting


def test_a_snapshot_stays_as_it_was_while_the_loop_goes_on():
    loop = a_loop([*DEFAULT, Hold])
    loop.feed(events.NodeSeen(a_node("n1", cpu=4)), events.PodSeen(a_pod("p1", cpu=1)))
    snapshot = loop.snapshot()
    before = list(pieces(snapshot))
    loop.feed(events.PermitGiven("p1", "Hold"), events.TimePassed(5.0), events.NodeGone("n1"))
    loop.feed(events.NodeSeen(a_node("n2", cpu=4)), events.PodGone("p1"))

    assert before == list(pieces(snapshot))


def test_a_node_gets_the_row_that_was_free_for_it():
    """Rows decide between nodes of equal score: the next node has to get the row it would have got."""
    loop = a_loop()
    for name in ("n1", "n2", "n3", "n4"):
        loop.feed(events.NodeSeen(a_node(name, cpu=4)))
    loop.feed(events.NodeGone("n3"), events.NodeGone("n1"))
    twin = twin_of(loop)
    for one in (loop, twin):
        one.feed(events.NodeSeen(a_node("n5", cpu=4)), events.NodeSeen(a_node("n6", cpu=4)))

    assert {"n2": 1, "n4": 3, "n5": 0, "n6": 2} == twin.cluster.columns.rows == loop.cluster.columns.rows


def test_a_pod_that_a_permit_holds_is_still_held_and_times_out_at_its_time():
    loop = a_loop([*DEFAULT, Hold])
    loop.feed(events.TimePassed(100.0), events.NodeSeen(a_node("n1", cpu=4)), events.PodSeen(a_pod("p1", cpu=1)))
    twin = twin_of(loop, [*DEFAULT, Hold])

    assert [] == [one for one in twin.feed(events.TimePassed(129.0)) if isinstance(one, Bind | ReportUnschedulable)]
    (told,) = [one for one in twin.feed(events.TimePassed(130.0)) if isinstance(one, ReportUnschedulable)]
    assert "timeout after waiting 30s at plugin Hold" in told.decision.message


def test_nominated_pods_still_hold_their_room_and_know_for_whose_eviction_they_wait():
    loop = a_loop()
    waiting, victim = a_pod("p1", cpu=4), a_pod("v1", cpu=4, on="n1")
    loop.feed(events.NodeSeen(a_node("n1", cpu=4)), events.PodSeen(victim), events.PodSeen(waiting))
    loop.cluster.nominate(waiting, "n1", [victim])
    nominations = twin_of(loop).cluster.nominations

    assert ("n1", frozenset(["v1"])) == (nominations.node_of("p1"), nominations.victims_of("p1"))


def test_what_was_told_is_not_told_again_after_a_restore():
    loop = a_loop()
    loop.feed(events.NodeSeen(a_node("n1", cpu=1)), events.PodSeen(a_pod("p1", cpu=2)))
    twin = twin_of(loop)

    assert [] == [one for one in twin.feed(events.TimePassed(400.0)) if isinstance(one, ReportUnschedulable)]


def test_commands_that_were_not_handed_out_are_counted_and_left_out():
    loop = a_loop()
    loop.feed(events.NodeSeen(a_node("n1", cpu=1)), events.PodSeen(a_pod("p1", cpu=1)))
    loop.take(events.BindFailed("p1", "conflict"))

    assert (1, 0) == (loop.pending, twin_of(loop).pending)


def test_long_lists_are_encoded_in_pieces():
    loop = a_loop()
    loop.take(*(events.PodSeen(a_pod(f"p{number}", on="n1")) for number in range(2 * PIECE + 1)))
    names = [name for name, _ in pieces(loop.snapshot())]

    assert 3 == names.count("cluster.placed")
    assert "cluster.placed" in LISTS
    assert 2 * PIECE + 1 == len(twin_of(loop).cluster.cache)


@pytest.mark.parametrize(
    ("plugins", "lost"),
    [
        pytest.param(DEFAULT, (), id="none by default"),
        pytest.param((*DEFAULT, Hold), ("Hold",), id="from elsewhere, in binding cycles"),
        pytest.param((*DEFAULT, "VolumeBinding"), (), id="of Lamina, in binding cycles"),
        pytest.param(("QosAware", *DEFAULT[1:]), (), id="saved"),
        pytest.param(
            (*DEFAULT, "GangScheduling", "Backfill"), ("Backfill", "GangScheduling"), id="of Lamina, follow pods"
        ),
    ],
)
def test_plugins_that_keep_books_of_their_own_are_named(plugins: tuple[str | type[Any], ...], lost: tuple[str, ...]):
    assert lost == what_is_lost(a_loop(plugins).profiles)


def replaced(snapshot: LoopSnapshot, **cluster: Any) -> LoopSnapshot:
    return msgspec.structs.replace(snapshot, cluster=msgspec.structs.replace(snapshot.cluster, **cluster))


def test_a_row_that_no_node_can_have_is_refused_before_any_array_is_made():
    loop = a_loop()
    loop.feed(events.NodeSeen(a_node("n1", cpu=1)))
    snapshot = loop.snapshot()
    inventory = msgspec.structs.replace(snapshot.cluster.inventory, rates=((2**40, 1.0, 1.0, 0, 0),))

    with pytest.raises(SnapshotError, match=f"refers to row {2**40}, but has only 1 rows"):
        a_loop().restore(replaced(snapshot, inventory=inventory))


def test_a_profile_that_is_not_there_is_refused():
    loop = a_loop()
    loop.feed(events.PodSeen(a_pod("p1")))
    snapshot = loop.snapshot()
    pods = tuple(msgspec.structs.replace(one, profile="another") for one in snapshot.queue.pods)
    queue = msgspec.structs.replace(snapshot.queue, pods=pods)

    with pytest.raises(SnapshotError, match="is inconsistent"):
        a_loop().restore(msgspec.structs.replace(snapshot, queue=queue))
