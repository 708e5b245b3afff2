"""What follows from how a connection ended, with the figures as they are."""

import pytest

from lamina.clients.kube.backoff import TimeSource
from lamina.clients.kube.errors import ApiError, SilenceError, UnreachableError
from lamina.clients.kube.reflector_counters import ReflectorCounters
from lamina.clients.kube.relist_policy import RelistPolicy, WatchOutcome
from lamina.clients.kube.watch_connection import BrokenWatchError, NotStreamedError
from tests.unit.clients.kube.mirrored import Hands
from tests.unit.clients.kube.test_backoff import Highest

BREAK = UnreachableError("watch", "the connection broke")
SILENCE = SilenceError("watch", "nothing came")
BROKEN = BrokenWatchError("watch", "no event")
GONE = ApiError("watch", 410, "Expired")
TOO_LARGE = ApiError("watch", 504, "Timeout", "", 1.0, ("ResourceVersionTooLarge",))


class Trip:
    """A course with everything around it; it always waits as long as it may."""

    def __init__(self, version: str = "50") -> None:
        self.hands = Hands()
        self.counts = ReflectorCounters()
        self.course = RelistPolicy(TimeSource(self.hands.clock, self.hands.sleep, Highest()), self.counts)
        self.course.version = version

    def after(self, **ending: object) -> float:
        return self.course.after(WatchOutcome(**ending))


@pytest.mark.parametrize(
    ("ending", "wait", "reason"),
    [
        pytest.param({"heard": 1}, 0.0, None, id="closed after an event"),
        pytest.param({"lasted": 2.0}, 0.0, None, id="closed after two quiet seconds"),
        pytest.param({"lasted": 1.9}, 0.8, "silent", id="closed at once without a word"),
        pytest.param({"error": GONE}, 0.8, "expired", id="410"),
        pytest.param({"error": GONE, "heard": 5}, 0.8, "expired", id="410 after events"),
        pytest.param({"error": ApiError("w", 200, "Gone")}, 0.8, "expired", id="the reason alone"),
        pytest.param({"error": TOO_LARGE}, 0.8, "restored", id="a version not reached"),
        pytest.param({"error": ApiError("w", 504, "Timeout")}, 0.8, None, id="504"),
        pytest.param({"error": ApiError("w", 500, "InternalError")}, 0.8, None, id="500"),
        pytest.param({"error": ApiError("w", 429, "", "", 9.0)}, 9.0, None, id="429 with a time"),
        pytest.param({"error": ApiError("w", 503, "", "", 999.0)}, 60.0, None, id="503 with a long time"),
        pytest.param({"error": ApiError("w", 422, "Invalid")}, 0.8, None, id="422"),
        pytest.param({"error": BREAK}, 0.8, None, id="no connection"),
        pytest.param({"error": BREAK, "heard": 1}, 0.0, None, id="cut after an event"),
        pytest.param({"error": SILENCE}, 0.0, None, id="silence"),
        pytest.param({"error": BROKEN}, 0.8, None, id="no event"),
        pytest.param({"error": BROKEN, "heard": 1}, 0.0, None, id="no event after an event"),
    ],
)
def test_a_watch_that_ended(ending, wait, reason):
    trip = Trip()

    assert wait == trip.after(opened=True, **ending)
    assert ({reason: 1} if reason else {}) == trip.counts.relists
    assert ("" if reason else "50") == trip.course.version


@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        pytest.param({"error": ApiError("w", 422, "Invalid")}, False, id="422"),
        pytest.param({"error": ApiError("w", 400, "BadRequest")}, False, id="400"),
        pytest.param({"error": ApiError("w", 403, "Forbidden")}, True, id="403: nobody may watch at all"),
        pytest.param({"error": ApiError("w", 404, "NotFound")}, True, id="404: not installed yet"),
        pytest.param({"error": ApiError("w", 500, "InternalError")}, True, id="500"),
        pytest.param({"error": ApiError("w", 500, ""), "opened": True}, False, id="an ERROR event to begin with"),
        pytest.param({"error": ApiError("w", 500, ""), "opened": True, "heard": 1}, True, id="an ERROR event later"),
        pytest.param({"error": ApiError("w", 429, ""), "opened": True}, True, id="overloaded"),
        pytest.param({"error": NotStreamedError("w", ""), "opened": True, "heard": 9}, False, id="no end"),
        pytest.param({"error": SILENCE, "opened": True, "heard": 9}, False, id="silence"),
        pytest.param({"error": BREAK}, True, id="no connection"),
        pytest.param({"opened": True}, True, id="closed"),
    ],
)
def test_a_streamed_list_that_did_not_come_to_its_end(ending, expected):
    trip = Trip(version="")
    wait = trip.after(streams_list=True, **ending)

    assert expected == trip.course.may_stream
    assert (0.8 if expected else 0.0) == wait, "pages are tried at once"
    assert {} == trip.counts.relists


