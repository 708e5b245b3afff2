"""When reports are written: at once after a quiet time, seldom otherwise, and never for nothing."""

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.services.node_agent.report_backoff import FIRST, LONGEST, LONGEST_ASKED, ReportBackoff
from lamina.services.node_agent.report_schedule import GAP, JITTER, LEISURE, NEVER, SLACK, SWING, ReportSchedule


def a_timetable(heartbeat: float = 600.0, seed: int = 1) -> ReportSchedule:
    rng = random.Random(seed)
    return ReportSchedule(heartbeat, rng, ReportBackoff(rng))


def test_nothing_is_written_while_there_is_nothing_to_tell():
    assert NEVER == a_timetable().due


def test_the_first_report_is_written_at_once():
    times = a_timetable()
    times.changed(100.0)

    assert 100.0 >= times.due


def test_a_change_after_a_quiet_time_is_written_at_once():
    times = a_timetable()
    times.written(100.0)
    times.changed(100.0 + GAP + JITTER)

    assert 100.0 + GAP + JITTER >= times.due


def test_a_change_soon_after_a_report_waits_for_the_gap():
    times = a_timetable()
    times.written(100.0)
    times.changed(101.0)

    assert 100.0 + GAP <= times.due <= 100.0 + GAP + JITTER


def test_progress_is_written_by_and_by_and_a_change_does_not_wait_for_it():
    times = a_timetable()
    times.written(0.0)
    times.changed(100.0, at_leisure=True)
    times.changed(110.0, at_leisure=True)
    assert 100.0 + LEISURE == times.due

    times.changed(111.0)
    assert 111.0 >= times.due


def test_what_is_as_it_was_is_not_written():
    times = a_timetable()
    times.written(100.0)
    before = times.due
    times.changed(101.0)
    times.unchanged()

    assert before == times.due


@pytest.mark.parametrize("seed", range(20))
def test_a_heartbeat_comes_about_when_it_is_promised(seed):
    times = a_timetable(600.0, seed)
    times.written(0.0)

    assert 600 * (1 - SWING) <= times.due <= 600 * (1 + SWING) < times.renews_within == 600 * SLACK


def test_heartbeats_of_many_nodes_are_spread():
    dues = []
    for seed in range(200):
        times = a_timetable(seed=seed)
        times.written(0.0)
        dues.append(times.due)

    # 240 seconds wide: were they evenly spread, each 24 seconds would have 20.
    assert 40 > max(sum(low <= due < low + 24 for due in dues) for low in range(480, 720, 24))


def test_a_failed_report_is_tried_again_and_waits_as_long_as_it_was_asked_to():
    times = a_timetable()
    times.changed(0.0)
    assert FIRST <= times.failed(0.0) == times.due <= 1.5 * FIRST
    assert 30.0 == times.failed(0.0, 30.0) == times.due
    assert LONGEST_ASKED == times.failed(0.0, 86_400.0)


def test_a_failed_heartbeat_is_tried_again():
    times = a_timetable()
    times.written(0.0)
    times.failed(700.0)
    times.unchanged()

    assert 700.0 < times.due <= 700.0 + 1.5 * FIRST


def test_waits_grow_to_their_longest_and_begin_anew_after_a_success():
    patience = ReportBackoff(random.Random(1))
    waits = [patience.after_failure() for _ in range(12)]

    assert all(FIRST <= wait <= LONGEST for wait in waits)
    assert all(min(2.0**step, LONGEST) <= wait for step, wait in enumerate(waits))
    assert [LONGEST] * 5 == waits[-5:]
    patience.went_well()
    assert 1.5 * FIRST >= patience.after_failure()


def test_a_change_does_not_wait_because_progress_was_just_told():
    times = a_timetable()
    times.written(0.0)
    times.written(100.0, at_leisure=True)
    times.changed(101.0)

    assert 101.0 >= times.due


def test_progress_waits_after_whatever_was_told():
    times = a_timetable()
    times.changed(80.0, at_leisure=True)
    times.written(100.0)
    times.changed(80.0, at_leisure=True)

    assert 100.0 + GAP <= times.due <= 100.0 + GAP + JITTER


@given(st.lists(st.tuples(st.floats(0.0, 30.0), st.booleans()), max_size=60), st.integers(0, 1000))
@settings(max_examples=100)
def test_however_changes_come_two_of_them_are_ten_seconds_apart_and_progress_from_everything(steps, seed):
    times, now, change = a_timetable(60.0, seed), 0.0, False
    written: list[tuple[float, bool]] = []
    for pause, at_leisure in steps:
        end = now + pause
        while times.due <= end:
            now = max(now, times.due)
            written.append((now, change))
            times.written(now, at_leisure=not change)
            change = False
        now = end
        times.changed(now, at_leisure=at_leisure)
        change = change or not at_leisure

    changes = [moment for moment, was_change in written if was_change]
    assert all(later - earlier >= GAP for earlier, later in itertools.pairwise(changes))
    assert all(
        later - earlier >= GAP for (earlier, _), (later, was_change) in itertools.pairwise(written) if not was_change
    )
