"""What nodes are really used for: the last measurement, and who came or left since."""

import math

import pytest

from lamina.model.events import Event, NodeGone, NodeSeen, PodGone, PodSeen, TimePassed, UsageReported
from lamina.model.pod import PodUid
from lamina.model.resources import CPU, MEMORY
from lamina.model.usage import Load, NodeUsage
from lamina.scheduling.framework.rowlog import Facet
from lamina.scheduling.framework.usage import MOST_EARLY, MOST_GONE, Measured
from lamina.scheduling.framework.view import everything
from lamina.scheduling.loop.loop import Loop
from lamina.testing.builders import a_node, a_pod

GB = 10**9


def a_measurement(node: str = "n1", cpu: float = 1000.0, *, since: float = 0.0, until: float = 100.0) -> NodeUsage:
    return NodeUsage(node, Load(cpu, 50.0), Load(2.0 * GB, 0.5 * GB), since, until)


def told(*happened: Event) -> Loop:
    loop = Loop(lambda _: {}, lambda _: 0)
    loop.take(NodeSeen(a_node("n1")), TimePassed(100.0), *happened)
    return loop


def cpu_of(loop: Loop) -> Measured:
    return loop.state.context.usage.of(everything(loop.state.columns), CPU)


def test_what_was_measured_is_what_is_known() -> None:
    loop = told(UsageReported((a_measurement(),)))
    memory = loop.state.context.usage.of(everything(loop.state.columns), MEMORY)

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
    loop = told(UsageReported((a_measurement(),)), PodSeen(a_pod("p", cpu="500m", on="n1")))

    assert [1500.0] == cpu_of(loop).mean.tolist()


def test_a_pod_that_runs_when_it_is_first_seen_is_in_the_measurement() -> None:
    loop = told(UsageReported((a_measurement(),)), PodSeen(a_pod("p", cpu="500m", on="n1", started=True)))

    assert [1000.0] == cpu_of(loop).mean.tolist()


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        pytest.param(0.0, 110.0, 1500.0, id="after the window: in full"),
        pytest.param(100.0, 140.0, 1250.0, id="in the middle of it: by half"),
        pytest.param(120.0, 220.0, 1000.0, id="before it: not at all, it was measured"),
    ],
)
def test_a_pod_counts_for_the_part_of_the_window_it_did_not_run_in(since: float, until: float, expected: float) -> None:
    loop = told(
        UsageReported((a_measurement(),)),
        PodSeen(a_pod("p", cpu="500m", on="n1")),
        TimePassed(120.0),
        PodSeen(a_pod("p", cpu="500m", on="n1", started=True)),
        TimePassed(300.0),
        UsageReported((a_measurement(since=since, until=until),)),
    )

    assert [expected] == cpu_of(loop).mean.tolist()


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        pytest.param(0.0, 100.0, 700.0, id="after the window: all it asked for is free again"),
        pytest.param(0.0, 200.0, 820.0, id="in the middle of it: by the part it still ran in"),
        pytest.param(130.0, 200.0, 1000.0, id="before it: the measurement does not have it any more"),
    ],
)
def test_a_pod_that_left_is_taken_off_for_the_part_of_the_window_it_ran_in(
    since: float, until: float, expected: float
) -> None:
    loop = told(
        PodSeen(a_pod("p", cpu="300m", on="n1", started=True)),
        UsageReported((a_measurement(),)),
        TimePassed(120.0),
        PodGone(PodUid("p")),
        UsageReported((a_measurement(since=since, until=until),)),
    )

    assert expected == pytest.approx(cpu_of(loop).mean.item(0))


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
    usage = NodeUsage("n1", Load(1000.0), None, 0.0, 100.0, renews_within=60.0)
    loop = told(UsageReported((usage,)))
    trust = []
    for now in (200.0, 280.0, 340.0, 1000.0):
        loop.take(TimePassed(now))
        trust.append(round(cpu_of(loop).trust.item(0), 3))

    assert [1.0, 0.5, 0.25, 0.0] == trust


def test_numbers_that_are_none_count_as_not_measured() -> None:
    loop = told(UsageReported((NodeUsage("n1", Load(math.nan), Load(1.0, math.inf), 0.0, 100.0),)))

    assert [0.0] == cpu_of(loop).trust.tolist()
    assert [0.0] == loop.state.context.usage.of(everything(loop.state.columns), MEMORY).trust.tolist()


def test_a_forecast_is_corrected_like_the_mean() -> None:
    usage = NodeUsage("n1", Load(1000.0, 0.0, 2000.0), None, 0.0, 100.0)
    loop = told(UsageReported((usage,)), PodSeen(a_pod("p", cpu="500m", on="n1")))

    assert [2500.0] == cpu_of(loop).forecast.tolist()


def test_nothing_of_a_node_that_left_is_left_to_the_one_that_gets_its_row() -> None:
    loop = told(UsageReported((a_measurement(),)), NodeGone("n1"), NodeSeen(a_node("other")))

    assert [0.0] == cpu_of(loop).trust.tolist()


def test_every_change_of_a_nodes_use_is_noted() -> None:
    loop = told(UsageReported((a_measurement(),)))
    log = loop.state.columns.logs[Facet.USAGE]
    noted = log.position
    loop.take(PodSeen(a_pod("p", cpu="500m", on="n1")))

    assert [0] == log.since(noted)


def test_where_nobody_measures_nobody_is_followed() -> None:
    loop = told(PodSeen(a_pod("p", cpu="500m", on="n1")))

    assert 0 == loop.state.context.usage.measured
    assert {} == loop.state.context.usage._moves


def test_nobody_forecasts_for_a_node_on_the_row_of_another_for_which_somebody_did() -> None:
    forecast = NodeUsage("n1", Load(1000.0, 50.0, 1200.0), None, 0.0, 100.0)
    loop = told(UsageReported((forecast,)), NodeGone("n1"), NodeSeen(a_node("n2")))

    assert math.isnan(cpu_of(loop).forecast[0])


@pytest.mark.parametrize(
    ("node", "most"),
    [
        pytest.param("silent", 2 * MOST_GONE, id="a node that nobody measures"),
        pytest.param("gone", 0, id="a node that is not there"),
    ],
)
def test_who_came_and_left_is_not_remembered_for_ever(node: str, most: int) -> None:
    loop = told(UsageReported((a_measurement(),)), NodeSeen(a_node("silent")))
    for number in range(2 * MOST_GONE):
        name = f"p{number}"
        loop.take(PodSeen(a_pod(name, cpu=1, on=node)), PodSeen(a_pod(name, cpu=1, on=node, started=True)))
        loop.take(PodGone(PodUid(name)))

    assert len(loop.state.context.usage.moves(node)) <= most


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

    assert MOST_EARLY + 2 == loop.state.context.usage.measured
