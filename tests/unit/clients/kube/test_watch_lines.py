"""Lines out of pieces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.clients.kube.watch_lines import LINE_LIMIT, LineCutter


def cut(data: bytes, sizes: list[int], limit: int) -> tuple[list[bytes], bytes, int]:
    """Feed *data* in pieces of *sizes*, the rest at once."""
    cutter = LineCutter(limit)
    lines: list[bytes] = []
    for size in sizes:
        lines += cutter.feed(data[:size])
        data = data[size:]
    lines += cutter.feed(data)
    return lines, cutter.rest(), cutter.skipped


@given(
    lines=st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"")), max_size=12),
    rest=st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"")),
    sizes=st.lists(st.integers(0, 40), max_size=40),
)
def test_lines_do_not_depend_on_how_they_were_cut(lines, rest, sizes):
    data = b"".join(line + b"\n" for line in lines) + rest
    expected = [line for line in lines if line and len(line) <= 20]
    too_long = sum(len(line) > 20 for line in [*lines, rest])

    assert (expected, rest if len(rest) <= 20 else b"", too_long) == cut(data, sizes, 20)


@pytest.mark.parametrize("piece", [1000, 256 * 1024, 5 * 1024**2], ids=["small pieces", "chunks", "one piece"])
def test_a_line_that_is_too_long_is_passed_over_and_the_next_one_is_read(piece):
    cutter = LineCutter()
    data = b"a\n" + b"x" * (LINE_LIMIT + 1) + b"\nb\n"
    lines = [line for start in range(0, len(data), piece) for line in cutter.feed(data[start : start + piece])]

    assert [b"a", b"b"] == lines
    assert 1 == cutter.skipped


def test_a_line_of_the_longest_length_is_read():
    cutter = LineCutter()
    data = b"x" * LINE_LIMIT

    assert [] == cutter.feed(data)
    assert [data] == cutter.feed(b"\n")
    assert 0 == cutter.skipped


def test_no_more_than_one_line_is_ever_held():
    cutter = LineCutter(limit=1000)
    for _ in range(10_000):
        cutter.feed(b"x" * 100)
        assert 1000 >= sum(len(piece) for piece in cutter._pieces)

    assert 1 == cutter.skipped
    assert b"" == cutter.rest()
