"""RowJournal: which rows changed since."""

import pytest

from lamina.rows.row_journal import KEPT, RowJournal


def a_log(*rows: int) -> RowJournal:
    log = RowJournal()
    for row in rows:
        log.touch(row)
    return log


@pytest.mark.parametrize(
    ("touched", "position", "want"),
    [
        pytest.param([], 0, [], id="nothing happened"),
        pytest.param([3, 1], 0, [3, 1], id="all, oldest first"),
        pytest.param([3, 1], 1, [1], id="from where the reader stood"),
        pytest.param([3, 1], 2, [], id="the reader has seen everything"),
        pytest.param([3, 1, 3], 0, [3, 1, 3], id="repeats are kept"),
    ],
)
def test_a_reader_gets_what_was_touched_since_its_position(touched, position, want):
    """Positions count touches from the beginning."""
    log = a_log(*touched)

    assert want == log.since(position)
    assert len(touched) == log.position


@pytest.mark.parametrize(
    ("touches", "behind", "known"),
    [
        pytest.param(2 * KEPT, 2 * KEPT, True, id="everything is kept up to twice the bound"),
        pytest.param(2 * KEPT + 1, KEPT + 1, True, id="then the older half is dropped"),
        pytest.param(2 * KEPT + 1, KEPT + 2, False, id="and a reader that far behind is told so"),
        pytest.param(2 * KEPT + 1, 0, True, id="a reader that is up to date never notices"),
        pytest.param(10 * KEPT, KEPT, True, id="the newest are always known"),
        pytest.param(10 * KEPT, 10 * KEPT, False, id="the oldest are not"),
    ],
)
def test_a_reader_too_far_behind_is_told_to_read_everything(touches, behind, known):
    """None: too long ago to say. What is kept is bounded."""
    log = a_log(*range(touches))

    assert (list(range(touches - behind, touches)) if known else None) == log.since(touches - behind)
    assert touches == log.position


def test_what_is_kept_is_bounded():
    """However much happens, a log holds at most twice the bound."""
    log = a_log(*range(5 * KEPT))

    held = [position for position in range(log.position + 1) if log.since(position) is not None]
    assert KEPT <= log.position - min(held) <= 2 * KEPT


def test_a_list_handed_out_does_not_change_later():
    """A reader may keep it while more happens."""
    log = a_log(1, 2)
    seen = log.since(0)
    log.touch(3)

    assert [1, 2] == seen


def test_how_much_is_kept_is_the_readers_choice():
    """Where reading everything anew costs little, less is remembered."""
    log = RowJournal(kept=2)
    for row in range(5):
        log.touch(row)

    assert [2, 3, 4] == log.since(2)
    assert log.since(1) is None
