"""What a scheduler hears of a node's images, and how late."""

import pytest

from lamina.model import events
from lamina.model.layer_report import ActivePull
from lamina.simulator.pulls.runtime_spec import DiskSpec, RuntimeSpec
from tests.unit.simulator.cluster.world import API, WEB, World


def names(report) -> list[str]:
    return [image.names[0] for image in report.images]


def test_a_report_comes_its_delay_after_a_change_and_shows_the_node_as_it_is_then():
    world = World(report=1.0, status=10.0)
    world.node()
    world.run_on("n1", "p", images=["api:1", "tool:1"])  # There at 7.0 and at 7.5.
    world.env.run()

    assert [(8.0, ["api:1", "tool:1"])] == [
        (when, names(event.report)) for when, event in world.heard(events.LayersReported, since=0.1)
    ]
    assert [(17.0, [700, 50])] == [
        (when, [image.size for image in event.node.images]) for when, event in world.heard(events.NodeSeen, since=0.1)
    ]


@pytest.mark.parametrize(
    ("gap", "told"),
    [
        pytest.param(
            0.0, [(7.1, ["api:1"]), (7.6, ["api:1", "tool:1"]), (9.6, ["api:1", "tool:1", "web:1"])], id="none"
        ),
        pytest.param(
            2.0, [(7.1, ["api:1"]), (9.1, ["api:1", "tool:1"]), (11.1, ["api:1", "tool:1", "web:1"])], id="2 s"
        ),
        pytest.param(10.0, [(10.0, ["api:1", "tool:1", "web:1"])], id="10 s, the first report counted"),
    ],
)
def test_reports_of_a_node_keep_their_distance_and_lose_nothing(gap, told):
    world = World(report=0.1, report_gap=gap)
    world.node()
    world.run_on("n1", "p", images=["api:1", "tool:1", "web:1"])  # There at 7.0, 7.5 and 9.5.
    world.env.run()

    assert told == [
        (pytest.approx(when), names(event.report)) for when, event in world.heard(events.LayersReported, since=0.1)
    ]


def test_reports_say_what_the_runtime_and_the_disk_are_like():
    world = World(uplinks={"edge": 40.0})
    runtime = RuntimeSpec(reuse="prefix", unpack_rate=50.0, unpack_threads=2, disk_rate=80.0, ratio=1.0)
    world.node("n1", WEB, runtime=runtime, disk=DiskSpec(capacity=10_000), uplink="edge")
    ((_, event),) = world.heard(events.LayersReported)
    report = event.report

    # The uplink lets less through than the node could take, the disk less than two threads could write.
    assert ("prefix", 40.0, 80.0, 10_000, 9_200) == (
        report.reuse,
        report.download_rate,
        report.unpack_rate,
        report.disk,
        report.disk_free,
    )


def test_reports_say_what_the_connections_of_a_pull_get_where_that_is_less_than_the_link():
    world = World()
    world.node("n1", WEB, runtime=RuntimeSpec(connection_rate=3.0, slots=2))
    ((_, event),) = world.heard(events.LayersReported)

    assert 6.0 == event.report.download_rate


@pytest.mark.parametrize(
    ("share", "lazy"), [pytest.param(None, False, id="whole"), pytest.param(0.1, True, id="lazily")]
)
def test_reports_say_which_images_are_mounted_before_they_are_whole(share, lazy):
    world = World()
    world.node("n1", WEB, runtime=RuntimeSpec(lazy=share))
    world.node("n2", WEB)

    assert {"n1": [lazy], "n2": [False]} == {
        event.report.node: [image.lazy for image in event.report.images]
        for _, event in world.heard(events.LayersReported)
    }


def test_reports_say_what_is_being_pulled():
    world = World(report=1.0)
    world.node()
    world.run_on("n1", "p", "tool:1")
    world.run_on("n1", "q", "web:1")
    world.env.run(until=2.0)

    assert [(1.5, (ActivePull("web:1", WEB.digest, 0, 800),))] == [
        (when, event.report.pulling) for when, event in world.heard(events.LayersReported, since=0.1)
    ]


def test_a_node_that_joins_later_is_seen_at_once_and_reported_like_any_other():
    world = World(report=1.0)
    world.at(5.0, world.node, "n1", WEB)
    world.env.run()

    assert [(5.0, 1)] == [(when, len(event.node.images)) for when, event in world.heard(events.NodeSeen)]
    assert [(6.0, ["web:1"])] == [(when, names(event.report)) for when, event in world.heard(events.LayersReported)]


def test_images_that_were_cleared_away_are_gone_from_the_next_report_and_status():
    world = World(report=1.0, status=10.0)
    node = world.node("n1", WEB, API)
    world.at(5.0, node.store.remove, WEB.digest)
    world.at(5.0, world.cluster.kubelets["n1"].images_removed, (WEB,), 200, "collected")
    world.env.run()

    assert [(6.0, ["api:1"])] == [
        (when, names(event.report)) for when, event in world.heard(events.LayersReported, since=0.1)
    ]
    assert [(15.0, 1)] == [(when, len(event.node.images)) for when, event in world.heard(events.NodeSeen, since=0.1)]
