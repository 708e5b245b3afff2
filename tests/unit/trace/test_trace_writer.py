"""Writing traces: whole or not at all, and the same bytes for the same records."""

import math

import pytest
import zstandard

from lamina.model.decision import Decision
from lamina.model.errors import InputError, WiringError
from lamina.trace.trace_records import LINE_LIMIT, PodBound, PodDecided, TraceEnd, TraceHeader
from lamina.trace.trace_writer import MemoryTrace, TraceWriter, atomic_write

HEADER = TraceHeader(at=0.0, scenario="rollout")
BOUND = PodBound(1.5, "shop/cart", "n1")

LINES = (
    b'{"type":"header","at":0.0,"format":"lamina-trace","version":2,'
    b'"scenario":"rollout","profile":"","seed":0,"started":0.0}\n'
    b'{"type":"pod-bound","at":1.5,"pod":"shop/cart","node":"n1"}\n'
    b'{"type":"end","at":1.5,"records":2}\n'
)


class StopItError(Exception):
    """Something else went wrong during a run."""


def write(path, *records):
    with TraceWriter(path) as trace:
        for record in records:
            trace.write(record)


def interrupted(path):
    """Begin a trace, and be stopped."""
    with TraceWriter(path) as trace:
        trace.write(HEADER)
        raise StopItError


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_plain_trace_is_the_records_line_by_line(tmp_path):
    """The end is added by closing: its time is the last record's, its count all before it."""
    write(tmp_path / "a.jsonl", HEADER, BOUND)

    assert LINES == (tmp_path / "a.jsonl").read_bytes()


def test_a_compressed_trace_is_the_same_inside(tmp_path):
    """Any zstd program can open it, and it carries a checksum."""
    write(tmp_path / "a.jsonl.zst", HEADER, BOUND)
    data = (tmp_path / "a.jsonl.zst").read_bytes()

    assert LINES == zstandard.ZstdDecompressor().decompressobj().decompress(data)
    assert zstandard.get_frame_parameters(data).has_checksum


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.zst"])
def test_the_same_records_give_the_same_bytes(tmp_path, suffix):
    """Neither the name of the file nor the time of writing is in it."""
    records = [HEADER, *(PodBound(float(number), f"shop/cart-{number}", "n1") for number in range(10_000))]
    write(tmp_path / f"a{suffix}", *records)
    write(tmp_path / f"b{suffix}", *records)

    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


def test_nothing_has_the_final_name_before_the_trace_is_complete(tmp_path):
    with TraceWriter(tmp_path / "a.jsonl") as trace:
        trace.write(HEADER)

        assert not (tmp_path / "a.jsonl").exists()

    assert ["a.jsonl"] == names(tmp_path)


def test_an_exception_leaves_nothing(tmp_path):
    with pytest.raises(StopItError):
        interrupted(tmp_path / "a.jsonl.zst")

    assert [] == names(tmp_path)


def test_an_exception_leaves_the_trace_of_an_earlier_run(tmp_path):
    write(tmp_path / "a.jsonl", HEADER, BOUND)
    with pytest.raises(StopItError):
        interrupted(tmp_path / "a.jsonl")

    assert ["a.jsonl"] == names(tmp_path)
    assert LINES == (tmp_path / "a.jsonl").read_bytes()


def test_a_new_trace_takes_the_place_of_the_old_one(tmp_path):
    (tmp_path / "a.jsonl").write_text("an older run")
    write(tmp_path / "a.jsonl", HEADER, BOUND)

    assert LINES == (tmp_path / "a.jsonl").read_bytes()


def test_closing_and_discarding_twice_is_no_mistake(tmp_path):
    trace = TraceWriter(tmp_path / "a.jsonl")
    trace.write(HEADER)
    trace.write(BOUND)
    trace.close()
    trace.close()
    trace.discard()

    assert LINES == (tmp_path / "a.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("before", "wrong", "words"),
    [
        pytest.param([], BOUND, "must begin with a header", id="no header"),
        pytest.param([HEADER], HEADER, "must not have a second one", id="two headers"),
        pytest.param([HEADER], TraceEnd(0.0, 1), "close\\(\\) writes the end record", id="an end of one's own"),
        pytest.param([HEADER], PodBound(math.nan, "p", "n"), "pod-bound.at is not a finite", id="no time"),
    ],
)
def test_what_a_reader_would_refuse_is_refused_when_written(tmp_path, before, wrong, words):
    """And by both kinds of trace, so that a test with the one speaks for the other."""
    memory = MemoryTrace()
    for record in before:
        memory.write(record)

    with pytest.raises(WiringError, match=words):
        memory.write(wrong)
    with pytest.raises(WiringError, match=words):
        write(tmp_path / "a.jsonl", *before, wrong)


def test_a_trace_without_a_header_cannot_be_closed(tmp_path):
    with pytest.raises(WiringError, match="before its header"), TraceWriter(tmp_path / "a.jsonl"):
        pass

    assert [] == names(tmp_path)


def test_nothing_can_be_written_after_the_end(tmp_path):
    trace = TraceWriter(tmp_path / "a.jsonl")
    trace.write(HEADER)
    trace.close()

    with pytest.raises(WiringError, match="closed"):
        trace.write(BOUND)


def test_a_record_longer_than_readers_accept_is_refused(tmp_path):
    """With what to do about it; the only records that can get so long are decisions in full detail."""
    decision = Decision(
        pod="p", uid="u", at=0.0, attempt=1, profile="", outcome="failed", nodes=0, feasible=0, message="x" * LINE_LIMIT
    )

    with pytest.raises(InputError, match=r"a\.jsonl:2: .*brief detail"):
        write(tmp_path / "a.jsonl", HEADER, PodDecided(0.0, decision))

    assert [] == names(tmp_path)


@pytest.mark.parametrize("name", ["run.json", "run.zst", "run", ".csv"])
def test_a_trace_has_one_of_two_names(tmp_path, name):
    with pytest.raises(InputError, match=r"\*\.jsonl\.zst, or \*\.jsonl"):
        TraceWriter(tmp_path / name)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=r"runs/a\.jsonl: cannot be written \(No such file or directory\)"):
        TraceWriter(tmp_path / "runs" / "a.jsonl")


def test_a_name_that_is_taken_by_a_folder_is_refused_and_the_draft_removed(tmp_path):
    (tmp_path / "a.jsonl").mkdir()
    with pytest.raises(InputError, match="cannot be written"):
        write(tmp_path / "a.jsonl", HEADER)

    assert ["a.jsonl"] == names(tmp_path)


def test_a_trace_in_memory_keeps_the_records():
    trace = MemoryTrace()
    trace.write(HEADER)
    trace.write(BOUND)

    assert [HEADER, BOUND] == trace.records


def test_a_whole_file_is_written_at_once(tmp_path):
    atomic_write(tmp_path / "summary.json", b"{}")
    atomic_write(str(tmp_path / "summary.json"), b"{ }")

    assert ["summary.json"] == names(tmp_path)
    assert b"{ }" == (tmp_path / "summary.json").read_bytes()


def test_a_whole_file_that_cannot_be_written_leaves_nothing(tmp_path):
    (tmp_path / "summary.json").mkdir()
    with pytest.raises(InputError, match=r"summary\.json: cannot be written"):
        atomic_write(tmp_path / "summary.json", b"{}")

    assert ["summary.json"] == names(tmp_path)
