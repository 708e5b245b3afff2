"""Lines of files that may be compressed: the same whichever way, within bounds, and whole or refused."""

import gzip

import pytest
import zstandard

from lamina.model.errors import InputError
from lamina.wire.compressed_lines import CHUNK, ReadBounds, read_lines

BOUNDS = ReadBounds(line=1000, size=100_000)
TEXT = b"first\nsecond\n\nlast"


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


PACKED = [
    pytest.param(bytes, id="plain"),
    pytest.param(gzip.compress, id="gzip"),
    pytest.param(zstd, id="zstd"),
]


def told(path, bounds=BOUNDS) -> str:
    with pytest.raises(InputError) as caught:
        list(read_lines(path, bounds))
    return str(caught.value).replace(f"{path.parent}/", "")


@pytest.mark.parametrize("pack", PACKED)
def test_lines_come_with_their_numbers_however_the_file_is_compressed(pack, tmp_path):
    (tmp_path / "file").write_bytes(pack(TEXT))

    assert [(1, b"first"), (2, b"second"), (3, b""), (4, b"last")] == list(read_lines(tmp_path / "file", BOUNDS))


@pytest.mark.parametrize("pack", PACKED)
def test_a_line_may_be_longer_than_what_is_read_at_once(pack, tmp_path):
    long = b"x" * (3 * CHUNK)
    (tmp_path / "file").write_bytes(pack(long + b"\nrest\n"))

    lines = list(read_lines(tmp_path / "file", ReadBounds(line=4 * CHUNK, size=8 * CHUNK)))

    assert [(1, long), (2, b"rest")] == lines


def test_several_gzip_members_are_one_file(tmp_path):
    """That is what `cat a.gz b.gz` makes."""
    (tmp_path / "file").write_bytes(gzip.compress(b"a\nb") + gzip.compress(b"c\n"))

    assert [(1, b"a"), (2, b"bc")] == list(read_lines(tmp_path / "file", BOUNDS))


@pytest.mark.parametrize("pack", PACKED)
def test_a_long_line_is_refused_with_its_number(pack, tmp_path):
    (tmp_path / "file").write_bytes(pack(b"short\n" + b"x" * 1001))

    assert "file:2: has a line of more than 1000 bytes; check that this is the right file" == told(tmp_path / "file")


@pytest.mark.parametrize("pack", PACKED)
def test_what_grows_beyond_measure_is_not_read_to_its_end(pack, tmp_path):
    """A hundred million bytes of nothing, a few kilobytes when compressed."""
    (tmp_path / "file").write_bytes(pack(b"\n" * 100_000_000))

    assert "file: is larger than 100000 bytes when decompressed; split it" == told(tmp_path / "file")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(gzip.compress(TEXT)[:-6], "file: is truncated in its compressed data", id="gzip cut short"),
        pytest.param(zstd(TEXT * 99)[:-6], "file: is truncated in its compressed data", id="zstd cut short"),
        pytest.param(gzip.compress(TEXT) + b"more", "file: is damaged", id="gzip and something else"),
        pytest.param(zstd(TEXT) + b"more", "file: has data after the end", id="zstd and something else"),
        pytest.param(gzip.compress(TEXT)[:-8] + bytes(8), "file: is damaged", id="gzip altered"),
        pytest.param(zstd(TEXT)[:6] + b"\xff" * 30, "file: is damaged", id="zstd altered"),
    ],
)
def test_a_damaged_file_is_refused(data, words, tmp_path):
    (tmp_path / "file").write_bytes(data)

    assert told(tmp_path / "file").startswith(words)


def test_a_file_that_is_not_there_is_told(tmp_path):
    assert "file: cannot be read (No such file or directory); check the name and its permissions" == told(
        tmp_path / "file"
    )


def test_an_empty_file_has_no_lines(tmp_path):
    (tmp_path / "file").touch()

    assert [] == list(read_lines(tmp_path / "file", BOUNDS))
