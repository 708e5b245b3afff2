"""Kubelets at work: what happens to pods and images, and what a scheduler hears of it. Stories end in exact logs."""

import msgspec
import pytest

from lamina.model import events
from lamina.model.errors import WiringError
from lamina.model.pod import PodUid
from lamina.testing import a_pod
from lamina.trace import trace_records
from tests.unit.simulator.cluster.world import WEB, World


@pytest.fixture
def world() -> World:
    return World()


# ---------------------------------------------------------------------------------------------------------- pods come


def test_a_pod_is_pulled_started_and_finishes(world):
    world.node()
    world.run_on("n1", "p", seconds=60.0)
    world.env.run()

    assert [
        (0.0, "pod-bound", "default/p"),
        (0.0, "pull-started", "web:1"),
        (8.0, "layer-pulled", ""),  # 600 and 200 bytes at 100 a second
        (8.0, "layer-pulled", ""),
        (8.0, "pull-done", "web:1"),
        (8.5, "pod-started", "default/p"),
        (68.5, "pod-finished", "default/p"),
    ] == world.log()
    pod = world.cluster.pods[PodUid("p")]
    assert ("finished", "n1", 0.0, 0.0, 0.0, 8.5, 68.5) == (
        pod.phase,
        pod.node,
        pod.arrived,
        pod.bound,
        pod.pull_began,
        pod.started,
        pod.ended,
    )
    assert (800, 800) == (pod.wanted_bytes, pod.pulled_bytes)


def test_a_pod_whose_image_is_there_only_has_to_start(world):
    world.node("n1", WEB)
    world.run_on("n1", "p")
    world.env.run()

    assert [(0.0, "pod-bound", "default/p"), (0.5, "pod-started", "default/p")] == world.log()
    assert (None, 0) == (world.cluster.pods[PodUid("p")].pull_began, world.cluster.pods[PodUid("p")].pulled_bytes)


def test_init_images_come_first_and_an_image_used_twice_is_pulled_once(world):
    world.node()
    world.run_on("n1", "p", images=["web:1", "tool:1", "web:1"], init=["api:1"])
    world.env.run()

    assert [
        (7.0, "pull-done", "api:1"),  # 700 bytes
        (9.0, "pull-done", "web:1"),  # 200 more: the base is there
        (9.5, "pull-done", "tool:1"),
        (10.0, "pod-started", "default/p"),
    ] == world.log(trace_records.PullDone, trace_records.PodStarted)


def test_pods_of_one_node_wait_for_each_other_s_pulls(world):
    """One image at a time: the small one that came second waits for the large one."""
    world.node()
    world.run_on("n1", "large", "web:1")
    world.run_on("n1", "small", "tool:1")
    world.env.run()

    assert [(8.5, "pod-started", "default/large"), (9.0, "pod-started", "default/small")] == world.log(
        trace_records.PodStarted
    )
    assert [8.0, 8.5] == [one.seconds for one in world.records if isinstance(one, trace_records.PullDone)]


def test_pods_of_different_nodes_do_not(world):
    world.node("n1")
    world.node("n2")
    world.run_on("n1", "large", "web:1")
    world.run_on("n2", "small", "tool:1")
    world.env.run()

    assert [(1.0, "pod-started", "default/small"), (8.5, "pod-started", "default/large")] == world.log(
        trace_records.PodStarted
    )


@pytest.mark.parametrize(
    ("node", "phase"),
    [pytest.param("n1", "running", id="a node that is there"), pytest.param("n9", "pending", id="one that is not")],
)
def test_a_pod_that_names_its_node_needs_no_scheduler(world, node, phase):
    world.node("n1", WEB)
    world.cluster.submit(a_pod("p", image="web:1", on=node))
    world.env.run()

    assert phase == world.pod("p").phase


def test_an_image_goes_by_all_spellings_of_its_name(world):
    world.node()

    assert "" == world.run_on("n1", "p", "docker.io/library/web:1")


# ----------------------------------------------------------------------------------------------------------- admission


@pytest.mark.parametrize(
    ("pods", "second", "reason"),
    [
        pytest.param(10, {"cpu": 2}, "OutOfcpu", id="cpu"),
        pytest.param(10, {"memory": "6Gi"}, "OutOfmemory", id="memory"),
        pytest.param(1, {}, "OutOfpods", id="pods"),
        pytest.param(10, {"more": {"nvidia.com/gpu": 1}}, "OutOfnvidia.com/gpu", id="an extended resource"),
    ],
)
def test_a_kubelet_refuses_what_does_not_fit_in_kubelet_s_words(pods, second, reason):
    world = World()
    world.node("n1", WEB, pods=pods)
    world.run_on("n1", "first", cpu=3, memory="4Gi")
    world.run_on("n1", "second", **second)
    world.env.run()

    assert [trace_records.PodRejected(0.0, "default/second", "n1", reason)] == [
        one for one in world.records if isinstance(one, trace_records.PodRejected)
    ]
    assert ("rejected", 0.0) == (
        world.cluster.pods[PodUid("second")].phase,
        world.cluster.pods[PodUid("second")].ended,
    )
    assert [PodUid("first")] == list(world.cluster.nodes["n1"].pods)


