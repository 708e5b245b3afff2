"""Pods that run, fail, start again, miss their deadline and are told to stop. Stories end in exact logs."""

import pytest

from lamina.model import events
from lamina.model.pod import PodUid
from lamina.testing import a_pod
from lamina.trace import trace_records
from tests.unit.simulator.cluster.world import WEB, World

ENDS = (
    trace_records.PodStarted,
    trace_records.PodRestarted,
    trace_records.PodFinished,
    trace_records.PodFailed,
    trace_records.PodRemoved,
)


@pytest.fixture
def world() -> World:
    made = World(start=0.5)
    made.node("n1", WEB)
    return made


# ------------------------------------------------------------------------------------------------- failures and restarts


@pytest.mark.parametrize(
    ("life", "ends"),
    [
        pytest.param(
            {"seconds": 5.0},
            [(0.5, "pod-started"), (5.5, "pod-finished")],
            id="it ends well",
        ),
        pytest.param(
            {"seconds": 5.0, "failures": 1},
            [(0.5, "pod-started"), (5.5, "pod-failed")],
            id="it fails and is left alone",
        ),
        pytest.param(
            {"seconds": 5.0, "failures": 1, "restart": "OnFailure"},
            # Seen within a second, and half a second to start.
            [(0.5, "pod-started"), (7.0, "pod-restarted"), (12.0, "pod-finished")],
            id="it fails once and is started again at once",
        ),
        pytest.param(
            {"seconds": 5.0, "failures": 3, "restart": "OnFailure"},
            [
                (0.5, "pod-started"),
                (7.0, "pod-restarted"),
                (22.5, "pod-restarted"),  # 12.0 + 10 + 0.5
                (48.0, "pod-restarted"),  # 27.5 + 20 + 0.5
                (53.0, "pod-finished"),
            ],
            id="it fails often: the back-off doubles",
        ),
    ],
)
def test_a_pod_ends_and_starts_again_as_its_life_says(world, life, ends):
    world.run_on("n1", "p", **life)
    world.env.run()

    assert ends == [(when, what) for when, what, _ in world.log(*ENDS)]


def test_a_pod_that_always_restarts_does_so_after_a_good_end_too(world):
    world.run_on("n1", "p", seconds=5.0, restart="Always")
    world.env.run(until=30.0)

    assert [(0.5, "pod-started"), (7.0, "pod-restarted"), (22.5, "pod-restarted")] == [
        (when, what) for when, what, _ in world.log(*ENDS)
    ]
    assert ("restarting", 2) == (world.pod("p").phase, world.pod("p").restarts)


def test_the_back_off_ends_at_its_limit():
    world = World(start=0.0, restart=10.0, restart_most=25.0)
    world.node("n1", WEB)
    world.run_on("n1", "p", seconds=1.0, failures=-1, restart="Always")
    world.env.run(until=100.0)
    starts = [when for when, _, _ in world.log(trace_records.PodStarted, trace_records.PodRestarted)]

    # Between two starts: a second of running and 1, 10, 20, 25, 25 seconds of waiting.
    assert [0.0, 2.0, 13.0, 34.0, 60.0, 86.0] == starts


def test_ten_minutes_of_running_are_forgiveness_enough():
    world = World(start=0.0)
    world.node("n1", WEB)
    world.run_on("n1", "p", seconds=600.0, failures=-1, restart="Always")
    world.env.run(until=2000.0)

    assert [0.0, 601.0, 1202.0, 1803.0] == [
        when for when, _, _ in world.log(trace_records.PodStarted, trace_records.PodRestarted)
    ]


def test_a_failed_pod_says_why_and_is_seen_as_finished(world):
    world.run_on("n1", "p", seconds=5.0, failures=1)
    world.env.run()

    assert [trace_records.PodFailed(5.5, "default/p", "n1", "Error")] == world.records[-1:]
    assert ("failed", "Error", 5.5) == (world.pod("p").phase, world.pod("p").reason, world.pod("p").ended)
    assert world.heard(events.PodSeen)[-1][1].pod.finished
    assert 0 == world.cluster.nodes["n1"].used["cpu"]


def test_a_pod_that_waits_for_its_next_start_keeps_its_room_and_uses_nothing(world):
    world.run_on("n1", "p", seconds=5.0, restart="Always")
    world.env.run(until=6.0)
    node = world.cluster.nodes["n1"]

    assert ("restarting", 1000, {}) == (world.pod("p").phase, node.used["cpu"], node.usage(6.0))


# -------------------------------------------------------------------------------------------------------------- deadline


@pytest.mark.parametrize(
    ("node", "deadline", "failed_at", "started"),
    [
        pytest.param("n1", 20.0, 20.0, 0.5, id="while it runs"),
        pytest.param("cold", 5.0, 5.0, None, id="while its image is pulled"),
        pytest.param("cold", 8.25, 8.25, None, id="while it starts"),
    ],
)
def test_a_deadline_counts_from_the_moment_the_kubelet_took_the_pod(world, node, deadline, failed_at, started):
    world.node("cold")
    world.run_on(node, "p", deadline=deadline)
    world.env.run()
    pod = world.pod("p")

    assert ("failed", "DeadlineExceeded", failed_at, started) == (pod.phase, pod.reason, pod.ended, pod.started)
    assert {"cpu": 0, "pods": 0} == world.cluster.nodes[node].used


