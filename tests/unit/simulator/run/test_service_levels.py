"""Service levels: availability, violation, deficit and lost capacity, from the lives of pods."""

import math
import random

import pytest

from lamina.simulator.run.service_levels import (
    AvailabilityPromise,
    PodSpan,
    capacity_lost,
    class_levels,
    controller_levels,
)

END = 100.0


def a_span(created, started=None, ended=None, controller="c", **more):
    return PodSpan(controller=controller, created=created, started=started, ended=ended, **more)


def level(slo, *spans, end=END):
    (found,) = controller_levels([AvailabilityPromise("c", slo, "g")], spans, end)
    return found


@pytest.mark.parametrize(
    ("spans", "availability"),
    [
        pytest.param([a_span(0.0)], 0.0, id="never started"),
        pytest.param([a_span(0.0, 0.0)], 1.0, id="started at once"),
        pytest.param([a_span(20.0, 30.0)], 70 / 80, id="waited"),
        # 40 of the first 50 s, 30 of the last 50 s.
        pytest.param([a_span(0.0, 10.0, 50.0), a_span(50.0, 70.0)], 0.7, id="evicted and made again"),
        pytest.param([a_span(0.0, 0.0), a_span(0.0)], 0.5, id="one of two replicas"),
        pytest.param([a_span(0.0, 0.0, 40.0)], 1.0, id="gone before the end"),
        pytest.param([a_span(0.0, 50.0), a_span(150.0, 150.0)], 0.5, id="a pod after the end"),
        pytest.param([a_span(0.0, 50.0, 300.0)], 0.5, id="an end after the end"),
        pytest.param([a_span(0.0, 50.0), a_span(0.0, 200.0, 300.0)], 0.25, id="a start after the end"),
    ],
)
def test_availability_is_the_share_of_its_life_that_a_controller_ran(spans, availability):
    assert availability == pytest.approx(level(0.9, *spans).availability)


def deficit_of_waiting(wait, slo, end):
    """The integral of SLO - (t - wait) / t from the start at *wait* until the SLO is reached, and of SLO before."""
    reached = min(wait / (1.0 - slo), end) if slo < 1.0 else end
    return slo * wait + (slo - 1.0) * (reached - wait) + wait * math.log(reached / wait)


@pytest.mark.parametrize(
    ("slo", "spans", "violation", "deficit"),
    [
        pytest.param(0.5, [a_span(0.0, 0.0)], 0.0, 0.0, id="kept throughout"),
        pytest.param(0.5, [a_span(0.0)], 100.0, 50.0, id="never started"),
        pytest.param(0.0, [a_span(0.0)], 0.0, 0.0, id="nothing promised"),
        # Availability (t - 10) / t reaches 0.5 - 0.005 at 10 / 0.505.
        pytest.param(0.5, [a_span(0.0, 10.0)], 10 / 0.505, deficit_of_waiting(10, 0.5, 100), id="caught up"),
        pytest.param(0.95, [a_span(0.0, 10.0)], 100.0, deficit_of_waiting(10, 0.95, 100), id="never caught up"),
        # Availability 40 / t falls to 0.5 - 0.005 at 40 / 0.495; the deficit begins at 80.
        pytest.param(
            0.5,
            [a_span(0.0, 0.0, 40.0), a_span(40.0)],
            100 - 40 / 0.495,
            0.5 * 20 - 40 * math.log(100 / 80),
            id="fell behind",
        ),
        # Without a pod from 40 s on, the availability stays 0.25.
        pytest.param(
            0.5, [a_span(0.0, 30.0, 40.0)], 100.0, 0.5 * 30 + 60 * 0.25 + 10 * -0.5 + 30 * math.log(4 / 3), id="gone"
        ),
    ],
)
def test_violation_and_deficit_are_integrals_over_time(slo, spans, violation, deficit):
    found = level(slo, *spans)

    assert violation == pytest.approx(found.violation_seconds)
    assert deficit == pytest.approx(found.deficit)


