"""
Laws of recordings from strangers: whatever stands in one, a replay reports or refuses, and never breaks.

A good recording is altered in one place, deep inside the snapshot or an event, and replayed.
"""

import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.model.errors import InputError
from lamina.services.scheduler.event_ring import RingLimits
from lamina.services.scheduler.replayer import ReplayResult, replay_recording
from lamina.trace.recording import DecideCall, RecordingRecord, SnapshotPart, TakenEvents
from tests.unit.services.scheduler.recorded import REGISTRY, Life, records_of

pytestmark = pytest.mark.slow

VALUES: list[Any] = [
    None, True, -1, 0, 7, 2**31, 2**62, -(2**63), float("nan"), float("inf"), "", "x", "n1", [], [[]], {}, {"x": 1}
]  # fmt: skip


def recorded() -> list[RecordingRecord]:
    life = Life(RingLimits(entries=60)).live(25)
    with tempfile.TemporaryDirectory() as folder:
        return records_of(b"".join(life.writer.encode(life.ring.recording())), Path(folder))


RECORDS = recorded()


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """List the ways to everything in a tree."""
    found = [path]
    inside = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in inside:
        found += places(value, (*path, key))
    return found


def altered(tree: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return a tree with something else in one place."""
    if not path:
        return value
    copy = tree.copy()
    copy[path[0]] = altered(tree[path[0]], path[1:], value)
    return copy


def altered_raw(data: msgspec.Raw, choice: int, value: Any) -> msgspec.Raw:
    tree = msgspec.msgpack.decode(data)
    found = places(tree)
    return msgspec.Raw(msgspec.msgpack.encode(altered(tree, found[choice % len(found)], value)))


def altered_taken(record: TakenEvents, choice: int, value: Any) -> TakenEvents | None:
    """Return events with something else in one place; None if those are no events, which the reader refuses."""
    try:
        return msgspec.msgpack.decode(
            altered_raw(msgspec.Raw(msgspec.msgpack.encode(record)), choice, value), type=TakenEvents
        )
    except msgspec.ValidationError:
        return None


@settings(max_examples=settings().max_examples * 2, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 1_000_000), st.sampled_from(VALUES))
def test_a_recording_that_was_altered_is_replayed_or_refused(which, choice, value):
    """With another end, in one line; a replay that differs says so."""
    records = list(RECORDS)
    candidates = [
        number for number, one in enumerate(records) if isinstance(one, SnapshotPart | TakenEvents | DecideCall)
    ]
    place = candidates[which % len(candidates)]
    record = records[place]
    if isinstance(record, SnapshotPart):
        records[place] = SnapshotPart(record.name, altered_raw(record.data, choice, value))
    elif isinstance(record, TakenEvents):
        taken = altered_taken(record, choice, value)
        if taken is None:
            return
        records[place] = taken
    else:
        records[place] = msgspec.structs.replace(record, limit=choice % 3)
    found = ended(records)
    if isinstance(found, ReplayResult):
        assert found.equal == (found.difference is None)
    else:
        assert 1 == len(str(found).splitlines())


def ended(records: list[RecordingRecord]) -> ReplayResult | InputError:
    try:
        return replay_recording("file", records, REGISTRY)
    except InputError as error:
        return error
