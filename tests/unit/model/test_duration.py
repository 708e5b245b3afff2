"""Durations as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.model import duration
from lamina.model.duration import LONGEST


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        pytest.param("500ms", 0.5, id="milliseconds"),
        pytest.param("10s", 10.0, id="seconds"),
        pytest.param("5m", 300.0, id="minutes"),
        pytest.param("1h", 3600.0, id="hours"),
        pytest.param("1h30m", 5400.0, id="several units"),
        pytest.param("0.1s", 0.1, id="a fraction is the nearest float"),
        pytest.param("2.5m", 150.0, id="a fraction of a minute"),
        pytest.param(7, 7.0, id="a whole number is seconds"),
        pytest.param(0.25, 0.25, id="a number is seconds"),
        pytest.param("12", 12.0, id="a number in quotes"),
        pytest.param(" 3s ", 3.0, id="spaces around it"),
        pytest.param(0, 0.0, id="nothing"),
        pytest.param("0s", 0.0, id="nothing with a unit"),
        pytest.param("1h1h", 7200.0, id="the same unit twice"),
        pytest.param("1ms1h", 3600.001, id="units in any order"),
        pytest.param(LONGEST, float(LONGEST), id="ten years"),
    ],
)
def test_a_duration_is_read_as_seconds(written, seconds):
    assert seconds == duration.seconds(written)


@pytest.mark.parametrize(
    ("written", "words"),
    [
        pytest.param("10 s", "is not a duration; write for example 500ms", id="a space inside"),
        pytest.param("1d", "is not a duration", id="an unknown unit"),
        pytest.param("", "is not a duration", id="nothing"),
        pytest.param("1s 1s", "is not a duration", id="a space between"),
        pytest.param(".5s", "is not a duration", id="no digit before the point"),
        pytest.param("\u0663s", "is not a duration", id="digits of another script"),
        pytest.param("1\ns", "is not a duration", id="a line feed inside"),
        pytest.param(LONGEST + 1, "at most ten years", id="a second more than ten years"),
        pytest.param("s", "is not a duration", id="a unit alone"),
        pytest.param("1e3s", "is not a duration", id="an exponent"),
        pytest.param("-1s", "is negative", id="negative"),
        pytest.param(-0.5, "is negative", id="a negative number"),
        pytest.param("inf", "is not a duration", id="endless as text"),
        pytest.param(float("inf"), "at most ten years", id="endless"),
        pytest.param("90000h", "at most ten years", id="more than ten years"),
        pytest.param("1" * 65 + "s", "too long", id="a long text"),
    ],
)
def test_what_is_no_duration_is_told_in_words(written, words):
    with pytest.raises(ValueError, match=words):
        duration.seconds(written)


@pytest.mark.parametrize("written", [float("nan"), True], ids=["not a number", "yes"])
def test_other_scalars_are_refused_in_our_own_words(written):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - what it says is the matter
        duration.seconds(written)

    assert "duration" in str(caught.value)


@given(st.integers(0, LONGEST * 1000))
def test_milliseconds_are_exact(amount):
    assert amount / 1000 == duration.seconds(f"{amount}ms")


@given(st.text(max_size=20))
def test_whatever_is_written_is_read_or_refused(written):
    refused = "in one line"
    try:
        assert 0.0 <= duration.seconds(written) <= LONGEST
    except ValueError as error:
        refused = str(error)

    assert 1 == len(refused.splitlines())