def test_a_pod_that_ends_before_its_deadline_never_hears_of_it(world):
    world.run_on("n1", "p", seconds=5.0, deadline=60.0)
    world.env.run()

    assert ("finished", 5.5) == (world.pod("p").phase, world.env.now)


def test_a_pod_past_its_deadline_has_its_grace_to_stop(world):
    world.run_on("n1", "p", deadline=20.0, stopping=8.0, grace=30.0)
    world.env.run()

    assert 28.0 == world.pod("p").ended


# ---------------------------------------------------------------------------------------------------------------- stopping


@pytest.mark.parametrize(
    ("life", "grace", "gone_at"),
    [
        pytest.param({"stopping": 8.0}, 0.0, 10.0, id="no grace: at once"),
        pytest.param({"stopping": 8.0}, 20.0, 20.0, id="8 s to stop and 2 until everybody knows"),
        pytest.param({"stopping": 8.0}, 5.0, 17.0, id="killed after its grace"),
        pytest.param({"stopping": 8.0, "grace": 3.0}, None, 15.0, id="its own grace"),
        pytest.param({}, 30.0, 12.0, id="it stops at once"),
    ],
)
def test_a_pod_takes_as_long_to_stop_as_it_needs_and_may(life, grace, gone_at):
    world = World(start=0.5, stop=2.0)
    world.node("n1", WEB)
    world.run_on("n1", "p", **life)
    world.at(10.0, world.cluster.remove, PodUid("p"), grace)
    world.env.run()

    assert [(gone_at, "pod-removed", "default/p")] == world.log(trace_records.PodRemoved)
    assert [(gone_at, events.PodGone(PodUid("p")))] == world.heard(events.PodGone)


def test_a_pod_that_stops_is_seen_so_and_keeps_its_room(world):
    world.run_on("n1", "p", stopping=8.0)
    world.at(10.0, world.cluster.remove, PodUid("p"), None)
    world.env.run(until=17.0)
    node = world.cluster.nodes["n1"]

    assert [(10.0, True, False)] == [
        (when, event.pod.deleting, event.pod.finished) for when, event in world.heard(events.PodSeen, since=1.0)
    ]
    assert ("stopping", 1000, {"cpu": 1000}) == (world.pod("p").phase, node.used["cpu"], node.usage(17.0))


def test_a_second_removal_changes_nothing_unless_it_is_at_once(world):
    world.run_on("n1", "p", stopping=20.0)
    world.at(10.0, world.cluster.remove, PodUid("p"), None)
    world.at(11.0, world.cluster.remove, PodUid("p"), 5.0)
    world.at(12.0, world.cluster.remove, PodUid("p"))
    world.env.run()

    assert [(12.0, "pod-removed", "default/p")] == world.log(trace_records.PodRemoved)


def test_a_pod_without_a_node_has_nothing_to_stop(world):
    world.cluster.submit(a_pod("p", image="web:1"))
    world.cluster.remove(PodUid("p"), None)

    assert [(0.0, "pod-removed", "default/p")] == world.log(trace_records.PodRemoved)


def test_a_pod_that_still_pulls_is_gone_when_everybody_knows():
    world = World(stop=2.0)
    world.node("n1")
    world.run_on("n1", "p", stopping=8.0)
    world.at(1.0, world.cluster.remove, PodUid("p"), None)
    world.env.run()

    assert [(3.0, "pod-removed", "default/p")] == world.log(trace_records.PodRemoved)
    assert [] == world.log(trace_records.PodStarted)


def test_the_room_of_a_finished_pod_is_free_when_everybody_knows():
    world = World(start=0.5, stop=2.0)
    world.node("n1", WEB)
    world.run_on("n1", "p", seconds=5.0)
    used = []
    world.at(6.0, lambda: used.append(world.cluster.nodes["n1"].used["cpu"]))
    world.env.run()

    assert [1000] == used
    assert [(7.5, "pod-finished", "default/p")] == world.log(trace_records.PodFinished)


def test_a_pod_removed_while_it_finishes_is_removed_when_it_would_have_finished():
    world = World(start=0.5, stop=2.0)
    world.node("n1", WEB)
    world.run_on("n1", "p", seconds=5.0, stopping=60.0)
    world.at(6.0, world.cluster.remove, PodUid("p"), None)
    world.env.run()

    assert [(7.5, "pod-removed", "default/p")] == world.log(trace_records.PodRemoved, trace_records.PodFinished)


def test_drawn_delays_differ_from_pod_to_pod_and_not_from_run_to_run():
    def starts() -> list[float | None]:
        world = World(start=(0.5, 1.0, 2.0, 4.0))
        world.node("n1", WEB)
        for name in ("a", "b", "c", "d"):
            world.run_on("n1", name)
        world.env.run()
        return [world.pod(name).started for name in ("a", "b", "c", "d")]

    assert starts() == starts()
    assert len(set(starts())) > 1