def test_a_refused_pod_is_seen_as_finished(world):
    world.node("n1", WEB)
    world.run_on("n1", "p", cpu=5)

    assert [("", False), ("n1", False), ("n1", True)] == [
        (event.pod.node_name, event.pod.finished) for _, event in world.heard(events.PodSeen)
    ]


def test_room_is_free_again_when_a_pod_has_finished(world):
    world.node("n1", WEB)
    world.run_on("n1", "first", cpu=4, seconds=10.0)
    world.at(11.0, world.run_on, "n1", "second")
    world.env.run()

    assert [(0.5, "pod-started", "default/first"), (11.5, "pod-started", "default/second")] == world.log(
        trace_records.PodStarted
    )


@pytest.mark.parametrize(
    ("pod", "node", "reason"),
    [
        pytest.param("nobody", "n1", "the pod is gone", id="a pod nobody knows"),
        pytest.param("removed", "n1", "the pod is gone", id="a pod that was removed"),
        pytest.param("bound", "n1", "the pod is already bound to n1", id="a pod that has a node"),
        pytest.param("free", "n9", "the node is gone", id="a node nobody knows"),
        pytest.param("free", "n1", "", id="nothing wrong"),
    ],
)
def test_a_binding_is_refused_when_it_makes_no_sense(world, pod, node, reason):
    world.node()
    world.run_on("n1", "bound")
    world.cluster.submit(a_pod("removed", image="web:1"))
    world.cluster.remove(PodUid("removed"))
    world.cluster.submit(a_pod("free", image="web:1"))

    assert reason == world.cluster.bind(PodUid(pod), node)


# ----------------------------------------------------------------------------------------------------- pods are removed


def test_removing_a_pod_that_pulls_frees_its_room_and_the_pull_goes_on(world):
    world.node()
    world.run_on("n1", "p", images=["web:1", "tool:1"])
    world.at(1.0, world.cluster.remove, PodUid("p"))
    world.env.run()

    assert [
        (0.0, "pod-bound", "default/p"),
        (0.0, "pull-started", "web:1"),
        (1.0, "pod-removed", "default/p"),
        (8.0, "layer-pulled", ""),
        (8.0, "layer-pulled", ""),
        (8.0, "pull-done", "web:1"),
    ] == world.log()
    assert 0 == world.cluster.nodes["n1"].used["cpu"]
    assert 800 == world.cluster.pods[PodUid("p")].pulled_bytes


def test_removing_a_pod_that_waits_for_its_turn_withdraws_its_pull(world):
    world.node()
    world.run_on("n1", "first", "api:1")
    world.run_on("n1", "second", "tool:1")
    world.at(1.0, world.cluster.remove, PodUid("second"))
    world.env.run()

    assert [(7.0, "pull-done", "api:1")] == world.log(trace_records.PullDone)


@pytest.mark.parametrize(
    "moment",
    [pytest.param(8.25, id="while it starts"), pytest.param(20.0, id="while it runs")],
)
def test_a_removed_pod_does_nothing_more(world, moment):
    world.node()
    world.run_on("n1", "p", seconds=60.0)
    world.at(moment, world.cluster.remove, PodUid("p"))
    world.env.run()

    assert (moment, "pod-removed", "default/p") == world.log()[-1]
    assert {"cpu": 0, "pods": 0} == world.cluster.nodes["n1"].used
    assert [events.PodGone(PodUid("p"))] == [event for _, event in world.heard(events.PodGone)]


def test_a_pod_that_waits_for_a_node_can_be_removed(world):
    world.cluster.submit(a_pod("p", image="web:1"))
    world.cluster.remove(PodUid("p"))

    assert [trace_records.PodRemoved(0.0, "default/p", "")] == world.records[1:]


def test_removing_what_has_ended_or_never_was_changes_nothing(world):
    world.node("n1", WEB)
    world.run_on("n1", "p", seconds=1.0)
    world.env.run()
    before = len(world.records)
    world.cluster.remove(PodUid("p"))
    world.cluster.remove(PodUid("nobody"))

    assert before == len(world.records)


# ------------------------------------------------------------------------------------------------ what a scheduler hears


def test_a_node_joins_with_all_it_holds(world):
    world.node("n1", WEB)
    (_, seen), (_, reported) = world.told

    assert ["docker.io/library/web:1"] == [image.names[-1] for image in seen.node.images]
    assert [WEB.digest] == [image.digest for image in reported.report.images]


def test_an_image_that_was_there_is_no_news(world):
    world.node()
    world.run_on("n1", "p")
    world.run_on("n1", "q")
    world.env.run()

    assert [9.0] == [when for when, _ in world.heard(events.LayersReported, since=0.1)]


def test_a_cordoned_node_is_seen_so_at_once_and_keeps_its_pods(world):
    world.node("n1", WEB)
    world.run_on("n1", "p")
    world.at(5.0, world.cluster.cordon, "n1")
    world.at(6.0, world.cluster.cordon, "n9")
    world.env.run()

    assert [(5.0, True, 1)] == [
        (when, event.node.unschedulable, len(event.node.images))
        for when, event in world.heard(events.NodeSeen, since=0.1)
    ]
    assert "running" == world.cluster.pods[PodUid("p")].phase


