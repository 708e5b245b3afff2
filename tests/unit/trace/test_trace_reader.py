"""Reading traces: what is whole is read, and everything else is refused with the line and what to try."""

import tracemalloc

import pytest
import zstandard

from lamina.model.errors import InputError
from lamina.trace.trace_reader import COMPRESSED_CHUNK, read_trace
from lamina.trace.trace_records import LINE_LIMIT, PodBound, TraceEnd, TraceHeader, TraceRecord
from lamina.trace.trace_writer import TraceWriter

HEADER = b'{"type":"header","at":0.0,"format":"lamina-trace","version":2}\n'
BOUND = b'{"type":"pod-bound","at":1.5,"pod":"shop/cart","node":"n1"}\n'
END = b'{"type":"end","at":1.5,"records":2}\n'

WHOLE = [TraceHeader(at=0.0), PodBound(1.5, "shop/cart", "n1"), TraceEnd(1.5, 2)]

compress = zstandard.ZstdCompressor(write_checksum=True, write_content_size=False).compress


def refusal(path, data, **options):
    """What reading *data* is refused with."""
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        list(read_trace(path, **options))
    return str(caught.value).removeprefix(str(path))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.jsonl.zst"


@pytest.mark.parametrize(
    "data", [pytest.param(HEADER + BOUND + END, id="plain"), pytest.param(compress(HEADER + BOUND + END), id="zstd")]
)
def test_a_whole_trace_is_read_from_header_to_end(path, data):
    """What is inside decides how it is read, not the name: people unpack files and keep the name."""
    path.write_bytes(data)

    assert WHOLE == list(read_trace(path))


def test_a_trace_of_the_first_version_is_still_read(path):
    """All it can say, this version can; the header keeps saying which one it is."""
    path.write_bytes(HEADER.replace(b":2}", b":1}") + BOUND + END)

    assert [TraceHeader(at=0.0, version=1), *WHOLE[1:]] == list(read_trace(path))


def test_what_was_written_is_read(tmp_path):
    """Over several batches and chunks."""
    written: list[TraceRecord] = [TraceHeader(at=0.0, seed=3)]
    written += [PodBound(n / 7, f"shop/cart-{n}", f"n{n % 11}") for n in range(20_000)]
    with TraceWriter(str(tmp_path / "run.jsonl.zst")) as trace:
        for record in written:
            trace.write(record)

    assert [*written, TraceEnd(written[-1].at, len(written))] == list(read_trace(str(tmp_path / "run.jsonl.zst")))


