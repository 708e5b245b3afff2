"""What nodes are really used for: the last measurement, and who came or left since."""

import math
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from lamina.model.events import Event, NodeGone, NodeSeen, PodGone, PodSeen, TimePassed, UsageReported
from lamina.model.node_usage import NodeUsage, ResourceUsage
from lamina.model.pod import PodUid
from lamina.model.resources import CPU, MEMORY
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.state.cluster_usage import MOST_EARLY, MOST_GONE, MeasuredUsage, declared_cpu
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.view import everything
from lamina.testing.builders import a_node, a_pod
from lamina.wire.kube.codec import decode_pod

GB = 10**9
STAMP = "example.com/observed-at"


def a_measurement(node: str = "n1", cpu: float = 1000.0, *, since: float = 0.0, until: float = 100.0) -> NodeUsage:
    return NodeUsage(node, ResourceUsage(cpu, 50.0), ResourceUsage(2.0 * GB, 0.5 * GB), since, until)


def told(*happened: Event) -> Loop:
    loop = Loop(lambda _: {}, lambda _: 0)
    loop.take(NodeSeen(a_node("n1")), TimePassed(100.0), *happened)
    return loop


def cpu_of(loop: Loop) -> MeasuredUsage:
    return loop.cluster.usage.of(everything(loop.cluster.columns), CPU)


def means_of(loop: Loop) -> tuple[float, float]:
    """The use of n1: cpu in thousandths, memory in GB."""
    usage, view = loop.cluster.usage, everything(loop.cluster.columns)
    return usage.of(view, CPU).mean.item(0), usage.of(view, MEMORY).mean.item(0) / GB


def test_what_was_measured_is_what_is_known() -> None:
    loop = told(UsageReported((a_measurement(),)))
    memory = loop.cluster.usage.of(everything(loop.cluster.columns), MEMORY)

    assert ([1000.0], [50.0], [1.0]) == (
        cpu_of(loop).mean.tolist(),
        cpu_of(loop).deviation.tolist(),
        cpu_of(loop).trust.tolist(),
    )
    assert ([2.0 * GB], [0.5 * GB]) == (memory.mean.tolist(), memory.deviation.tolist())


def test_of_a_node_that_nobody_measured_nothing_is_known() -> None:
    measured = cpu_of(told())

    assert ([0.0], [0.0]) == (measured.mean.tolist(), measured.trust.tolist())
    assert math.isnan(measured.forecast[0])


def test_a_measurement_may_come_before_its_node() -> None:
    loop = told(UsageReported((a_measurement("late"),)), NodeSeen(a_node("late")))

    assert [0.0, 1000.0] == cpu_of(loop).mean.tolist()
    assert [0.0, 1.0] == cpu_of(loop).trust.tolist()


def test_a_pod_that_does_not_run_yet_counts_with_all_it_asks_for() -> None:
    loop = told(UsageReported((a_measurement(),)), PodSeen(a_pod("p", "500m", "700M", on="n1")))

    assert pytest.approx((1500.0, 2.7)) == means_of(loop)


def test_a_pod_that_runs_when_it_is_first_seen_is_in_the_measurement() -> None:
    loop = told(UsageReported((a_measurement(),)), PodSeen(a_pod("p", cpu="500m", on="n1", started=True)))

    assert [1000.0] == cpu_of(loop).mean.tolist()


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        pytest.param(0.0, 110.0, (1500.0, 2.7), id="after the window: in full"),
        pytest.param(100.0, 140.0, (1250.0, 2.35), id="in the middle of it: by half"),
        pytest.param(120.0, 220.0, (1000.0, 2.0), id="before it: not at all, it was measured"),
    ],
)
def test_a_pod_counts_for_the_part_of_the_window_it_did_not_run_in(
    since: float, until: float, expected: tuple[float, float]
) -> None:
    loop = told(
        UsageReported((a_measurement(),)),
        PodSeen(a_pod("p", "500m", "700M", on="n1")),
        TimePassed(120.0),
        PodSeen(a_pod("p", "500m", "700M", on="n1", started=True)),
        TimePassed(300.0),
        UsageReported((a_measurement(since=since, until=until),)),
    )

    assert pytest.approx(expected) == means_of(loop)


