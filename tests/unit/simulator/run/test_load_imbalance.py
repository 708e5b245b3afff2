"""
How evenly nodes are loaded, on stories small enough to do in the head.

Two nodes with 4 cpu unless a test says otherwise. With shares x and y, peak load is max/mean and imbalance |x - y| / (x + y).
"""

from collections.abc import Sequence

import pytest

from lamina.simulator.controllers import ControllerSpec
from lamina.simulator.run.load_imbalance import ImbalanceMeter, arrival_window
from lamina.simulator.workloads import PodArrival, Scenario, ScenarioEvent
from lamina.testing import a_pod
from lamina.trace.trace_records import (
    NodeJoined,
    NodeLeft,
    PodArrived,
    PodBound,
    PodEvicted,
    PodFailed,
    PodFinished,
    PodRejected,
    PodRemoved,
    PodStarted,
    TraceRecord,
)

Figures = tuple[float | None, float | None]


def node(name: str, cpu: int = 4, at: float = 0.0) -> NodeJoined:
    return NodeJoined(at, name, {"cpu": 1000 * cpu, "memory": 1})


def bound(at: float, pod: str, on: str, cpu: int = 2) -> list[TraceRecord]:
    """A pod that arrives and is bound at once."""
    requests = {"cpu": 1000 * cpu} if cpu else {}
    return [PodArrived(at, pod, pod, "default", ("app:1",), requests), PodBound(at, pod, on)]


def measured(story: Sequence[TraceRecord], first: float, last: float) -> Figures:
    meter = ImbalanceMeter(first, last)
    for record in story:
        meter.add(record)
    averages = meter.averages()
    return averages.peak_load, averages.imbalance


TWO = [node("n1"), node("n2")]


@pytest.mark.parametrize(
    ("story", "peak_load", "imbalance"),
    [
        pytest.param([*bound(0, "a", "n1"), *bound(0, "b", "n2")], 1.0, 0.0, id="alike"),
        pytest.param(bound(0, "a", "n1"), 2.0, 1.0, id="all on one of two nodes"),
        # Shares 1/2 and 1/4: mean 3/8.
        pytest.param([*bound(0, "a", "n1"), *bound(0, "b", "n2", 1)], 4 / 3, 1 / 3, id="twice as much on one"),
        # Half of the time all on n1, half of it alike.
        pytest.param([*bound(0, "a", "n1"), *bound(5, "b", "n2")], 1.5, 0.5, id="evened out half way"),
        # Alike for 4 seconds, then n1 alone for 6.
        pytest.param(
            [*bound(0, "a", "n1"), *bound(0, "b", "n2"), PodFinished(4, "b", "n2")], 1.6, 0.6, id="one finished"
        ),
        pytest.param(
            [*bound(0, "a", "n1"), *bound(0, "b", "n2"), PodRemoved(4, "b", "n2")], 1.6, 0.6, id="one removed"
        ),
        pytest.param(
            [*bound(0, "a", "n1"), *bound(0, "b", "n2"), PodFailed(4, "b", "n2", "Error")], 1.6, 0.6, id="one failed"
        ),
        pytest.param(
            [*bound(0, "a", "n1"), *bound(0, "b", "n2"), PodEvicted(4, "b", "n2", "disk")], 1.6, 0.6, id="one evicted"
        ),
        pytest.param(
            [*bound(0, "a", "n1"), *bound(3, "b", "n2"), PodRejected(3, "b", "n2", "OutOfcpu")],
            2.0,
            1.0,
            id="a refused pod never counted",
        ),
        # Of three nodes one had nothing for 5 seconds, and left: mean 1/3 and deviation √2/6, then 1/2 and 0.
        pytest.param(
            [node("n3"), *bound(0, "a", "n1"), *bound(0, "b", "n2"), NodeLeft(5, "n3")],
            (1.5 + 1) / 2,
            2**-0.5 / 2,
            id="an empty node left",
        ),
        pytest.param(
            [*bound(0, "a", "n1"), *bound(0, "b", "n2"), node("n3", at=5)],
            (1 + 1.5) / 2,
            2**-0.5 / 2,
            id="an empty node came",
        ),
        # The pods of a node that leaves are removed first.
        pytest.param(
            [*bound(0, "a", "n1"), *bound(0, "b", "n2"), PodRemoved(5, "b", "n2"), NodeLeft(5, "n2")],
            1.0,
            0.0,
            id="a loaded node left",
        ),
        pytest.param([node("n3", 0), *bound(0, "a", "n1")], 2.0, 1.0, id="a node without cpu has no share"),
        pytest.param([node("n3", 8), *bound(0, "a", "n1", 4)], 3.0, 2**0.5, id="three nodes, one full"),
        pytest.param(
            [*bound(0, "a", "n1"), *bound(0, "b", "n2"), *bound(2, "c", "n1", 0)],
            1.0,
            0.0,
            id="a pod that asks for none",
        ),
        pytest.param([*bound(0, "a", "n1"), PodStarted(3, "a", "n1")], 2.0, 1.0, id="starting changes nothing"),
        pytest.param([*bound(0, "a", "n1"), PodRemoved(3, "z")], 2.0, 1.0, id="somebody unplaced is removed"),
    ],
)
def test_loads_are_weighed_by_how_long_they_lasted(story, peak_load, imbalance):
    assert pytest.approx((peak_load, imbalance)) == measured([*TWO, *story], 0.0, 10.0)


def test_shares_count_and_not_amounts():
    """A quarter of a large node is as much as a quarter of a small one."""
    story = [node("small", 4), node("large", 16), *bound(0, "a", "small", 1), *bound(0, "b", "large", 4)]

    assert (1.0, 0.0) == measured(story, 0.0, 10.0)


