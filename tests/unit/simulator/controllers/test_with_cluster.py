"""Controllers on a virtual cluster: pods are really pulled, started, lost and stopped. Stories end in exact logs."""

import pytest

from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.trace.trace_records import TraceRecord
from tests.unit.simulator.controllers.placing import World


def test_a_dropped_node_s_pods_come_back_elsewhere():
    world = World("n1", "n2")
    world.add("Deployment", replicas=2)
    world.env.at(20.0, world.cluster.drop, "n1")

    assert [
        (0.0, "pod-arrived", "app-1"),
        (0.0, "pod-arrived", "app-2"),
        (8.5, "pod-started", "app-1"),  # 800 bytes at 100 a second
        (8.5, "pod-started", "app-2"),
        (20.0, "pod-removed", "app-1"),
        (20.0, "pod-removed", "app-2"),
        (20.0, "pod-arrived", "app-3"),
        (20.0, "pod-arrived", "app-4"),
        (28.5, "pod-started", "app-3"),
        (28.5, "pod-started", "app-4"),
    ] == world.log()


def test_a_rollout_pulls_the_new_version_before_old_pods_go():
    world = World("n1", "n2")
    world.add("Deployment", replicas=1)
    world.env.at(20.0, world.controllers.update, "app", "app:2")

    assert [
        (20.0, "pod-arrived", "app-2"),
        (21.5, "pod-started", "app-2"),  # the base is there
        (21.5, "pod-removed", "app-1"),
    ] == world.log(20.0)


def test_a_stateful_set_waits_until_a_pod_has_stopped():
    world = World("n1", "n2")
    world.add("StatefulSet", PodLifecycle(stopping=5.0), replicas=1)
    world.env.at(20.0, world.controllers.update, "app", "app:2")

    assert [
        (25.0, "pod-removed", "app-0"),
        (25.0, "pod-arrived", "app-0"),
        (26.5, "pod-started", "app-0"),
    ] == world.log(20.0)


def test_a_daemon_set_follows_the_nodes_and_stays_through_a_drain():
    world = World("n1")
    world.add("DaemonSet")
    world.env.at(20.0, world.join, "n2")
    world.env.at(30.0, world.cluster.drain, "n2")
    world.env.at(40.0, world.cluster.drop, "n1")

    assert [
        (0.0, "pod-arrived", "app-1"),
        (8.5, "pod-started", "app-1"),
        (20.0, "pod-arrived", "app-2"),
        (28.5, "pod-started", "app-2"),
        (40.0, "pod-removed", "app-1"),
    ] == world.log()


def test_a_job_goes_on_after_a_failure_until_it_is_done():
    world = World("n1", "n2")
    world.add("Job", PodLifecycle(seconds=10.0), replicas=2)
    world.env.at(15.0, world.cluster.drop, "n1")

    assert [
        (0.0, "pod-arrived", "app-1"),
        (8.5, "pod-started", "app-1"),
        (15.0, "pod-removed", "app-1"),
        (25.0, "pod-arrived", "app-2"),
        (33.5, "pod-started", "app-2"),
        (43.5, "pod-finished", "app-2"),
        (43.5, "pod-arrived", "app-3"),
        (44.0, "pod-started", "app-3"),
        (54.0, "pod-finished", "app-3"),
    ] == world.log()


def test_pods_of_a_node_that_failed_are_replaced_when_they_are_given_up():
    """Forty seconds until it is noticed, three hundred more until the pods go."""
    world = World("n1", "n2")
    world.add("Deployment", replicas=1)
    world.env.at(20.0, world.cluster.fail, "n1")
    world.env.at(300.0, world.cluster.cordon, "n1")

    assert [
        (360.0, "pod-evicted", "app-1"),
        (360.0, "pod-arrived", "app-2"),
        (368.5, "pod-started", "app-2"),
    ] == world.log(20.0)


@pytest.mark.parametrize(("restart", "ends"), [("Never", "pod-failed"), ("OnFailure", "pod-finished")])
def test_a_job_whose_pods_fail_at_first(restart, ends):
    """With ``Never`` each failure is a pod of its own; with ``OnFailure`` the same pod tries again."""
    world = World("n1")
    world.add("Job", PodLifecycle(seconds=1.0, failures=1, restart=restart), backoff_limit=1)
    told = [line for line in world.log() if line[1] in ("pod-failed", "pod-finished")]

    assert ends == told[-1][1]
    assert (2 if restart == "Never" else 1) == len(told)


def test_the_same_story_is_told_the_same_way_twice():
    def story() -> list[TraceRecord]:
        world = World("n1", "n2", "n3")
        world.add("Deployment", PodLifecycle(stopping=3.0), replicas=4)
        world.env.at(9.0, world.controllers.update, "app", "app:2")
        world.env.at(11.0, world.cluster.drop, "n2")
        world.env.at(12.0, world.controllers.scale, "app", 3)
        world.log()
        return world.records

    assert story() == story()
