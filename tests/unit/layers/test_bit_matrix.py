"""Sheets of bits: the plain one, the one that keeps only lines with a bit, and how they grow."""

import numpy as np
import pytest

from lamina.layers.bit_matrix import FIRST_LINES, FIRST_ROWS, BitMatrix, SparseBitMatrix, more_lines, more_rows

BOTH = pytest.mark.parametrize("kind", [BitMatrix, SparseBitMatrix])


def lines(*numbers):
    return np.array(numbers, dtype=np.intp)


def rows_of(sheet, line):
    return np.flatnonzero(np.unpackbits(sheet.of(lines(line)))).tolist()


@BOTH
@pytest.mark.parametrize("row", [0, 7, 8, FIRST_ROWS - 1])
def test_a_bit_that_was_set_is_set_until_it_is_cleared(kind, row):
    """And no other."""
    sheet = kind()
    sheet.set(lines(3, 5), row)
    assert ([row], [], [row]) == (rows_of(sheet, 3), rows_of(sheet, 4), rows_of(sheet, 5))

    sheet.clear(lines(3), row)
    assert ([], [row]) == (rows_of(sheet, 3), rows_of(sheet, 5))


@BOTH
def test_lines_may_be_named_twice(kind):
    """Images share layers."""
    sheet = kind()
    sheet.set(lines(3, 3, 4), 1)
    sheet.set(lines(3), 2)
    sheet.clear(lines(3, 4, 3, 4), 1)
    assert ([2], []) == (rows_of(sheet, 3), rows_of(sheet, 4))

    sheet.clear(lines(3, 3), 2)
    assert not sheet.any()


@BOTH
def test_clearing_what_is_clear_changes_nothing(kind):
    sheet = kind()
    sheet.set(lines(3), 1)
    sheet.clear(lines(3, 9), 2)
    sheet.set(lines(9), 4)

    assert ([1], [4], []) == (rows_of(sheet, 3), rows_of(sheet, 9), rows_of(sheet, 0))


@BOTH
@pytest.mark.parametrize(
    ("more", "rows"),
    [
        pytest.param(FIRST_LINES + 1, FIRST_ROWS, id="lines"),
        pytest.param(FIRST_LINES, 2 * FIRST_ROWS, id="rows"),
        pytest.param(9 * FIRST_LINES, 9 * FIRST_ROWS, id="both"),
    ],
)
def test_what_is_in_a_sheet_stays_when_it_grows(kind, more, rows):
    """And nothing else is in it."""
    sheet = kind()
    sheet.set(lines(3, FIRST_LINES - 1), FIRST_ROWS - 1)
    sheet.reach(more, rows)
    sheet.set(lines(more - 1), rows - 1)

    assert rows // 8 == sheet.of(lines(3)).shape[1]
    found = {line: rows_of(sheet, line) for line in range(more)}
    expected: dict[int, list[int]] = {3: [FIRST_ROWS - 1], FIRST_LINES - 1: [FIRST_ROWS - 1]}
    expected.setdefault(more - 1, []).append(rows - 1)
    assert expected == {line: some for line, some in found.items() if some}


@BOTH
def test_a_part_of_the_rows_can_be_asked_for(kind):
    """As a range of bytes, or as bytes one by one."""
    sheet = kind()
    sheet.set(lines(3), 0)
    sheet.set(lines(4), 15)

    assert [[128, 0], [0, 1]] == sheet.of(lines(3, 4), slice(0, 2)).tolist()
    assert [[0, 128], [1, 0]] == sheet.of(lines(3, 4), lines(1, 0)).tolist()


@BOTH
def test_what_was_asked_for_can_be_written_on(kind):
    sheet = kind()
    sheet.set(lines(3), 1)
    sheet.of(lines(3))[:] = 255

    assert [1] == rows_of(sheet, 3)


def test_many_rows_are_set_at_once():
    """Beside those that were set."""
    sheet = BitMatrix()
    sheet.set(lines(3), 0)
    sheet.set_rows(lines(3, 4), [9, 2, 8])

    assert ([0, 2, 8, 9], [2, 8, 9]) == (rows_of(sheet, 3), rows_of(sheet, 4))


def test_a_sparse_sheet_has_room_only_for_lines_with_a_bit():
    """However many lines there are, and however often they change."""
    sheet = SparseBitMatrix()
    sheet.reach(100_000, FIRST_ROWS)
    before = sheet.nbytes
    for line in range(0, 100_000, 100):
        sheet.set(lines(line, line + 1), 3)
        sheet.clear(lines(line, line + 1), 3)

    assert before == sheet.nbytes
    sheet.set(np.arange(FIRST_LINES, dtype=np.intp), 3)
    assert before < sheet.nbytes
    assert [[3]] * FIRST_LINES == [rows_of(sheet, line) for line in range(FIRST_LINES)]


def test_a_line_that_lost_its_place_gets_another():
    """The first ones were cleared and are set again together with the one for which there is no room left."""
    sheet = SparseBitMatrix()
    sheet.reach(2 * FIRST_LINES, FIRST_ROWS)
    sheet.set(lines(0, 1, 2), 3)
    sheet.set(np.arange(3, FIRST_LINES - 1, dtype=np.intp), 5)
    sheet.clear(lines(0, 1, 2), 3)
    sheet.set(lines(0, 1, FIRST_LINES, FIRST_LINES + 1), 7)

    assert [[7], [7], [], [5]] == [rows_of(sheet, line) for line in range(4)]
    assert [[7], [7], []] == [rows_of(sheet, FIRST_LINES + line) for line in range(3)]


def test_it_is_told_which_lines_may_have_a_bit():
    sheet = SparseBitMatrix()
    sheet.set(lines(3), 0)

    assert (True, False) == (sheet.has(lines(1, 3)), sheet.has(lines(1, 2)))


@BOTH
def test_one_row_of_some_lines_can_be_asked_for(kind):
    sheet = kind()
    sheet.set(lines(3, 5), 9)
    sheet.set(lines(4), 8)

    assert [True, False, True] == (sheet.on(lines(3, 4, 5), 9) != 0).tolist()


@pytest.mark.parametrize(
    ("rows", "needed", "want"),
    [
        pytest.param(512, 513, 1024, id="one more"),
        pytest.param(512, 5000, 5120, id="many more at once"),
        pytest.param(8192, 8193, 9216, id="an eighth more"),
        pytest.param(5120, 5121, 6144, id="an eighth more, in whole steps"),
    ],
)
def test_rows_are_added_in_small_steps(rows, needed, want):
    assert want == more_rows(rows, needed)


def test_lines_are_added_in_steps_that_grow():
    assert (2 * FIRST_LINES, 90_000) == (more_lines(FIRST_LINES), more_lines(80_000))
