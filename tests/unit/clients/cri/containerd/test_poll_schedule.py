"""When looking again is worth it."""

import pytest

from lamina.clients.cri.containerd.poll_schedule import PollSchedule


def looked(at=1000.0, *, whole=True, pulling=False, unfinished=False, deaf=False):
    """After a look that ended at *at*."""
    rhythm = PollSchedule()
    rhythm.began(at)
    rhythm.ended(at, whole=whole, pulling=pulling, unfinished=unfinished, deaf=deaf)
    return rhythm


def test_who_never_looked_looks_at_once():
    assert PollSchedule().due() < 0
    assert PollSchedule().whole_due(0.0)


@pytest.mark.parametrize(
    ("look", "expected"),
    [
        pytest.param({}, 1300.0, id="nothing happens"),
        pytest.param({"pulling": True}, 1002.0, id="a pull goes on"),
        pytest.param({"unfinished": True}, 1001.0, id="sizes are missing"),
        pytest.param({"deaf": True}, 1010.0, id="nobody listens"),
        pytest.param({"deaf": True, "pulling": True}, 1002.0, id="nobody listens to a pull"),
    ],
)
def test_a_look_says_when_the_next_is_due(look, expected):
    assert expected == looked(**look).due()


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([1100.0], 1101.0, id="a second after an event"),
        pytest.param([1100.0, 1100.5], 1101.5, id="a second of quiet"),
        pytest.param([1100.0, 1100.9, 1101.8], 1102.0, id="two seconds at the most"),
        pytest.param([1000.1], 1001.1, id="soon after a look"),
    ],
)
def test_what_belongs_together_is_seen_together(events, expected):
    rhythm = looked()
    for at in events:
        rhythm.happened(at)

    assert expected == rhythm.due()


def test_a_look_sees_what_happened_before_it_began_and_nothing_later():
    rhythm = looked()
    rhythm.happened(1100.0)
    rhythm.began(1101.0)
    rhythm.happened(1101.5)
    rhythm.ended(1102.0, whole=False, pulling=False, unfinished=False, deaf=False)

    # A second of quiet, and a second between two looks.
    assert 1103.0 == rhythm.due()


def test_after_a_removal_one_looks_once_more():
    rhythm = looked()
    rhythm.happened(1100.0, removal=True)
    assert not rhythm.began(1101.0)
    rhythm.ended(1101.0, whole=False, pulling=False, unfinished=False, deaf=False)

    assert 1105.0 == rhythm.due()
    assert rhythm.began(1105.0)
    rhythm.ended(1105.0, whole=False, pulling=False, unfinished=False, deaf=False)
    assert 1300.0 == rhythm.due()


def test_everything_is_asked_for_every_five_minutes_however_much_happens():
    rhythm = looked()
    rhythm.ended(1299.5, whole=False, pulling=False, unfinished=False, deaf=False)

    assert not rhythm.whole_due(1299.5)
    assert 1300.5 == rhythm.due()
    assert rhythm.whole_due(rhythm.due())


def test_who_hears_nothing_looks_less_and_less_often():
    rhythm = looked(deaf=True)
    pauses = []
    for _ in range(4):
        now = rhythm.due()
        rhythm.ended(now, whole=False, pulling=False, unfinished=False, deaf=True)
        pauses.append(rhythm.due() - now)

    assert [15.0, 22.5, 30.0, 30.0] == pauses


def test_a_look_that_failed_is_tried_again_and_asks_for_everything():
    rhythm = looked()
    rhythm.failed(1010.0)

    assert 1020.0 == rhythm.due()
    assert rhythm.whole_due(1020.0)
