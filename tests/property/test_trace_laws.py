"""
Laws of traces: what is written is read, and what is not whole is never taken for whole.

Truncation is tried at every byte, damage at any; the only answers allowed are the records themselves and an error that
a person can act on.
"""

import tempfile
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType

from lamina.model.errors import InputError
from lamina.trace.trace_reader import read_trace
from lamina.trace.trace_records import (
    FORMAT,
    VERSION,
    NodeJoined,
    PodArrived,
    PodBound,
    TraceEnd,
    TraceHeader,
    TraceRecord,
)
from lamina.trace.trace_writer import TraceWriter

SIMPLE = {
    str: st.text(st.characters(codec="utf-8"), max_size=12),
    float: st.floats(allow_nan=False, allow_infinity=False),
    int: st.integers(-(2**70), 2**70),
    bool: st.booleans(),
    NoneType: st.none(),
    UnsetType: st.just(UNSET),
    # What a plugin adds to a decision, as it is read again: a plain mapping.
    Any: st.dictionaries(st.text(max_size=5), st.one_of(st.booleans(), st.integers(-(2**53), 2**53)), max_size=2),
}


def anything(kind):
    """Values of the types that records are made of, records included."""
    if kind in SIMPLE:
        return SIMPLE[kind]
    parts = get_args(kind)
    if get_origin(kind) is Literal:
        return st.sampled_from(parts)
    if get_origin(kind) in (Union, UnionType):
        return st.one_of([anything(part) for part in parts])
    if get_origin(kind) is tuple:
        return st.lists(anything(parts[0]), max_size=3).map(tuple)
    if get_origin(kind) is dict:
        return st.dictionaries(anything(parts[0]), anything(parts[1]), max_size=3)
    return st.builds(kind, **{field.name: anything(field.type) for field in msgspec.structs.fields(kind)})


headers = st.builds(TraceHeader, at=SIMPLE[float], scenario=SIMPLE[str], profile=SIMPLE[str], seed=SIMPLE[int])
happenings = st.one_of([anything(kind) for kind in get_args(TraceRecord) if kind not in (TraceHeader, TraceEnd)])
traces = st.builds(lambda header, rest: [header, *rest], headers, st.lists(happenings, max_size=8))
suffixes = st.sampled_from([".jsonl", ".jsonl.zst"])


def written(records, suffix):
    """The bytes of a trace of *records*."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"run{suffix}")
        with TraceWriter(path) as trace:
            for record in records:
                trace.write(record)
        return path.read_bytes()


def read(data):
    """The records in *data*; None when it is refused as it should be, and any other exception is a failure."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.jsonl")
        path.write_bytes(data)
        try:
            return list(read_trace(path))
        except InputError as refusal:
            (mistake,) = refusal.mistakes
            assert str(path) == mistake.source
            assert mistake.line >= 1
            return None


@given(traces, suffixes)
def test_what_is_written_is_read(records, suffix):
    """Record by record, and then the end."""
    assert [*records, TraceEnd(records[-1].at, len(records))] == read(written(records, suffix))


@given(traces, suffixes)
def test_the_same_records_give_the_same_bytes(records, suffix):
    """Also when they have been through a file."""
    data = written(records, suffix)

    assert data == written(records, suffix)
    assert data == written(read(data)[:-1], suffix)


@given(traces, suffixes, st.data())
def test_a_trace_that_was_cut_short_is_refused(records, suffix, draw):
    """Wherever it was cut."""
    data = written(records, suffix)
    kept = draw.draw(st.integers(0, len(data) - 1))

    assert read(data[:kept]) is None


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.zst"])
def test_no_byte_can_be_missing_at_the_end(suffix):
    """The same, at every byte of one trace."""
    records = [
        TraceHeader(at=0.0, scenario="rollout", profile="lamina", seed=1),
        NodeJoined(0.0, "n1", {"cpu": 4000}, 1e9),
        PodArrived(1.0, "shop/cart", "u1", "shop", ("nginx:1.27",), {"cpu": 100}),
        PodBound(1.0, "shop/cart", "n1"),
    ]
    data = written(records, suffix)

    assert [] == [kept for kept in range(len(data)) if read(data[:kept]) is not None]


@given(traces, st.data())
def test_a_compressed_trace_that_was_altered_is_refused_or_says_the_same(records, draw):
    """Whichever byte was changed to whatever; a few bits of a zstd header mean nothing."""
    data = bytearray(written(records, ".jsonl.zst"))
    data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))

    assert read(bytes(data)) in (None, [*records, TraceEnd(records[-1].at, len(records))])


lines = st.lists(
    st.one_of(
        st.binary(max_size=30),
        st.integers(0, VERSION + 1).map(lambda version: msgspec.json.encode(TraceHeader(at=0.0, version=version))),
        anything(PodBound).map(msgspec.json.encode),
        st.integers(0, 4).map(lambda count: msgspec.json.encode(TraceEnd(0.0, count))),
    ),
    max_size=5,
).map(b"\n".join)


@given(
    st.one_of(st.binary(), lines, lines.map(lambda data: data + b"\n"), st.binary().map(b"\x28\xb5\x2f\xfd".__add__))
)
def test_whatever_is_accepted_is_a_whole_trace(data):
    """Any bytes are read or refused; what is read has one header, one end, and as many records as the end says."""
    records = read(data)

    if records is not None:
        first, *_, last = records
        assert isinstance(first, TraceHeader)
        assert FORMAT == first.format
        assert 1 <= first.version <= VERSION
        assert TraceEnd(last.at, len(records) - 1) == last
        assert [] == [record for record in records[1:-1] if isinstance(record, TraceHeader | TraceEnd)]