# ------------------------------------------------------------------------------------------------------ nodes come and go


def test_a_node_that_leaves_takes_its_pods_and_its_downloads_along(world):
    world.node()
    world.run_on("n1", "p")
    world.at(7.0, world.cluster.drop, "n1")
    world.at(8.0, world.cluster.drop, "n1")
    world.env.run()

    assert [
        (0.0, "pod-bound", "default/p"),
        (0.0, "pull-started", "web:1"),
        (7.0, "pod-removed", "default/p"),
        (7.0, "layer-pulled", ""),  # it was there at 6; said when the pull broke off
        (7.0, "node-left", ""),
    ] == world.log()
    assert {} == world.cluster.nodes
    assert [600] == [kubelet.puller.pulled_bytes for kubelet in world.cluster.kubelets.values()]


def test_nothing_is_heard_of_a_node_after_it_left(world):
    world.node()
    world.run_on("n1", "p")  # The image is there at 8.0; the report would come at 9.0, the status at 18.0.
    world.at(8.5, world.cluster.drop, "n1")
    world.env.run()

    assert (8.5, events.NodeGone("n1")) == world.told[-1]


def test_a_name_is_given_once(world):
    world.node()

    with pytest.raises(WiringError, match="second node 'n1'"):
        world.node()


def test_a_uid_is_given_once(world):
    world.cluster.submit(a_pod("p", image="web:1"))

    with pytest.raises(WiringError, match="second pod with the uid 'p'"):
        world.cluster.submit(a_pod("p", image="web:1"))


def test_an_image_nobody_has_is_a_mistake_of_whoever_submits(world):
    with pytest.raises(WiringError, match="no registry has the image 'nothing:1'"):
        world.cluster.submit(a_pod("p", image="nothing:1"))


def test_what_is_seen_of_a_pod_says_when_it_was_bound_ready_and_ended(world):
    """100 bytes a second: the images of 800 bytes are there after 8 s, the containers run half a second later."""
    world.node("n1")
    world.at(1.0, world.run_on, "n1", "p")
    world.env.run(until=20.0)
    before = world.pod("p").pod
    world.cluster.remove(PodUid("p"), 30.0)

    assert (1.0, True, 9.5, False, 0.0) == (
        before.bound_at,
        before.ready,
        before.ready_at,
        before.finished,
        before.deleting_since,
    )
    assert (True, 20.0) == (world.pod("p").pod.deleting, world.pod("p").pod.deleting_since)


@pytest.mark.parametrize(("failures", "failed"), [pytest.param(0, False, id="well"), pytest.param(1, True, id="badly")])
def test_what_is_seen_of_a_pod_that_ended_says_how_and_when(world, failures, failed):
    world.node("n1")
    world.run_on("n1", "p", seconds=2.0, failures=failures, restart="Never")
    world.env.run()
    seen = world.pod("p").pod

    # 8 s of pulling, half a second to start, and 2 s of running.
    assert (True, failed, 10.5, False) == (seen.finished, seen.failed, seen.ended_at, seen.ready)


@pytest.mark.parametrize(
    ("failed", "record", "phase"),
    [
        pytest.param(False, "pod-finished", "finished", id="well"),
        pytest.param(True, "pod-failed", "failed", id="badly"),
    ],
)
def test_a_pod_can_be_ended_from_outside_as_if_its_containers_had_ended(world, failed, record, phase):
    node = world.node("n1")
    world.run_on("n1", "p")
    world.at(20.0, lambda: world.cluster.finish(PodUid("p"), failed=failed))
    world.at(30.0, lambda: world.cluster.finish(PodUid("p"), failed=not failed))
    world.env.run()

    assert [(8.5, "pod-started", "default/p"), (20.0, record, "default/p")] == world.log()[-2:]
    assert (phase, 20.0, {}) == (world.pod("p").phase, world.pod("p").ended, node.pods)


def test_a_pod_that_still_pulls_can_be_ended_and_one_without_a_node_cannot(world):
    world.node("n1")
    world.run_on("n1", "p", seconds=60.0)
    world.cluster.submit(a_pod("q", image="web:1"))
    for name in "pq":
        world.at(3.0, lambda name=name: world.cluster.finish(PodUid(name)))
    world.env.run()

    assert ("finished", "pending") == (world.pod("p").phase, world.pod("q").phase)
    assert [] == world.log(trace_records.PodStarted)


def test_scheduling_gates_are_removed_once_and_seen(world):
    world.cluster.submit(msgspec.structs.replace(a_pod("p", image="web:1"), gates=("wait",)))
    world.at(5.0, world.cluster.ungate, PodUid("p"))
    world.at(6.0, world.cluster.ungate, PodUid("p"))
    world.env.run()

    assert [(0.0, ("wait",)), (5.0, ())] == [(when, seen.pod.gates) for when, seen in world.heard(events.PodSeen)]
