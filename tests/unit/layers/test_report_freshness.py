"""Trust: how far a report is still believed."""

import numpy as np
import pytest

from lamina.layers.report_freshness import ReportFreshness


def trust_at(now: float, *, observed_at: float = 0.0, renews_within: float = 60.0, told_at: float = 0.0) -> float:
    trust = ReportFreshness()
    trust.pass_time(told_at)
    trust.renew(0, observed_at, renews_within, told_at)
    trust.pass_time(now)
    told = trust.of(slice(None), 2)
    assert told is None or told[1] == 1
    return 1.0 if told is None else float(told[0])


@pytest.mark.parametrize(
    ("now", "want"),
    [
        pytest.param(60, 1, id="it is time for the next"),
        pytest.param(120, 1, id="twice that"),
        pytest.param(150, 0.5**0.5, id="and half a time more"),
        pytest.param(180, 0.5, id="and a whole time more"),
        pytest.param(240, 0.25, id="two more"),
        pytest.param(359, 0.5 ** (239 / 60), id="almost four more"),
        pytest.param(360, 0, id="four more: nothing is known"),
        pytest.param(1e9, 0, id="for ever"),
    ],
)
def test_belief_halves_every_time_a_report_should_have_been_renewed(now, want):
    """It promised another within 60 s; twice that is granted."""
    assert want == pytest.approx(trust_at(now))


def test_a_report_that_promises_nothing_holds_until_it_is_replaced():
    assert 1 == trust_at(1e9, renews_within=0.0)


@pytest.mark.parametrize(
    ("observed_at", "want"),
    [
        pytest.param(1000.0, 0.5, id="when it came"),
        pytest.param(940.0, 0.25, id="a minute before it came"),
        pytest.param(5000.0, 0.5, id="a clock that is ahead is not believed for longer"),
        pytest.param(0.0, 0, id="a clock that is far behind is not believed"),
    ],
)
def test_belief_counts_from_when_the_report_was_made(observed_at, want):
    """It came at 1000; now it is 1180."""
    assert want == pytest.approx(trust_at(1180.0, observed_at=observed_at, told_at=1000.0))


@pytest.mark.parametrize("renews_within", [5e-324, 1e-300, 1e308])
def test_promises_that_make_no_sense_break_nothing(renews_within):
    """Too short to keep, or too long to matter."""
    assert (1 if renews_within > 1 else 0) == trust_at(1180.0, renews_within=renews_within)


def test_doubt_counts_from_tick_to_tick():
    """Every 30 s, so that not everything has to be judged anew all the time."""
    trust = ReportFreshness()
    trust.renew(3, 0.0, 10.0, 0.0)

    assert [] == trust.pass_time(29.9)
    assert trust.of(slice(None), 4) is None
    assert [3] == trust.pass_time(30.0)
    assert 0.5 == trust.of(slice(None), 4)[3]
    assert [] == trust.pass_time(40.0)
    assert 0.5 == trust.of(slice(None), 4)[3]
    assert [3] == trust.pass_time(60.0)
    assert 0 == trust.of(slice(None), 4)[3]


def test_rows_that_are_believed_less_are_told_of():
    """In their order; the others are not."""
    trust = ReportFreshness()
    for row, renews_within in ((7, 10.0), (2, 10.0), (5, 100.0), (6, 0.0)):
        trust.renew(row, 0.0, renews_within, 0.0)

    assert [2, 7] == trust.pass_time(45.0)


@pytest.mark.parametrize(
    ("before", "after", "news"),
    [
        pytest.param(0.0, 45.0, True, id="doubted, believed again"),
        pytest.param(45.0, 45.0, False, id="believed all the time"),
        pytest.param(45.0, 0.0, True, id="an old report: doubted from now on"),
        pytest.param(0.0, 1.0, True, id="doubted, and still, but less"),
    ],
)
def test_it_says_whether_a_report_changes_how_far_a_row_is_believed(before, after, news):
    """Also if it says the same as the one before."""
    trust = ReportFreshness()
    trust.renew(0, 0.0, 10.0, 0.0)
    trust.pass_time(45.0)
    trust.renew(0, before, 10.0, 45.0)

    assert news == trust.renew(0, after, 10.0, 45.0)


def test_a_row_that_is_forgotten_is_believed_like_any_other():
    """The node that gets it next has missed no renewal."""
    trust = ReportFreshness()
    trust.renew(0, 0.0, 10.0, 0.0)
    trust.pass_time(45.0)
    trust.forget(0)
    trust.forget(1)

    assert trust.of(slice(None), 1) is None
    assert [] == trust.pass_time(90.0)


def test_some_rows_can_be_asked_for():
    """Rows beyond those that are asked about do not matter."""
    trust = ReportFreshness()
    for row in (1, 900):
        trust.renew(row, 0.0, 10.0, 0.0)
    trust.pass_time(30.0)

    assert [0.5, 1.0] == trust.of(np.array([1, 0]), 2).tolist()
