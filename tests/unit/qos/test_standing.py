"""The formulas of QoS, QoS metric and preemption overhead, with the published numbers."""

import math

import pytest

from lamina.qos.promise import QosApproach
from lamina.qos.standing import QosTimes, ReplicaCounts, overhead_estimate, preemption_overhead, qos_metric
from tests.unit.qos.qos_lives import promised

AVERAGE, AGGREGATE = QosApproach.AVERAGE, QosApproach.AGGREGATE
INDEPENDENT, CONCURRENT = QosApproach.INDEPENDENT, QosApproach.CONCURRENT


def metric(slo, approach, times, running, pending, *, evaluated_runs=False, overhead=0.5):
    counts = ReplicaCounts(running, pending, running + pending)
    return qos_metric(promised(slo, approach), QosTimes(*times), overhead, counts, running=evaluated_runs)


@pytest.mark.parametrize(
    ("slo", "times", "running", "pending", "evaluated_runs", "expected"),
    [
        # Three of four replicas give 0.75, more than 0.5.
        pytest.param(0.5, (3600, 0, 400, 2), 4, 0, True, math.inf, id="the others keep the promise alone"),
        # The slack 3600 / 0.9 - 4002, less 0.5.
        pytest.param(0.9, (3600, 0, 400, 2), 4, 0, True, -2.5, id="just below the SLO"),
        # The gap 3600 - 0.9 * 3902, closed by 4 * 0.9 - 3 a second, less 0.5.
        pytest.param(0.9, (3600, 0, 300, 2), 4, 0, True, 146.5, id="above the SLO, one of four less"),
        # The gap 3600 - 0.95 * 3702, closed by 4 * 0.95 - 3 a second, less 0.5.
        pytest.param(0.95, (3600, 0, 100, 2), 3, 1, False, 103.375, id="above the SLO, one of four waits"),
        pytest.param(0.8, (80, 0, 20, 0), 1, 0, True, 0.0, id="exactly the SLO"),
        pytest.param(0.8, (0, 0, 0, 0), 0, 1, False, -0.5, id="no time has passed"),
        pytest.param(0.0, (0, 0, 9, 0), 0, 1, False, 0.0, id="no promise, before the first run"),
        pytest.param(0.0, (1, 0, 9, 0), 0, 1, False, math.inf, id="no promise, after the first run"),
        pytest.param(1.0, (100, 0, 0, 0), 1, 0, True, 0.0, id="everything promised and kept"),
        pytest.param(1.0, (100, 0, 1, 0), 1, 0, True, -1.5, id="everything promised, one second missed"),
    ],
)
def test_the_metric_of_averages(slo, times, running, pending, evaluated_runs, expected):
    for approach in (AVERAGE, AGGREGATE):
        found = metric(slo, approach, times, running, pending, evaluated_runs=evaluated_runs)
        assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("slo", "approach", "times", "expected"),
    [
        # 7446/0.8 - 7446 = 1861.5
        pytest.param(0.8, INDEPENDENT, (7446, 0, 0, 0), 1861.0, id="independent, above the SLO"),
        # 493/0.5 - 1129.591 = -143.591
        pytest.param(0.5, INDEPENDENT, (493, 0, 636, 0.591), -144.091, id="independent, below the SLO"),
        pytest.param(0.0, INDEPENDENT, (0, 0, 9, 0), 0.0, id="independent, no promise, before the first run"),
        pytest.param(0.0, INDEPENDENT, (1, 0, 9, 0), math.inf, id="independent, no promise"),
        # The slack 120 / 0.5 - 180, shared by two replicas.
        pytest.param(0.5, CONCURRENT, (120, 40, 20, 0), 30.0, id="concurrent, above the SLO"),
        # The slack 120 / 0.8 - 180, less 0.5.
        pytest.param(0.8, CONCURRENT, (120, 40, 20, 0), -30.5, id="concurrent, below the SLO"),
    ],
)
def test_the_metric_of_the_other_approaches(slo, approach, times, expected):
    assert metric(slo, approach, times, 1, 1) == pytest.approx(expected)


def test_slack_is_the_time_to_violation_of_the_original_page():
    assert QosTimes(7446).slack(0.8) == pytest.approx(1861.5)
    assert QosTimes(493, 0, 636, 0.591).slack(0.5) == pytest.approx(-143.591)


def test_qos_is_the_effective_share_of_the_lifetime():
    assert QosTimes(60, 20, 15, 5).qos == pytest.approx(0.6)
    assert QosTimes().qos == 0.0


@pytest.mark.parametrize(
    ("approach", "times", "expected"),
    [
        pytest.param(AVERAGE, (60, 20, 15, 20), 0.2, id="binding of binding and running"),
        pytest.param(AGGREGATE, (60, 20, 15, 20), 0.4, id="a job also loses discarded time"),
        pytest.param(AVERAGE, (0, 0, 15, 0), 0.0, id="never placed"),
    ],
)
def test_preemption_overhead_is_a_share_of_the_time_since_placement(approach, times, expected):
    assert preemption_overhead(approach, QosTimes(*times)) == pytest.approx(expected)


def test_an_overhead_is_assumed_until_one_was_measured():
    assert overhead_estimate(0.0, 3) == 2.4
    assert overhead_estimate(6.0, 3) == 2.0