@pytest.mark.parametrize("thirds", [(1, 2), (2, 4), (5, 10)])
def test_equal_shares_are_exactly_equal_also_where_no_number_says_them(thirds):
    one, other = thirds
    story = [node("n1", 3 * one), node("n2", 3 * other), *bound(0, "a", "n1", one), *bound(0, "b", "n2", other)]

    assert (1.0, 0.0) == measured(story, 0.0, 7.0)


@pytest.mark.parametrize(
    ("first", "last", "peak_load"),
    [
        pytest.param(0.0, 10.0, 1.5, id="all of it"),
        pytest.param(5.0, 10.0, 1.0, id="what was before the window does not count"),
        pytest.param(0.0, 5.0, 2.0, id="nor what came after"),
        pytest.param(4.0, 8.0, 1.25, id="a change in the middle counts from there"),
        pytest.param(20.0, 30.0, 1.0, id="the last state lasts"),
        pytest.param(5.0, 5.0, 1.0, id="an instant: when everything in it has happened"),
        pytest.param(0.0, 0.0, 2.0, id="the instant the run begins with"),
        pytest.param(4.0, 4.0, 2.0, id="an instant at which nothing happened"),
    ],
)
def test_only_the_window_counts(first, last, peak_load):
    story = [*TWO, *bound(0, "a", "n1"), *bound(5, "b", "n2")]

    assert peak_load == pytest.approx(measured(story, first, last)[0])


def test_time_without_load_does_not_count():
    story = [*TWO, *bound(0, "a", "n1"), PodFinished(1, "a", "n1"), *bound(9, "b", "n1"), *bound(9, "c", "n2")]

    # One second on one node, eight of nothing, one second alike.
    assert (1.5, 0.5) == measured(story, 0.0, 10.0)


@pytest.mark.parametrize(
    "story",
    [
        pytest.param([], id="no cluster"),
        pytest.param(TWO, id="no pods"),
        pytest.param([*TWO, *bound(0, "a", "n1", 0)], id="no requests"),
        pytest.param([*TWO, *bound(0, "a", "n1")[:1]], id="nothing placed"),
        pytest.param([*TWO, *bound(20, "a", "n1")], id="placed after the window"),
    ],
)
def test_without_load_there_are_no_figures(story):
    assert (None, None) == measured(story, 0.0, 10.0)


@pytest.mark.parametrize(
    ("story", "window", "requested", "capacity"),
    [
        pytest.param(bound(0, "a", "n1"), (0.0, 10.0), 2000 * 10, 8000 * 10, id="all the time"),
        pytest.param(bound(5, "a", "n1"), (0.0, 10.0), 2000 * 5, 8000 * 10, id="time without load counts"),
        pytest.param([*bound(0, "a", "n1"), NodeLeft(5, "n2")], (0.0, 10.0), 20_000, 8000 * 5 + 4000 * 5, id="left"),
        pytest.param([*bound(0, "a", "n1"), node("n3", at=8)], (0.0, 10.0), 20_000, 8000 * 10 + 4000 * 2, id="joined"),
        pytest.param(bound(3, "a", "n1"), (3.0, 3.0), 2000, 8000, id="an instant"),
        pytest.param([], (0.0, 10.0), 0, 80_000, id="nothing asked"),
    ],
)
def test_what_was_requested_is_counted_against_what_there_was(story, window, requested, capacity):
    meter = ImbalanceMeter(*window)
    for record in [*TWO, *story]:
        meter.add(record)
    averages = meter.averages()

    assert (requested, capacity) == (averages.requested, averages.capacity)


@pytest.mark.parametrize(
    ("times", "until", "expected"),
    [
        pytest.param((3.0, 4.0, 9.0), None, (3.0, 9.0), id="first to last arrival"),
        pytest.param((3.0, 4.0, 9.0), 8.0, (3.0, 4.0), id="what would come after the end does not come"),
        pytest.param((3.0,), None, (3.0, 3.0), id="one arrival"),
        pytest.param((), None, (0.0, 0.0), id="none"),
    ],
)
def test_the_window_belongs_to_the_scenario(times, until, expected):
    arrivals = tuple(PodArrival(at, a_pod(f"p{at}")) for at in times)

    assert expected == arrival_window(Scenario(name="s", arrivals=arrivals, until=until))


def a_controller(at: float) -> ControllerSpec:
    return ControllerSpec(kind="Deployment", name=f"c{at}", at=at, template=a_pod("t"))


@pytest.mark.parametrize(
    ("arrivals", "controllers", "changes", "until", "expected"),
    [
        pytest.param((5.0,), (2.0,), (), None, (2.0, 5.0), id="a controller is created"),
        pytest.param((), (2.0,), (7.0,), 50.0, (2.0, 7.0), id="a controller is changed"),
        pytest.param((), (2.0,), (70.0,), 50.0, (2.0, 50.0), id="a change that does not come"),
        pytest.param((), (2.0,), (), 50.0, (2.0, 50.0), id="nothing but a controller: to the end"),
        pytest.param((), (2.0,), (), None, (2.0, 2.0), id="that has no end"),
        pytest.param((4.0,), (), (), 50.0, (4.0, 4.0), id="nothing but a pod"),
    ],
)
def test_controllers_count_as_arrivals(arrivals, controllers, changes, until, expected):
    scenario = Scenario(
        name="s",
        arrivals=tuple(PodArrival(at, a_pod(f"p{at}")) for at in arrivals),
        controllers=tuple(map(a_controller, controllers)),
        events=tuple(ScenarioEvent(at, "scale", "c2.0", 3) for at in changes),
        until=until,
    )

    assert expected == arrival_window(scenario)