def test_integrals_are_those_of_small_steps():
    """Compared with a sum over a million moments, for controllers with random lives."""
    rng = random.Random(7)
    for slo in (0.3, 0.6, 0.95):
        spans = []
        for _ in range(4):
            created = rng.uniform(0, 60)
            started = created + rng.uniform(0, 20)
            spans.append(a_span(created, started, started + rng.uniform(0, 60)))
        steps = 20_000
        violation = deficit = 0.0
        for step in range(steps):
            t = (step + 0.5) * END / steps
            ran = sum(max(0.0, min(t, one.ended) - one.started) for one in spans)
            existed = sum(max(0.0, min(t, one.ended) - one.created) for one in spans)
            if existed:
                violation += (ran / existed < slo - 0.005) * END / steps
                deficit += max(0.0, slo - ran / existed) * END / steps
        found = level(slo, *spans)

        assert violation == pytest.approx(found.violation_seconds, abs=0.05)
        assert deficit == pytest.approx(found.deficit, abs=0.05)


def test_the_classes_have_mean_spread_and_share_and_count_disruptions_by_cause():
    promises = [
        AvailabilityPromise(name, slo, group) for name, slo, group in (("a", 1, "x"), ("b", 1, "x"), ("c", 0.5, "y"))
    ]
    spans = [
        a_span(0.0, 0.0, controller="a"),
        a_span(0.0, 0.0, 40.0, controller="b", disruption="preempted"),
        a_span(40.0, None, 50.0, controller="b", disruption="evicted"),
        a_span(50.0, 80.0, controller="b"),
        a_span(0.0, 20.0, controller="c"),
        a_span(0.0, 0.0, controller="other"),
    ]
    found = class_levels(controller_levels(promises, spans, END))

    assert ["x", "y"] == list(found)
    joined = found["x"]
    # Availabilities 1.0 and 0.6.
    assert (2, 0.5, 0.5) == (joined.controllers, joined.missed, joined.met)
    assert (0.8, 0.2, 0.6, 1.0, 0.4) == pytest.approx((joined.mean, joined.sd, joined.min, joined.max, joined.spread))
    assert {"evicted": 1, "preempted": 1} == joined.disruptions
    assert (1, 0.0, {}) == (found["y"].controllers, found["y"].missed, found["y"].disruptions)


def test_an_availability_slightly_below_the_slo_meets_it():
    assert [True, False] == [level(1.0, a_span(0.0, late)).met for late in (0.4, 0.6)]


def test_a_controller_without_a_pod_has_no_service_level():
    assert [] == controller_levels([AvailabilityPromise("c", 1.0, "g")], [a_span(200.0)], END)


@pytest.mark.parametrize(
    ("spans", "capacity", "lost"),
    [
        pytest.param([], [(0.0, 2.0)], None, id="no pods"),
        pytest.param([a_span(0.0, 0.0)], [], None, id="no capacity"),
        pytest.param([a_span(0.0, 0.0)], [(0.0, 2.0)], 0.0, id="less wanted than there is"),
        pytest.param([a_span(0.0, 25.0)], [(0.0, 2.0)], 0.25, id="started late"),
        pytest.param([a_span(0.0, 0.0), a_span(0.0)], [(0.0, 1.0)], 0.0, id="more wanted than there is"),
        # Usable are 1 · 50 + 2 · 50; one pod ran throughout.
        pytest.param([a_span(0.0, 0.0), a_span(0.0)], [(0.0, 1.0), (50.0, 2.0)], 1 / 3, id="a node that joins"),
        pytest.param([a_span(0.0, 0.0, 50.0, requested=3.0)], [(0.0, 4.0), (200.0, 9.0)], 0.0, id="requests"),
    ],
)
def test_lost_capacity_is_what_pods_could_have_used_and_did_not(spans, capacity, lost):
    found = capacity_lost(spans, capacity, END)

    assert lost == (None if found is None else pytest.approx(found, abs=1e-12))