def test_a_pod_that_asks_for_something_else_counts_with_that() -> None:
    loop = told(
        UsageReported((a_measurement(),)),
        PodSeen(a_pod("p", "500m", "700M", on="n1")),
        PodSeen(a_pod("p", "800m", "100M", on="n1")),
    )

    assert pytest.approx((1800.0, 2.1)) == means_of(loop)


# ------------------------------------------------------------------------------------------- who was there before anybody


@pytest.mark.parametrize(
    ("started_at", "expected"),
    [
        pytest.param(None, (1500.0, 2.7), id="it does not run yet"),
        pytest.param(0.0, (1000.0, 2.0), id="nobody says since when it runs"),
        pytest.param(80.0, (1400.0, 2.56), id="it runs since the last fifth of the window"),
    ],
)
@pytest.mark.parametrize("order", ["seen first", "measured first", "seen before its node"])
def test_who_came_before_a_node_was_measured_counts_for_what_is_missing(
    order: str, started_at: float | None, expected: tuple[float, float]
) -> None:
    pod = a_pod("p", "500m", "700M", on="n1", started=started_at is not None)
    seen, measured = PodSeen(replace(pod, started_at=started_at or 0.0)), UsageReported((a_measurement(),))
    happened: Sequence[Event] = [seen, measured]
    if order == "measured first":
        happened = [measured, seen]
    elif order == "seen before its node":
        happened = [NodeGone("n1"), seen, measured, NodeSeen(a_node("n1"))]

    assert pytest.approx(expected) == means_of(told(*happened))


def test_a_pod_that_the_api_says_runs_for_a_minute_counts_for_the_rest_of_the_window() -> None:
    """After a restart nobody has seen it begin. It runs since 01:00:40 in a window from 01:00:00 to 01:01:40: two fifths."""
    pod = decode_pod(
        b"""{"metadata": {"name": "p", "uid": "p"}, "status": {"phase": "Running", "startTime": "1970-01-01T01:00:40Z"},
        "spec": {"nodeName": "n1", "containers": [{"resources": {"requests": {"cpu": "500m", "memory": "700M"}}}]}}"""
    )
    loop = told(TimePassed(3700.0), PodSeen(pod), UsageReported((a_measurement(since=3600.0, until=3700.0),)))

    assert pytest.approx((1200.0, 2.28)) == means_of(loop)


def test_who_is_on_a_node_that_comes_back_counts() -> None:
    loop = told(
        UsageReported((a_measurement(),)),
        PodSeen(a_pod("p", "500m", "700M", on="n1")),
        NodeGone("n1"),
        NodeSeen(a_node("n1")),
        UsageReported((a_measurement(),)),
    )

    assert pytest.approx((1500.0, 2.7)) == means_of(loop)


# --------------------------------------------------------------------------------------------------------------- leaving


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        pytest.param(0.0, 100.0, (700.0, 1.2), id="after the window: all it asked for is free again"),
        pytest.param(0.0, 200.0, (820.0, 1.52), id="in the middle of it: by the part it still ran in"),
        pytest.param(130.0, 200.0, (1000.0, 2.0), id="before it: the measurement does not have it any more"),
    ],
)
def test_a_pod_that_left_is_taken_off_for_the_part_of_the_window_it_ran_in(
    since: float, until: float, expected: tuple[float, float]
) -> None:
    loop = told(
        PodSeen(a_pod("p", "300m", "800M", on="n1", started=True)),
        UsageReported((a_measurement(),)),
        TimePassed(120.0),
        PodGone(PodUid("p")),
        UsageReported((a_measurement(since=since, until=until),)),
    )

    assert pytest.approx(expected) == means_of(loop)


