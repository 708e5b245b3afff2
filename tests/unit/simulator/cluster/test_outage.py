"""Nodes that fail and recover, are cordoned and drained, and what becomes of their pods."""

import pytest

from lamina.model import events
from lamina.model.pod import Owner, PodUid
from lamina.model.taints import NO_EXECUTE, NO_SCHEDULE, Taint, Toleration
from lamina.trace import trace_records
from tests.unit.simulator.cluster.world import WEB, World

UNREACHABLE = "node.kubernetes.io/unreachable"
TAINTS = (Taint(UNREACHABLE, effect=NO_SCHEDULE), Taint(UNREACHABLE, effect=NO_EXECUTE))
STAYS = Toleration(key=UNREACHABLE, operator="Exists", effect=NO_EXECUTE)


@pytest.fixture
def world() -> World:
    made = World(start=0.5)
    made.node("n1", WEB)
    return made


# ---------------------------------------------------------------------------------------------------------------- failure


def test_a_failed_node_is_tainted_when_it_is_noticed_and_its_pods_go_later(world):
    world.run_on("n1", "p", seconds=100.0)
    world.at(10.0, world.cluster.fail, "n1")
    world.env.run()

    assert [
        (0.0, "pod-bound", "default/p"),
        (0.5, "pod-started", "default/p"),
        (10.0, "node-failed", ""),
        (350.0, "pod-evicted", "default/p"),  # 40 s until it is noticed, and 300
    ] == world.log()
    assert [(50.0, TAINTS)] == [(when, event.node.taints) for when, event in world.heard(events.NodeSeen, since=0.1)]
    assert [(350.0, events.PodGone(PodUid("p")))] == world.heard(events.PodGone)
    assert ("removed", UNREACHABLE) == (world.pod("p").phase, world.pod("p").reason)


@pytest.mark.parametrize(
    ("pod", "evicted_at"),
    [
        pytest.param({}, [350.0], id="as the cluster has it"),
        pytest.param({"unreachable": 60.0}, [110.0], id="its own seconds"),
        pytest.param({"unreachable": 60.0, "tolerations": (STAYS,)}, [110.0], id="tolerated for its own seconds"),
        pytest.param({"tolerations": (STAYS,)}, [], id="tolerated for ever"),
        pytest.param({"tolerations": (Toleration(operator="Exists"),)}, [], id="whatever comes"),
        pytest.param({"tolerations": (Toleration("x", "Exists"),)}, [350.0], id="something else tolerated"),
    ],
)
def test_pods_are_left_on_a_failed_node_as_long_as_they_tolerate_it(world, pod, evicted_at):
    world.run_on("n1", "p", **pod)
    world.at(10.0, world.cluster.fail, "n1")
    world.env.run()

    assert evicted_at == [when for when, _, _ in world.log(trace_records.PodEvicted)]


def test_what_happened_on_a_failed_node_is_seen_when_it_is_back(world):
    """A pod that would have started and one that would have ended; and one that goes on."""
    world.run_on("n1", "starts")
    world.run_on("n1", "ends", seconds=20.0)
    world.run_on("n1", "goes-on", seconds=60.0)
    world.env.run(until=0.25)
    world.cluster.fail("n1")
    world.at(0.75, world.cluster.recover, "n1")
    world.at(10.0, world.cluster.fail, "n1")
    world.at(30.0, world.cluster.recover, "n1")
    world.env.run()

    assert (
        [
            (0.25, "node-failed", ""),
            (0.75, "node-recovered", ""),
            (0.75, "pod-started", "default/starts"),
            (0.75, "pod-started", "default/ends"),
            (0.75, "pod-started", "default/goes-on"),
            (10.0, "node-failed", ""),
            (30.0, "node-recovered", ""),
            (30.0, "pod-finished", "default/ends"),  # It was over at 20.75.
            (60.75, "pod-finished", "default/goes-on"),
        ]
        == world.log()[3:]
    )


def test_a_node_that_recovers_is_seen_without_taints_and_keeps_its_pods(world):
    world.run_on("n1", "p")
    world.at(10.0, world.cluster.fail, "n1")
    world.at(60.0, world.cluster.recover, "n1")
    world.env.run()

    assert [(50.0, TAINTS), (60.0, ())] == [
        (when, event.node.taints) for when, event in world.heard(events.NodeSeen, since=0.1)
    ]
    assert "running" == world.pod("p").phase


def test_a_short_failure_is_never_noticed(world):
    world.at(10.0, world.cluster.fail, "n1")
    world.at(20.0, world.cluster.recover, "n1")
    world.env.run()

    assert [] == world.heard(events.NodeSeen, since=0.1)


def test_pulls_break_off_and_are_made_again():
    world = World(start=0.5)
    world.node("n1")
    world.run_on("n1", "p")
    world.at(7.0, world.cluster.fail, "n1")  # One layer is there, the other half: a runtime begins anew.
    world.at(20.0, world.cluster.recover, "n1")
    world.env.run()

    assert [(28.0, "pull-done", "web:1"), (28.5, "pod-started", "default/p")] == world.log(
        trace_records.PullDone, trace_records.PodStarted
    )


