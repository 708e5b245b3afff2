"""The curve of one node's use: its mean and deviation over a window, and the seconds in which it was too much."""

import math

import pytest

from lamina.model.node_usage import ResourceUsage
from lamina.simulator.cluster.load_meter import NodeLoadMeter

Curve = list[tuple[float, int, int]]


def a_meter(
    curve: Curve, *, cpu: int = 1000, memory: int = 100, joined: float = 0.0
) -> tuple[NodeLoadMeter, list[float]]:
    """A node's meter that has seen a curve of (when, cpu, memory), and when it said that something changed."""
    now = {"cpu": 0, "memory": 0}
    stirred: list[float] = []
    meter = NodeLoadMeter("n1", {"cpu": cpu, "memory": memory}, joined, lambda _: now, stirred.append)
    for at, *use in curve:
        now["cpu"], now["memory"] = use
        meter.changed(at)
    return meter, stirred


@pytest.mark.parametrize(
    ("curve", "window", "cpu", "memory"),
    [
        pytest.param([], (0.0, 60.0), ResourceUsage(0.0), ResourceUsage(0.0), id="nothing ever"),
        pytest.param([(0.0, 300, 10)], (0.0, 60.0), ResourceUsage(300.0), ResourceUsage(10.0), id="always the same"),
        # 15 seconds of nothing, 45 of 400: mean 300; deviation √(¼·300² + ¾·100²) = √30000.
        pytest.param(
            [(15.0, 400, 0)],
            (0.0, 60.0),
            ResourceUsage(300.0, math.sqrt(30_000)),
            ResourceUsage(0.0),
            id="from then on",
        ),
        pytest.param(
            [(15.0, 400, 7)], (20.0, 60.0), ResourceUsage(400.0), ResourceUsage(7.0), id="the window opens later"
        ),
        pytest.param(
            [(15.0, 400, 7)], (0.0, 15.0), ResourceUsage(0.0), ResourceUsage(0.0), id="the window closes before"
        ),
        # Half of the window at 100, half at 500; memory half 20 and half 40.
        pytest.param(
            [(10.0, 100, 20), (40.0, 500, 40)],
            (20.0, 60.0),
            ResourceUsage(300.0, 200.0),
            ResourceUsage(30.0, 10.0),
            id="both",
        ),
        pytest.param(
            [(10.0, 1600, 20)], (10.0, 60.0), ResourceUsage(1000.0), ResourceUsage(20.0), id="no more cpu than there is"
        ),
        pytest.param(
            [(10.0, 9, 9), (10.0, 500, 5)],
            (10.0, 60.0),
            ResourceUsage(500.0),
            ResourceUsage(5.0),
            id="what lasts no time",
        ),
    ],
)
def test_a_window_is_measured_to_the_second(curve, window, cpu, memory):
    since, until = window
    usage = a_meter(curve)[0].measure(since, until, 61.0)

    assert ("n1", window, 61.0) == (usage.node, (usage.since, usage.until), usage.renews_within)
    assert pytest.approx((cpu.mean, cpu.deviation)) == (usage.cpu.mean, usage.cpu.deviation)
    assert pytest.approx((memory.mean, memory.deviation)) == (usage.memory.mean, usage.memory.deviation)


def test_a_node_is_measured_from_when_it_joined():
    meter, _ = a_meter([(50.0, 600, 0)], joined=40.0)
    usage = meter.measure(-840.0, 60.0, 0.0)

    assert (40.0, 60.0, 300.0) == (usage.since, usage.until, usage.cpu.mean)


def test_windows_that_move_on_forget_what_they_have_left_behind_and_nothing_else():
    """Use rises by one every second; each window sees its last ten seconds."""
    now = {"cpu": 0}
    meter = NodeLoadMeter("n1", {"cpu": 1000, "memory": 1}, 0.0, lambda _: now, lambda _: None)
    means = []
    for second in range(1, 61):
        now["cpu"] = second
        meter.changed(float(second))
        if second % 5 == 0 and second > 10:
            means.append(meter.measure(second - 10.0, float(second), 0.0).cpu.mean)

    # From second 5 to 15 there were 5, 6 ... 14 in use.
    assert [9.5 + 5 * number for number in range(10)] == means


@pytest.mark.parametrize(
    ("curve", "seconds"),
    [
        pytest.param([(0.0, 900, 90)], 0.0, id="nine tenths are not too much"),
        pytest.param([(0.0, 901, 0), (5.0, 900, 0), (50.0, 0, 91)], 55.0, id="cpu and then memory, until the end"),
        pytest.param([(0.0, 901, 0), (5.0, 2000, 95), (7.0, 0, 0)], 7.0, id="both at once count once"),
    ],
)
def test_seconds_above_nine_tenths_are_counted(curve, seconds):
    assert seconds == a_meter(curve)[0].overloaded_seconds(100.0)


def test_only_what_differs_is_a_change():
    assert [3.0, 9.0] == a_meter([(1.0, 0, 0), (3.0, 5, 5), (4.0, 5, 5), (9.0, 0, 5)])[1]