@pytest.mark.parametrize(
    ("until", "expected"),
    [
        # 1000 · 3000/4000 and 2 · 3/4 are taken off.
        pytest.param(100.0, (250.0, 0.5), id="after the window"),
        # It ran for 60 %: 1000 · 1800/2800 and 2 · 1.8/2.8.
        pytest.param(200.0, (357.142857, 0.714286), id="in the middle of it"),
    ],
)
def test_a_pod_that_left_takes_no_more_along_than_its_share_by_requests(
    until: float, expected: tuple[float, float]
) -> None:
    """It asked for 3 cpu and 3 GB, one that stays for 1 of each; who of them used what is not known."""
    loop = told(
        PodSeen(a_pod("leaves", 3, "3G", on="n1", started=True)),
        PodSeen(a_pod("stays", 1, "1G", on="n1", started=True)),
        UsageReported((a_measurement(),)),
        TimePassed(120.0),
        PodGone(PodUid("leaves")),
        UsageReported((a_measurement(until=until),)),
    )

    assert pytest.approx(expected) == means_of(loop)


def test_who_left_hides_nobody_who_came() -> None:
    """All that was measured may have been used by the one that left; what the other asks for comes on top."""
    loop = told(
        PodSeen(a_pod("leaves", 3, "3G", on="n1", started=True)),
        UsageReported((a_measurement(),)),
        PodGone(PodUid("leaves")),
        PodSeen(a_pod("comes", "400m", "300M", on="n1")),
    )

    assert pytest.approx((400.0, 0.3)) == means_of(loop)


def test_a_pod_that_came_and_left_is_taken_off_for_the_part_it_ran_in() -> None:
    """From 120 to 150 of a window from 100 to 200: 30 % of 500 and 0.7, and of that which is left its share, 1."""
    loop = told(
        UsageReported((a_measurement(),)),
        PodSeen(a_pod("p", "500m", "700M", on="n1")),
        TimePassed(120.0),
        PodSeen(a_pod("p", "500m", "700M", on="n1", started=True)),
        TimePassed(150.0),
        PodGone(PodUid("p")),
        UsageReported((a_measurement(since=100.0, until=200.0),)),
    )

    assert pytest.approx((850.0, 1.79)) == means_of(loop)


def test_a_pod_that_leaves_before_it_ran_leaves_no_trace() -> None:
    loop = told(UsageReported((a_measurement(),)), PodSeen(a_pod("p", cpu="500m", on="n1")), PodGone(PodUid("p")))

    assert [1000.0] == cpu_of(loop).mean.tolist()


def test_use_is_never_below_nothing() -> None:
    loop = told(
        PodSeen(a_pod("p", cpu=3, on="n1", started=True)), UsageReported((a_measurement(),)), PodGone(PodUid("p"))
    )

    assert [0.0] == cpu_of(loop).mean.tolist()


def test_an_older_measurement_does_not_replace_a_newer_one() -> None:
    loop = told(UsageReported((a_measurement(),)), UsageReported((a_measurement(cpu=1.0, until=99.0),)))

    assert [1000.0] == cpu_of(loop).mean.tolist()


def test_a_measurement_that_should_have_been_renewed_is_believed_less_and_in_the_end_not_at_all() -> None:
    usage = NodeUsage("n1", ResourceUsage(1000.0), None, 0.0, 100.0, renews_within=60.0)
    loop = told(UsageReported((usage,)))
    trust = []
    for now in (200.0, 280.0, 340.0, 1000.0):
        loop.take(TimePassed(now))
        trust.append(round(cpu_of(loop).trust.item(0), 3))

    assert [1.0, 0.5, 0.25, 0.0] == trust


def test_who_is_believed_less_is_noted_until_nothing_is_believed() -> None:
    renewed = (a_measurement(), NodeUsage("n2", ResourceUsage(1.0), None, 0.0, 100.0, renews_within=60.0))
    loop = told(NodeSeen(a_node("n2")), UsageReported(renewed))
    usage, log = loop.cluster.usage, loop.cluster.columns.logs[Facet.USAGE]
    noted: list[tuple[bool, list[int] | None]] = []
    # In doubt from 220 on, and not believed at all from 460 on.
    for now in (200.0, 230.0, 240.0, 300.0, 500.0, 600.0, 700.0):
        position = log.position
        noted.append((usage.pass_time(now), log.since(position)))

    less: tuple[bool, list[int]] = (True, [1])
    assert [(False, []), less, (False, []), less, less, (False, []), (False, [])] == noted


