"""How fast pulls were seen to go: bytes over seconds, whatever they were cut into."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.clients.cri.rate_estimates import KEPT, SMALLEST, DownloadMeter, RateEstimate

MIB = 1024 * 1024


def test_nothing_seen_is_no_rate():
    assert 0.0 == RateEstimate().value


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param([(10 * MIB, 2.0)], 5 * MIB, id="one observation"),
        pytest.param([(10 * MIB, 1.0), (10 * MIB, 4.0)], 4 * MIB, id="20 MiB in 5 s"),
        pytest.param([(10 * MIB, 2.0), (SMALLEST - 1, 60.0)], 5 * MIB, id="a tiny layer does not count"),
        pytest.param([(10 * MIB, 2.0), (10 * MIB, 0.0)], 5 * MIB, id="no time, no speed"),
        pytest.param([(10 * MIB, 2.0), (10 * MIB, -1.0)], 5 * MIB, id="a clock that was set back"),
    ],
)
def test_a_rate_is_all_bytes_over_all_seconds(seen, expected):
    rate = RateEstimate()
    for size, seconds in seen:
        rate.add(size, seconds)

    assert expected == rate.value


def test_only_the_last_observations_count():
    rate = RateEstimate()
    rate.add(1000 * MIB, 1.0)
    for _ in range(KEPT):
        rate.add(2 * MIB, 1.0)

    assert 2 * MIB == rate.value


def test_a_download_is_measured_from_where_it_was_when_first_seen():
    rate = RateEstimate()
    meter = DownloadMeter(rate)

    meter.seen({"a": 500 * MIB}, 10.0)
    assert 0.0 == rate.value
    meter.seen({"a": 504 * MIB}, 12.0)

    assert 2 * MIB == rate.value


def test_what_began_while_others_ran_counts_from_its_first_byte():
    rate = RateEstimate()
    meter = DownloadMeter(rate)
    meter.seen({"a": 0}, 10.0)
    meter.seen({"a": 3 * MIB, "b": 5 * MIB}, 12.0)

    assert 4 * MIB == rate.value


def test_a_pull_that_nobody_looked_at_is_measured_from_its_events():
    """Begun at 10, two layers complete at 11 and 12: 6 MiB in 2 s."""
    rate = RateEstimate()
    meter = DownloadMeter(rate)
    meter.begin(10.0)
    meter.finished("a", 2 * MIB, 11.0)
    meter.finished("b", 4 * MIB, 12.0)
    meter.seen({}, 60.0)

    assert 3 * MIB == rate.value


def test_a_download_that_is_gone_makes_its_time_unclear():
    """It may be complete, or have been given up at any byte; what comes after is clear again."""
    rate = RateEstimate()
    meter = DownloadMeter(rate)
    meter.seen({"a": 0, "b": 0}, 10.0)
    meter.seen({"b": 900 * MIB}, 12.0)
    assert 0.0 == rate.value
    meter.seen({"b": 906 * MIB}, 14.0)

    assert 3 * MIB == rate.value


def test_a_completion_that_is_heard_too_late_does_not_count():
    rate = RateEstimate()
    meter = DownloadMeter(rate)
    meter.seen({"a": 0, "b": 0}, 10.0)
    meter.seen({"b": 0}, 12.0)
    meter.finished("a", 900 * MIB, 12.1)
    meter.seen({"b": 2 * MIB}, 14.0)

    assert MIB == rate.value


def test_a_pause_between_two_pulls_does_not_count():
    rate = RateEstimate()
    meter = DownloadMeter(rate)
    for start in (0.0, 1000.0):
        meter.seen({"a": 0}, start)
        meter.seen({"a": 4 * MIB}, start + 2)
        meter.seen({}, start + 3)

    assert 2 * MIB == rate.value


def test_a_completion_that_nobody_saw_begin_says_nothing():
    rate = RateEstimate()
    DownloadMeter(rate).finished("a", 100 * MIB, 5.0)

    assert 0.0 == rate.value


@given(st.lists(st.integers(min_value=1, max_value=20), min_size=2, max_size=9))
def test_a_steady_download_has_its_own_speed_however_often_one_looks(gaps):
    """A law: at 3 MiB a second, any sequence of looks at least a second apart says 3 MiB a second."""
    rate = RateEstimate()
    meter = DownloadMeter(rate)
    now = 0
    for gap in [0, *gaps]:
        now += gap
        meter.seen({"a": now * 3 * MIB}, float(now))

    assert pytest.approx(3 * MIB) == rate.value
