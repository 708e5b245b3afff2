"""Interval sets: the canonical form, the forms that are read, and what is refused."""

import pytest

from lamina.wire.batsim.interval_sets import read_intervals, write_intervals


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([], ""), ([3], "3"), ([0, 1], "0-1"), ([5, 1, 2, 3, 9], "1-3 5 9"), ([2, 2, 1], "1-2")],
    ids=str,
)
def test_sets_of_numbers_are_written_as_intervals(numbers, text):
    assert text == write_intervals(numbers)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        pytest.param("", (), id="empty"),
        pytest.param("1-3 5 9", (1, 2, 3, 5, 9), id="canonical"),
        pytest.param("5,1-2, 2-3", (1, 2, 3, 5), id="commas, any order and overlaps"),
        pytest.param("7-7", (7,), id="an interval of one"),
    ],
)
def test_intervals_are_read_in_any_order(text, numbers):
    assert numbers == read_intervals(text, 10)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("a", "'a' is no interval; write for example 0-3 5", id="a word"),
        pytest.param("-1", "'-1' is no interval", id="a negative number"),
        pytest.param("1--2", "'1--2' is no interval", id="two dashes"),
        pytest.param("3-1", "the interval 3-1 ends before it begins", id="backwards"),
        pytest.param("0-10", "there is no resource 10; the last one is 9", id="beyond the last resource"),
        pytest.param("0-999999999", "there is no resource 999999999", id="more numbers than memory has room for"),
        pytest.param("9" * 30, "is no interval", id="a number of thirty digits"),
    ],
)
def test_what_is_no_set_of_resources_is_refused(text, told):
    with pytest.raises(ValueError, match=told):
        read_intervals(text, 10)