def test_fields_that_a_later_lamina_adds_are_passed_over(path):
    path.write_bytes(HEADER + BOUND.replace(b"}", b',"zone":"a"}') + END)

    assert WHOLE == list(read_trace(path))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(b"", ":1: is empty; repeat the run", id="empty file"),
        pytest.param(compress(b""), ":1: is empty; repeat the run", id="nothing compressed"),
        pytest.param(b"\x89PNG\r\n\x1a\n", ":1: is not a trace of Lamina; name a file", id="a picture"),
        pytest.param(b'{"kind":"List"}\n', ":1: is not a trace of Lamina; name a file", id="other JSON"),
        pytest.param(b'{"type":"header","format":"x"}\n', ":1: is not a trace of Lamina", id="another format"),
        pytest.param(BOUND + END, ":1: is not a trace of Lamina", id="no header"),
        pytest.param(HEADER.replace(b":2}", b":0}"), ":1: is not a trace of Lamina", id="version nought"),
        pytest.param(b"[" * 100_000 + b"\n", ":1: is not a trace of Lamina", id="a deep first line"),
        pytest.param(b"hello", ":1: is not a trace of Lamina", id="a text without an end of line"),
        pytest.param(
            HEADER.replace(b":2}", b':3,"at":"noon"}'),
            ":1: has version 3, this Lamina reads up to 2; use a newer",
            id="newer version, even if nothing else can be read",
        ),
        pytest.param(HEADER + b"{}\n", ":2: is not a trace record (", id="no type"),
        pytest.param(HEADER + b'{"type":"pod-lost","at":0}\n', ":2: is not a trace record (", id="unknown type"),
        pytest.param(HEADER + b'{"type":"end","at":null}\n', ":2: is not a trace record (", id="wrong field"),
        pytest.param(HEADER + b"\n" + END, ":2: is not a trace record (", id="empty line"),
        pytest.param(HEADER + b"\xff\xfe\n" + END, ":2: is not a trace record (", id="not text"),
        pytest.param(HEADER + b'{"type":"node-left","at":0,"node":"\xff"}\n', ":2: is not a trace", id="not UTF-8"),
        pytest.param(HEADER + b'{"x":' + b"[" * 100_000 + b"\n", ":2: is not a trace record (", id="a deep line"),
        pytest.param(HEADER + HEADER + END, ":2: has a second header; keep one trace", id="two traces, one end"),
        pytest.param(HEADER + BOUND + END + HEADER, ":4: has data after its end record", id="more after the end"),
        pytest.param(HEADER + BOUND, ":3: is truncated, its end record is missing", id="no end"),
        pytest.param(HEADER + END, ":2: its end record counts 2 records before it, found 1", id="records missing"),
        pytest.param(
            HEADER + BOUND + BOUND + END, ":4: its end record counts 2 records before it, found 3", id="records added"
        ),
        pytest.param(HEADER + BOUND + END[:-1], ":3: is truncated in the middle", id="only the last byte missing"),
        pytest.param(HEADER[:-1], ":1: is truncated in the middle of a record", id="cut in the header"),
    ],
)
@pytest.mark.parametrize("pack", [pytest.param(bytes, id="plain"), pytest.param(compress, id="zstd")])
def test_a_file_that_is_not_a_whole_trace_is_refused(path, data, pack, words):
    """With the file, the line and what to try."""
    said = refusal(path, data if data[:4] == b"\x28\xb5\x2f\xfd" else pack(data))

    assert said.startswith(words)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        pytest.param(lambda data: data[:-4], ":4: is truncated in its compressed data", id="checksum missing"),
        pytest.param(lambda data: data[:-1], ":4: is truncated in its compressed data", id="last byte missing"),
        pytest.param(lambda data: data[:10], ":1: is truncated in its compressed data", id="hardly begun"),
        pytest.param(lambda data: data[:-1] + b"?", ":1: is damaged (", id="checksum wrong"),
        pytest.param(lambda data: data + b"?", ":4: has data after the end of its compressed data", id="a byte more"),
        pytest.param(lambda data: data + data, ":4: has data after the end of its compressed data", id="twice"),
        pytest.param(
            lambda data: data + b"?" * COMPRESSED_CHUNK,
            ":4: has data after the end of its compressed data",
            id="a tail",
        ),
    ],
)
def test_compressed_data_that_is_not_as_it_was_written_is_refused(path, damage, words):
    assert refusal(path, damage(compress(HEADER + BOUND + END))).startswith(words)


def test_a_line_without_end_is_given_up(path):
    """Long before it is all in memory."""
    said = refusal(path, HEADER + b"x" * (LINE_LIMIT + 1) + b"\n" + END)

    assert said.startswith(f":2: has a line of more than {LINE_LIMIT} bytes")


def test_a_line_as_long_as_allowed_is_read(path):
    name = "n" * (LINE_LIMIT - len('{"type":"node-left","at":1.5,"node":""}'))
    line = f'{{"type":"node-left","at":1.5,"node":"{name}"}}\n'.encode()
    path.write_bytes(compress(HEADER + line + END))

    assert name == list(read_trace(path))[1].node


def test_a_file_that_unpacks_to_more_than_the_limit_is_refused(path):
    said = refusal(path, compress(HEADER + BOUND * 1000 + END), size_limit=10_000)

    assert said.startswith(":1: is larger than 10000 bytes when decompressed")


@pytest.mark.parametrize("filling", [b" ", b"\n"], ids=["one endless line", "endless empty lines"])
def test_a_small_file_cannot_take_a_large_memory(path, filling):
    """This much packs into a few kilobytes; reading it holds no more than a few pieces at a time."""
    packer = zstandard.ZstdCompressor().compressobj()
    data = b"".join([packer.compress(HEADER), *(packer.compress(filling * 2**20) for _ in range(128)), packer.flush()])
    path.write_bytes(data)
    tracemalloc.start()
    try:
        with pytest.raises(InputError):
            list(read_trace(path))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert len(data) < 2**15
    assert most < 64 * 2**20


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=r"gone\.jsonl: cannot be read \(No such file or directory\); check the name"):
        list(read_trace(tmp_path / "gone.jsonl"))


def test_records_come_as_they_are_read(path):
    """The first is there before the last has been looked at."""
    path.write_bytes(HEADER + BOUND + b"nonsense")
    trace = read_trace(path)

    assert WHOLE[:2] == [next(trace), next(trace)]
    with pytest.raises(InputError, match="truncated"):
        next(trace)
