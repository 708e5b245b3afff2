"""Recordings: what was written is read; everything else is refused in one line that says what to try."""

import tracemalloc
from typing import Any, get_args

import msgspec
import pytest
import zstandard

from lamina.model import events
from lamina.model.cluster_objects import ObjectKey
from lamina.model.command_outcome import CommandOutcome
from lamina.model.disruption_budget import PodDisruptionBudget
from lamina.model.errors import InputError
from lamina.model.events import Event
from lamina.model.extender_answer import ExtenderAnswer, ExtenderRefusal
from lamina.model.node_usage import NodeUsage, ResourceUsage
from lamina.testing import a_node, a_pod, an_image, held
from lamina.trace.recording import (
    RECORD,
    DecideCall,
    RecordingEnd,
    RecordingHeader,
    RecordingRecord,
    SnapshotPart,
    TakenEvents,
    compressed,
)
from lamina.trace.recording_reader import FIRST_LIMIT, read_recording

IMAGE = an_image("app:1", {"base": 5})
HAPPENED: list[Event] = [
    events.TimePassed(1.5),
    events.NodeSeen(a_node("n1", cpu=4)),
    events.NodeGone("n1"),
    events.PodSeen(a_pod("p1", cpu=1)),
    events.PodGone("p1"),
    events.NamespaceSeen("shop", {"a": "b"}, {"c": "d"}),
    events.NamespaceGone("shop"),
    events.ObjectSeen(PodDisruptionBudget(namespace="shop", name="web", disruptions_allowed=1)),
    events.ObjectGone(ObjectKey("PodDisruptionBudget", "shop", "web")),
    events.ImagesLearned((IMAGE,), 30.0),
    events.LayersReported(held("n1", IMAGE)),
    events.LayersWithdrawn("n1"),
    events.PluginHistoryLoaded("QosAware", b"{}"),
    events.UsageReported((NodeUsage("n1", ResourceUsage(5.0), None, 0.0, 60.0),)),
    events.BindDone("p1"),
    events.BindFailed("p1", "conflict"),
    events.EvictFailed("p2", "p1", "forbidden", True),
    events.ReportUnschedulableFailed("p1"),
    events.WorkDone("p1", "Volume", 1),
    events.WorkFailed("p1", "Volume", 1, "no"),
    events.PermitGiven("p1", "Gate"),
    events.PermitRefused("p1", "Gate", "no"),
    events.ExtendersAnswered("p1", 3, ExtenderAnswer(refusals=(ExtenderRefusal(("n1",), ("no",), final=True),))),
]
DECIDED = DecideCall(1, 1, (2,), (CommandOutcome(kind="bind", pod="default/p1", uid="p1", node="n1", total=5),))
RECORDS: list[RecordingRecord] = [
    RecordingHeader(lamina="0.1", configuration="{}"),
    SnapshotPart("wake", msgspec.Raw(msgspec.msgpack.encode(None))),
    TakenEvents(tuple(HAPPENED)),
    DECIDED,
]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "one.lamrec"


def framed(*records: object) -> bytes:
    data = [msgspec.msgpack.encode(record) for record in records]
    return b"".join(len(one).to_bytes(4, "big") + one for one in data)


def refusal(path, data: bytes) -> str:
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        list(read_recording(path))
    text = str(caught.value)
    assert "\n" not in text
    return text.removeprefix(f"{path}: ")


def test_what_was_written_is_read_with_an_end_that_counts(path):
    path.write_bytes(b"".join(compressed(RECORDS)))

    assert [*RECORDS, RecordingEnd(4)] == list(read_recording(path))


def test_every_kind_of_event_survives_being_written_down():
    """The table above has each of them: one that is added has to be added there, too."""
    assert kinds(Event) == {type(event) for event in HAPPENED}
    assert TakenEvents(tuple(HAPPENED)) == RECORD.decode(msgspec.msgpack.encode(TakenEvents(tuple(HAPPENED))))


def kinds(union: Any) -> set[type]:
    return {one for part in get_args(union) for one in (kinds(part) if get_args(part) else {part})}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(b"", "is empty", id="empty"),
        pytest.param(b'{"type":"header","format":"lamina-trace"}\n', "is not a recording of Lamina", id="a trace"),
        pytest.param(b"\x00\x00\x00\x02hi", "is not a recording of Lamina", id="text"),
        pytest.param(b"\x00\x00", "is not a recording of Lamina", id="two bytes"),
        pytest.param(b"\xff\xff\xff\xff" + bytes(64), "is not a recording of Lamina", id="huge header"),
        pytest.param(framed(RecordingHeader(version=2)), "has version 2, this Lamina reads up to 1", id="newer"),
        pytest.param(framed(*RECORDS), "its end record is missing", id="no end"),
        pytest.param(framed(*RECORDS)[:-1], "in the middle of a record", id="cut"),
        pytest.param(framed(*RECORDS, RecordingEnd(3)), "its end record counts 3 records, found 4", id="miscounted"),
        pytest.param(framed(*RECORDS, RecordingEnd(4), DECIDED), "has data after its end record", id="goes on"),
        pytest.param(
            framed(RECORDS[0], RECORDS[0], RecordingEnd(2)),
            "has a record of type 'header' in the wrong place",
            id="two headers",
        ),
        pytest.param(
            framed(RECORDS[0], DECIDED, RECORDS[1], RecordingEnd(3)),
            "has a record of type 'part' in the wrong place",
            id="late part",
        ),
        pytest.param(framed(RECORDS[0], {"type": "decided"}, RecordingEnd(2)), "has an invalid record", id="no record"),
        pytest.param(
            framed(RECORDS[0], {"type": "taken", "events": [{"type": "PodBorn"}]}, RecordingEnd(2)),
            "'PodBorn'",
            id="new event",
        ),
        pytest.param(framed(RECORDS[0]) + b"\xff\xff\xff\xff", "has a record of 4294967295 bytes", id="huge record"),
    ],
)
def test_what_is_no_whole_recording_is_refused(path, data, words):
    assert words in refusal(path, data)
    assert words in refusal(path, zstandard.ZstdCompressor().compress(data))


def test_a_damaged_file_is_refused(path):
    data = bytearray(b"".join(compressed(RECORDS)))
    data[len(data) // 2] ^= 0xFF

    refusal(path, bytes(data))


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        list(read_recording(tmp_path / "nowhere.lamrec"))


def test_a_bomb_is_refused_before_it_goes_off(path):
    """Zeros without end are a record of length 0, which is no header; a huge first record is not waited for."""
    bomb = zstandard.ZstdCompressor().compress((FIRST_LIMIT + 1).to_bytes(4, "big") + bytes(300 * 1024**2))
    tracemalloc.start()
    try:
        assert "is not a recording" in refusal(path, bomb)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 64 * 1024**2
