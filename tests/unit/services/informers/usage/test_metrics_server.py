"""The metrics API: samples become mean and deviation, and nothing is told before there are three."""

import json
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.clients.kube.errors import ApiError, UnreachableError
from lamina.model.node_usage import ResourceUsage
from lamina.services.informers.usage.metrics_server import PATH, MetricsServerUsage
from lamina.services.informers.usage.samples import MOST, UsageSample, UsageSamples, line, load
from lamina.testing import a_node
from tests.unit.services.fakes import ScriptedClient

NOON = "2026-03-01T12:00:{:02}Z"
AT = 1772366400.0


def metrics(name="n1", second=0, cpu="250m", memory="1Gi", window="10.5s", **more):
    usage = {"cpu": cpu, "memory": memory}
    return {"metadata": {"name": name}, "timestamp": NOON.format(second), "window": window, "usage": usage, **more}


def listed(*items):
    return json.dumps({"kind": "NodeMetricsList", "items": items}).encode()


def source(*answers, window=900.0, passing=time.monotonic):
    return MetricsServerUsage(ScriptedClient(*answers), window, passing=passing)


NODES = {"n1": a_node("n1", uid="u1")}


async def test_the_third_sample_tells_mean_and_deviation():
    asked = source(*(listed(metrics(second=n * 15, cpu=cpu)) for n, cpu in enumerate(["100m", "200000000n", "0.3"])))
    assert [] == list(await asked.look(NODES))
    assert "too few samples yet for n1" == asked.remark
    assert [] == list(await asked.look(NODES))
    (usage,) = await asked.look(NODES)

    # Mean of 100, 200, 300; variance (100² + 0 + 100²) / 3.
    assert (200.0, pytest.approx(math.sqrt(20_000 / 3))) == (usage.cpu.mean, usage.cpu.deviation)
    assert ResourceUsage(1024**3, 0.0) == usage.memory
    assert (AT - 10.5, AT + 30, "") == (usage.since, usage.until, asked.remark)


async def test_the_same_sample_seen_again_counts_once():
    asked = source(*[listed(metrics())] * 5)
    for _ in range(5):
        assert [] == list(await asked.look(NODES))


@pytest.mark.parametrize(
    "still",
    [pytest.param([metrics(second=2)], id="always the same sample"), pytest.param([], id="no longer in the list")],
)
async def test_a_node_that_falls_silent_is_left_out_and_called_silent(still):
    now = 0.0
    asked = source(*(listed(metrics(second=n)) for n in range(3)), *[listed(*still)] * 2, passing=lambda: now)
    told = [await asked.look(NODES) for _ in range(3)]
    now = 180.0
    assert 1 == len(told[-1]) == len(await asked.look(NODES))

    now = 181.0
    assert [] == list(await asked.look(NODES))
    assert "the metrics API has no new data for n1 in the last 180 s" == asked.remark


async def test_a_node_made_anew_begins_anew():
    asked = source(*(listed(metrics(second=n)) for n in range(4)))
    told = [await asked.look(NODES) for _ in range(3)]
    assert 1 == len(told[-1])

    assert [] == list(await asked.look({"n1": a_node("n1", uid="u2")}))


async def test_nodes_that_are_lacking_or_unreadable_are_remarked():
    odd = [
        metrics(timestamp="noon"),
        metrics(cpu="much"),
        metrics(window="a while"),
        {"metadata": {}},
        7,
        metrics(name=""),
        metrics(name="stranger"),
    ]
    asked = source(listed(*odd))

    assert [] == list(await asked.look(NODES))
    assert "the metrics API has no data for n1; some entries of the metrics API cannot be read" == asked.remark


@pytest.mark.parametrize("status", [404, 503])
async def test_a_cluster_without_a_metrics_api_is_told_what_to_install(status):
    with pytest.raises(UnreachableError, match="install metrics-server"):
        await source(ApiError(f"GET {PATH}", status, "NotFound")).look(NODES)


async def test_other_failures_are_the_clients():
    with pytest.raises(ApiError):
        await source(ApiError(f"GET {PATH}", 403, "Forbidden")).look(NODES)
    for body in (b"<html>", b"[" * 100_000, b'{"items": 7}'):
        with pytest.raises(UnreachableError, match="no metrics list"):
            await source(body).look(NODES)


def a_sample(at, cpu=0):
    return UsageSample(at, 1.0, cpu, 0)


def test_samples_leave_the_window_and_are_bounded():
    samples = UsageSamples(100.0)
    for at in (0.0, 50.0, 99.0, 100.0):
        samples.add(a_sample(at))
    assert 3 == len(samples)

    many = UsageSamples(1e9)
    for at in range(MOST + 10):
        many.add(a_sample(float(at)))
    assert MOST == len(many)


def test_a_clock_that_is_set_back_begins_anew_and_a_late_sample_changes_nothing():
    samples = UsageSamples(100.0)
    for at in (1000.0, 1010.0, 1005.0):
        samples.add(a_sample(at))
    assert 2 == len(samples)

    samples.add(a_sample(10.0))
    assert 1 == len(samples)


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=50))
def test_mean_and_deviation_lie_within_what_was_seen(values):
    found = load(values)

    assert min(values) - 1e-6 <= found.mean <= max(values) + 1e-6
    assert 0 <= found.deviation <= (max(values) - min(values)) / 2 + 1e-6 * max(values) + 1e-9


@given(st.floats(-1e6, 1e6), st.floats(-1e3, 1e3), st.integers(2, 40), st.floats(-1e4, 1e4))
def test_a_straight_line_is_found_again(start, slope, count, at):
    found = line([(float(time), start + slope * time) for time in range(count)], at)

    assert pytest.approx(start + slope * at, rel=1e-6, abs=1e-3) == found


def test_points_of_one_time_are_a_level():
    assert 2.0 == line([(5.0, 1.0), (5.0, 3.0)], 100.0)