# ----------------------------------------------------------------------------------------------------------- annotations


def test_annotations_are_believed_as_far_as_their_stamp_is_fresh() -> None:
    """In full for twice the ten minutes within which they are renewed, then half as much every ten minutes, four times."""
    stamps = {"n2": "1970-01-01T01:00:00Z", "n3": "1970-01-01T01:10:00+00:00", "n4": "some day"}
    loop = told(*(NodeSeen(a_node(name, annotations={STAMP: stamp})) for name, stamp in stamps.items()))
    usage, log = loop.cluster.usage, loop.cluster.columns.logs[Facet.ANNOTATIONS]
    seen = []
    for now in (3600.0, 4800.0, 5400.0, 6000.0, 7200.0, 9000.0, 9600.0):
        position = log.position
        told_so = usage.pass_time(now)
        assert told_so == bool(log.since(position))
        seen.append(usage.dated(everything(loop.cluster.columns), STAMP).tolist())

    assert [
        [1.0, 1.0, 1.0, 1.0],
        [1.0, 1.0, 1.0, 1.0],
        [1.0, 0.5, 1.0, 1.0],
        [1.0, 0.25, 0.5, 1.0],
        [1.0, 0.0, 0.125, 1.0],
        [1.0, 0.0, 0.0, 1.0],
        [1.0, 0.0, 0.0, 1.0],
    ] == seen


def test_a_stamp_far_ahead_is_believed_no_more_than_one_as_far_behind() -> None:
    stamps = ["1970-01-01T00:20:00Z", "1970-01-01T00:30:00Z", "2999-01-01T00:00:00Z"]
    loop = told(*(NodeSeen(a_node(stamp, annotations={STAMP: stamp})) for stamp in stamps))

    # As of 100: 1100 and 1700 seconds ahead, and for ever.
    trust = loop.cluster.usage.dated(everything(loop.cluster.columns), STAMP).tolist()

    assert [1.0, 1.0, pytest.approx(0.5 ** (500 / 600)), 0.0] == trust


# --------------------------------------------------------------------------------------------------------- what pods say


def test_what_pods_say_is_known_of_those_who_are_not_measured_yet() -> None:
    """One runs since the middle of the window, one does not run yet, one was measured and one is gone."""
    both = {"limits": {"cpu": "900m"}}
    loop = told(
        PodSeen(replace(a_pod("half", cpu="400m", on="n1", started=True, **both), started_at=50.0)),
        PodSeen(a_pod("waits", cpu="300m", images=["a", "b"], on="n1")),
        PodSeen(a_pod("old", cpu=1, on="n1", started=True)),
        PodSeen(a_pod("gone", cpu=1, on="n1", started=True)),
        UsageReported((a_measurement(),)),
        PodGone(PodUid("gone")),
    )
    coming = loop.cluster.usage.coming(everything(loop.cluster.columns))

    assert ([450.0], [300.0], [1.0], [500.0]) == (
        coming.limits.tolist(),
        coming.unlimited.tolist(),
        coming.silent.tolist(),
        coming.requests.tolist(),
    )


def test_nothing_is_said_by_pods_of_a_node_that_left() -> None:
    loop = told(UsageReported((a_measurement(),)), PodSeen(a_pod("p", on="n1")), NodeGone("n1"), NodeSeen(a_node("n2")))

    assert [0.0] == loop.cluster.usage.coming(everything(loop.cluster.columns)).silent.tolist()


def test_a_pods_words_have_no_more_requests_than_the_pod() -> None:
    pod = replace(a_pod(cpu=2), requests=(("cpu", 1500),))

    assert (2000, 1500) == (declared_cpu(a_pod(cpu=2)).requests, declared_cpu(pod).requests)


def test_numbers_that_are_none_count_as_not_measured() -> None:
    loop = told(UsageReported((NodeUsage("n1", ResourceUsage(math.nan), ResourceUsage(1.0, math.inf), 0.0, 100.0),)))

    assert [0.0] == cpu_of(loop).trust.tolist()
    assert [0.0] == loop.cluster.usage.of(everything(loop.cluster.columns), MEMORY).trust.tolist()


