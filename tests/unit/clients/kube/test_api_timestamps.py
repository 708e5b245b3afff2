"""Times as the API server wants them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.clients.kube.api_timestamps import micro_time, whole_time
from lamina.wire.timestamps import seconds


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        pytest.param(0, "1970-01-01T00:00:00.000000Z", id="the beginning"),
        pytest.param(1_772_368_205_250_000_000, "2026-03-01T12:30:05.250000Z", id="a quarter"),
        pytest.param(1_999_999_999, "1970-01-01T00:00:01.999999Z", id="cut to microseconds"),
    ],
)
def test_a_time_has_six_digits(moment, expected):
    assert expected == micro_time(moment)


def test_a_time_without_fraction_is_cut():
    assert "2026-03-01T12:30:05Z" == whole_time(1772368205.999)


@given(st.integers(0, 4 * 10**18))
def test_a_time_is_read_as_it_was_written(moment):
    assert moment // 1000 / 1e6 == seconds(micro_time(moment))