def test_pages_that_are_refused_do_not_count_against_streaming():
    trip = Trip(version="")
    trip.after(streams_list=False, error=ApiError("w", 422, "Invalid"))

    assert trip.course.may_stream


def test_a_server_that_does_not_stream_is_asked_again_after_an_hour():
    trip = Trip(version="")
    trip.after(streams_list=True, error=ApiError("w", 422, "Invalid"))
    trip.hands.now += 3599
    assert not trip.course.may_stream
    trip.hands.now += 1
    assert trip.course.may_stream


def test_after_three_streams_that_broke_off_pages_are_tried():
    trip = Trip(version="")
    for number in range(3):
        assert trip.course.may_stream, number
        trip.after(streams_list=True, opened=True, heard=5, error=BREAK)

    assert not trip.course.may_stream


def test_a_list_that_came_to_its_end_forgets_those_that_did_not():
    trip = Trip(version="")
    for _ in range(5):
        trip.after(streams_list=True, opened=True, heard=5, error=BREAK)
        trip.course.listed()

    assert trip.course.may_stream


def test_watches_that_end_without_a_word_cause_one_list_a_minute():
    """A server that does nothing else must not be listed as often as it closes."""
    trip = Trip()
    ends = trip.hands.now + 600
    while trip.hands.now < ends:
        trip.hands.now += trip.after(opened=True)
        trip.course.version = "50"

    assert 10 == pytest.approx(trip.counts.relists["silent"], abs=1)


def test_a_version_from_which_every_watch_breaks_at_its_first_line_is_given_up():
    trip = Trip()
    trip.after(opened=True, error=BROKEN)
    assert "50" == trip.course.version
    trip.after(opened=True, error=BROKEN)

    assert {"broken": 1} == trip.counts.relists


def test_a_watch_that_gets_on_before_it_breaks_is_not_given_up():
    trip = Trip()
    for heard in (0, 1, 0, 1, 0):
        trip.after(opened=True, error=BROKEN, heard=heard)

    assert {} == trip.counts.relists


@pytest.mark.parametrize(
    ("error", "doubtful"),
    [
        pytest.param(BREAK, True, id="break"),
        pytest.param(SILENCE, True, id="silence"),
        pytest.param(BROKEN, True, id="no event"),
        pytest.param(None, False, id="a proper end"),
        pytest.param(ApiError("w", 500, ""), False, id="an answer"),
    ],
)
def test_after_a_break_histories_are_compared(error, doubtful):
    trip = Trip()
    trip.after(opened=True, heard=1, error=error)

    assert doubtful == trip.course.doubtful


@pytest.mark.parametrize(
    ("current", "restored"),
    [
        pytest.param("50", False, id="the same"),
        pytest.param("51", False, id="further"),
        pytest.param("49", True, id="not as far as ours"),
        pytest.param("9", True, id="fewer digits"),
        pytest.param("100", False, id="more digits"),
        pytest.param("", False, id="unknown"),
        pytest.param("abc", False, id="no number"),
    ],
)
def test_a_history_that_is_shorter_than_ours_is_another_one(current, restored):
    trip = Trip()
    trip.course.doubtful = True
    trip.course.compare(current)

    assert not trip.course.doubtful
    assert restored == (trip.course.version == "")
    assert restored != trip.course.trusting
    assert ({"restored": 1} if restored else {}) == trip.counts.relists


def test_trust_comes_back_with_a_whole_list_and_not_before():
    trip = Trip()
    trip.after(error=TOO_LARGE)
    trip.after(streams_list=True, opened=True, heard=3, error=BREAK)
    assert not trip.course.trusting
    trip.course.listed()

    assert trip.course.trusting


@pytest.mark.parametrize(
    "ending", [{"error": GONE}, {"opened": True, "lasted": 0.1}], ids=["the version expired", "closed without a word"]
)
def test_a_rewritten_history_stays_distrusted_when_another_list_is_needed_before_one_is_complete(ending):
    trip = Trip()
    trip.course.compare("49")
    trip.course.version = "60"
    trip.after(**ending)

    assert ("", False) == (trip.course.version, trip.course.trusting)