def test_a_forecast_is_corrected_like_the_mean() -> None:
    """500 come. Of 3000 that were asked for 2000 leave: two thirds of 1000, and two thirds of 2100."""
    usage = NodeUsage("n1", ResourceUsage(1000.0, 0.0, 2100.0), None, 0.0, 100.0)
    loop = told(
        PodSeen(a_pod("stays", cpu=1, on="n1", started=True)),
        PodSeen(a_pod("leaves", cpu=2, on="n1", started=True)),
        UsageReported((usage,)),
        PodSeen(a_pod("p", cpu="500m", on="n1")),
    )
    before = cpu_of(loop).forecast.item(0)
    loop.take(PodGone(PodUid("leaves")))

    assert pytest.approx((2600.0, 1200.0)) == (before, cpu_of(loop).forecast.item(0))
    assert pytest.approx(833.333333) == cpu_of(loop).mean.item(0)


def test_nothing_of_a_node_that_left_is_left_to_the_one_that_gets_its_row() -> None:
    loop = told(UsageReported((a_measurement(),)), NodeGone("n1"), NodeSeen(a_node("other")))

    assert [0.0] == cpu_of(loop).trust.tolist()


def test_every_change_of_a_nodes_use_is_noted() -> None:
    loop = told(UsageReported((a_measurement(),)))
    log = loop.cluster.columns.logs[Facet.USAGE]
    noted = log.position
    loop.take(PodSeen(a_pod("p", cpu="500m", on="n1")))

    assert [0] == log.since(noted)


def test_where_nobody_measures_nobody_is_followed() -> None:
    loop = told(PodSeen(a_pod("p", cpu="500m", on="n1")))

    assert 0 == loop.cluster.usage.measured
    assert () == loop.cluster.usage.moves("n1")


def test_nobody_forecasts_for_a_node_on_the_row_of_another_for_which_somebody_did() -> None:
    forecast = NodeUsage("n1", ResourceUsage(1000.0, 50.0, 1200.0), None, 0.0, 100.0)
    loop = told(UsageReported((forecast,)), NodeGone("n1"), NodeSeen(a_node("n2")))

    assert math.isnan(cpu_of(loop).forecast[0])


@pytest.mark.parametrize(
    ("node", "most"),
    [
        pytest.param("n1", MOST_GONE, id="a node that is measured"),
        pytest.param("silent", 0, id="a node that nobody measures"),
        pytest.param("gone", 0, id="a node that is not there"),
        pytest.param("early", 0, id="a node that was measured and is not there"),
    ],
)
def test_who_came_and_left_is_not_remembered_for_ever(node: str, most: int) -> None:
    loop = told(UsageReported((a_measurement(), a_measurement("early"))), NodeSeen(a_node("silent")))
    for number in range(2 * MOST_GONE):
        name = f"p{number}"
        loop.take(PodSeen(a_pod(name, cpu=1, on=node)), PodSeen(a_pod(name, cpu=1, on=node, started=True)))
        loop.take(PodGone(PodUid(name)))

    assert len(loop.cluster.usage.moves(node)) <= most


def test_those_who_are_there_are_remembered_however_many_left() -> None:
    loop = told(UsageReported((a_measurement(),)), PodSeen(a_pod("waits", cpu=1, on="n1")))
    for number in range(2 * MOST_GONE):
        loop.take(
            PodSeen(a_pod(f"p{number}", cpu=1, on="n1")), PodSeen(a_pod(f"p{number}", cpu=1, on="n1", started=True))
        )
        loop.take(PodGone(PodUid(f"p{number}")))

    assert [2000.0] == cpu_of(loop).mean.tolist()


def test_of_nodes_that_are_not_there_some_measurements_are_kept() -> None:
    loop = told(UsageReported(tuple(a_measurement(f"gone-{number}") for number in range(2 * MOST_EARLY))))
    loop.take(UsageReported((a_measurement(),)))

    assert MOST_EARLY + 2 == loop.cluster.usage.measured
