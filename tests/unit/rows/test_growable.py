"""Arrays that grow with the rows."""

import numpy as np
import pytest

from lamina.rows.growable import grown, widened


@pytest.mark.parametrize("grow", [grown, widened])
def test_an_array_that_is_long_enough_stays_the_same_array(grow):
    """Callers ask before every write."""
    array = np.arange(4)

    assert grow(array, 4) is array
    assert grow(array, 0) is array


@pytest.mark.parametrize(
    ("rows", "length"), [pytest.param(5, 8, id="twice as long"), pytest.param(100, 100, id="or as long as needed")]
)
def test_an_array_grows_so_far_that_rows_can_come_one_by_one(rows, length):
    """What is in it stays, and new places are filled."""
    longer = grown(np.arange(4), rows, 7)

    assert [0, 1, 2, 3, *[7] * (length - 4)] == longer.tolist()
    assert np.int64 == longer.dtype


def test_rows_are_the_last_axis():
    """Lines stay as many as they are; a caller may say exactly how long they shall be."""
    longer = widened(np.ones((2, 3), dtype=np.bool_), 5, fill=False)

    assert [[True, True, True, False, False]] * 2 == longer.tolist()


def test_an_empty_array_grows_as_well():
    """It is the first row's."""
    assert (2, 1) == grown(np.zeros((2, 0)), 1, np.nan).shape
    assert np.isnan(grown(np.zeros(0), 1, np.nan)).all()
