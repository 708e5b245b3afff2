"""Points in time: everything RFC 3339 allows, and nothing else."""

from datetime import UTC, datetime

import pytest

from lamina.wire import timestamps

HALF_PAST_TWELVE = datetime(2026, 3, 1, 12, 30, 5, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(None, 0.0, id="none"),
        pytest.param("", 0.0, id="empty"),
        pytest.param("1970-01-01T00:00:00Z", 0.0, id="the first second"),
        pytest.param("2026-03-01T12:30:05Z", HALF_PAST_TWELVE, id="as the API server writes it"),
        pytest.param("2026-03-01t12:30:05z", HALF_PAST_TWELVE, id="small letters"),
        pytest.param("2026-03-01 12:30:05Z", HALF_PAST_TWELVE, id="a space in the middle"),
        pytest.param("2026-03-01T12:30:05.25Z", HALF_PAST_TWELVE + 0.25, id="a fraction"),
        pytest.param("2026-03-01T12:30:05.123456Z", HALF_PAST_TWELVE + 0.123456, id="microseconds, as in leases"),
        pytest.param("2026-03-01T12:30:05.500000000Z", HALF_PAST_TWELVE + 0.5, id="nanoseconds"),
        pytest.param("2026-03-01T13:30:05+01:00", HALF_PAST_TWELVE, id="east of Greenwich"),
        pytest.param("2026-03-01T07:00:05-05:30", HALF_PAST_TWELVE, id="west of Greenwich"),
        pytest.param("2026-03-01T12:30:05-00:00", HALF_PAST_TWELVE, id="unknown zone"),
        pytest.param("2016-12-31T23:59:60Z", 1483228800.0, id="leap second"),
        pytest.param("1969-12-31T23:59:59.25Z", -0.75, id="before 1970"),
        pytest.param("0001-01-01T00:00:00Z", -62135596800.0, id="what Go calls no time"),
        pytest.param("2024-02-29T00:00:00Z", 1709164800.0, id="leap day"),
    ],
)
def test_a_time_is_read_exactly(text, expected):
    assert expected == timestamps.seconds(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("yesterday", id="words"),
        pytest.param("2026-03-01", id="a date"),
        pytest.param("2026-03-01T12:30:05", id="no zone"),
        pytest.param("2026-03-01T12:30Z", id="no seconds"),
        pytest.param("20260301T123005Z", id="ISO 8601, basic form"),
        pytest.param("2026-W09-7T12:30:05Z", id="a week"),
        pytest.param("2026-03-01T123005.0Z", id="as long as the usual form"),
        pytest.param("2026-03-01_12:30:05Z", id="another separator"),
        pytest.param("2026-02-29T00:00:00Z", id="a day that did not exist"),
        pytest.param("2026-03-01T24:00:00Z", id="hour 24"),
        pytest.param("2026-03-01T12:30:61Z", id="second 61"),
        pytest.param("2026-03-01T12:30:05.Z", id="a point without a fraction"),
        pytest.param("2026-03-01T12:30:05+24:00", id="a day east of Greenwich"),
        pytest.param("0000-01-01T00:00:00Z", id="year nought"),
        pytest.param("٢٠٢٦-03-01T12:30:05Z", id="digits that are not ASCII"),
        pytest.param("2026-03-01T12:30:05Z\n", id="an end of line"),
        pytest.param("2026-03-01T12:30:05." + "0" * 100_000 + "Z", id="a very long fraction"),
    ],
)
def test_what_is_not_a_time_is_refused_in_few_words(text):
    with pytest.raises(ValueError, match="is not a time") as refusal:
        timestamps.seconds(text)

    assert len(str(refusal.value)) < 200