def test_a_failed_node_reports_nothing_until_it_is_back():
    world = World(start=0.5, report=1.0, status=10.0)
    world.node("n1")
    world.run_on("n1", "p")
    world.at(8.5, world.cluster.fail, "n1")  # The image is there at 8.0.
    world.at(20.0, world.cluster.recover, "n1")
    world.env.run()

    assert [21.0] == [when for when, _ in world.heard(events.LayersReported, since=0.1)]
    assert [30.0] == [when for when, _ in world.heard(events.NodeSeen, since=0.1)]


def test_what_a_failed_node_lost_is_reported_when_it_is_back(world):
    world.at(10.0, world.cluster.fail, "n1")
    world.at(11.0, world.cluster.nodes["n1"].store.remove, WEB.digest)
    world.at(11.0, world.cluster.kubelets["n1"].images_removed, (WEB,), 800, "collected")
    world.at(20.0, world.cluster.recover, "n1")
    world.env.run()

    assert [(21.0, ())] == [
        (when, event.report.images) for when, event in world.heard(events.LayersReported, since=0.1)
    ]


def test_a_pod_bound_to_a_failed_node_is_taken_when_the_node_is_back(world):
    world.cluster.fail("n1")
    world.run_on("n1", "p")
    world.at(20.0, world.cluster.recover, "n1")
    world.env.run()

    assert (0.0, 20.0, 20.5) == (world.pod("p").bound, world.pod("p").accepted, world.pod("p").started)


@pytest.mark.parametrize(
    ("bound_at", "evicted_at"),
    [pytest.param(10.0, 340.0, id="before it is noticed"), pytest.param(100.0, 400.0, id="after")],
)
def test_a_pod_bound_to_a_failed_node_is_not_left_there_for_ever(world, bound_at, evicted_at):
    world.cluster.fail("n1")
    world.at(bound_at, world.run_on, "n1", "p")
    world.env.run()

    assert [(evicted_at, "pod-evicted", "default/p")] == world.log(trace_records.PodEvicted)


def test_a_pod_told_to_stop_on_a_failed_node_stops_when_the_node_is_back(world):
    world.run_on("n1", "p", stopping=3.0)
    world.at(10.0, world.cluster.fail, "n1")
    world.at(11.0, world.cluster.remove, PodUid("p"), None)
    world.at(20.0, world.cluster.recover, "n1")
    world.env.run()

    assert [11.0] == [when for when, event in world.heard(events.PodSeen) if event.pod.deleting]
    assert [(23.0, "pod-removed", "default/p")] == world.log(trace_records.PodRemoved)


def test_a_pod_told_to_stop_before_its_failed_node_saw_it_is_gone_when_the_node_is_back(world):
    world.cluster.fail("n1")
    world.run_on("n1", "p")
    world.cluster.remove(PodUid("p"), None)
    world.at(20.0, world.cluster.recover, "n1")
    world.env.run()

    assert [(20.0, "pod-removed", "default/p")] == world.log(trace_records.PodRemoved)


def test_a_pod_can_be_removed_from_a_failed_node_by_force(world):
    world.run_on("n1", "p", seconds=60.0)
    world.at(10.0, world.cluster.fail, "n1")
    world.at(11.0, world.cluster.remove, PodUid("p"))
    world.at(100.0, world.cluster.recover, "n1")
    world.env.run()

    assert [(11.0, "pod-removed", "default/p")] == world.log(trace_records.PodRemoved, trace_records.PodFinished)
    assert 0 == world.cluster.nodes["n1"].used["cpu"]


def test_a_failed_node_that_is_dropped_is_gone_with_its_pods(world):
    world.run_on("n1", "p")
    world.at(10.0, world.cluster.fail, "n1")
    world.at(20.0, world.cluster.drop, "n1")
    world.at(30.0, world.cluster.recover, "n1")
    world.env.run()

    assert [(20.0, "pod-removed", "default/p"), (20.0, "node-left", "")] == world.log()[-2:]


@pytest.mark.parametrize("name", ["n1", "n9"])
def test_failing_twice_or_nowhere_and_recovering_what_works_change_nothing(world, name):
    world.cluster.recover(name)
    world.cluster.fail("n9")
    world.cluster.fail("n1")
    world.cluster.fail("n1")

    assert [(0.0, "node-failed", "")] == world.log()


# ----------------------------------------------------------------------------------------------------- cordon and drain


def test_a_node_can_be_cordoned_and_uncordoned_and_each_is_told_once(world):
    for time, what in ((1.0, "cordon"), (2.0, "cordon"), (3.0, "uncordon"), (4.0, "uncordon")):
        world.at(time, getattr(world.cluster, what), "n1")
    world.at(5.0, world.cluster.uncordon, "n9")
    world.env.run()

    assert [(1.0, True), (3.0, False)] == [
        (when, event.node.unschedulable) for when, event in world.heard(events.NodeSeen, since=0.1)
    ]


def test_a_drained_node_is_cordoned_and_its_pods_stop_each_in_its_time(world):
    world.run_on("n1", "quick")
    world.run_on("n1", "slow", stopping=8.0)
    world.run_on("n1", "daemon", owner=Owner("DaemonSet", "logs"))
    world.at(10.0, world.cluster.drain, "n1")
    world.at(11.0, world.cluster.drain, "n9")
    world.env.run()

    assert [(10.0, "pod-removed", "default/quick"), (18.0, "pod-removed", "default/slow")] == world.log(
        trace_records.PodRemoved
    )
    assert world.cluster.nodes["n1"].unschedulable
    assert [PodUid("daemon")] == list(world.cluster.nodes["n1"].pods)
