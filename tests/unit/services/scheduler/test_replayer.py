"""Replays: every decision is compared, the first that differs is shown both ways, and bad files are refused."""

import math
from typing import Any

import msgspec
import pytest

from lamina.model.command_outcome import CommandOutcome
from lamina.model.errors import InputError
from lamina.model.events import TimePassed
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.loop.loop_snapshot import FIELDS
from lamina.services.scheduler.replayer import ReplayResult, replay_recording
from lamina.trace.recording import DecideCall, RecordingHeader, RecordingRecord, SnapshotPart, TakenEvents
from tests.unit.services.scheduler.recorded import REGISTRY, Life, records_of


@pytest.fixture(scope="module")
def records(tmp_path_factory) -> list[RecordingRecord]:
    """A recording that begins in the middle of a life."""
    life = Life().live(12)
    life.ring._segments = [life.ring._begin()]
    life.live(8)
    return records_of(b"".join(life.writer.encode(life.ring.recording())), tmp_path_factory.mktemp("recorded"))


def played(records: list[RecordingRecord]) -> ReplayResult:
    return replay_recording("file", records, REGISTRY)


def changed(records: list[RecordingRecord], kind: type, change: Any, place: int = 0) -> list[RecordingRecord]:
    """Return the records, with the *place*-th of a kind for which *change* returns something replaced by it."""
    found = 0
    result = []
    for record in records:
        new = change(record) if isinstance(record, kind) else None
        if new is not None:
            found += 1
            if found == place + 1:
                record = new
        result.append(record)
    assert found > place
    return result


def bound_elsewhere(record: DecideCall) -> DecideCall | None:
    if not any(one.kind == "bind" for one in record.outcomes):
        return None
    outcomes = tuple(
        msgspec.structs.replace(one, node="elsewhere") if one.kind == "bind" else one for one in record.outcomes
    )
    return msgspec.structs.replace(record, outcomes=outcomes)


def test_what_was_recorded_comes_out_the_same(records):
    found = played(records)

    assert found.equal
    assert found.events == sum(len(record.events) for record in records if isinstance(record, TakenEvents))
    assert found.decisions == sum(record.tried for record in records if isinstance(record, DecideCall)) >= 8


def test_the_first_decision_that_differs_is_shown_both_ways_and_ends_the_replay(records):
    found = played(changed(records, DecideCall, bound_elsewhere, place=2))
    difference = found.difference

    assert not found.equal
    assert difference is not None
    assert ("commands", found.decisions + 1) == (difference.why, difference.decision)
    assert "elsewhere" == next(one.node for one in difference.recorded if one.kind == "bind")
    assert "elsewhere" != next(one.node for one in difference.replayed if one.kind == "bind")
    assert found.decisions < played(records).decisions


@pytest.mark.parametrize(
    ("change", "why"),
    [
        pytest.param(lambda one: msgspec.structs.replace(one, picks=(*one.picks, 0)), "ties", id="one tie more"),
        pytest.param(
            lambda one: msgspec.structs.replace(one, picks=one.picks[1:]) if one.picks else None, "ties", id="one less"
        ),
        pytest.param(lambda one: msgspec.structs.replace(one, tried=one.tried + 1), "attempts", id="attempts"),
        pytest.param(
            lambda one: msgspec.structs.replace(one, outcomes=(*one.outcomes, CommandOutcome(kind="wake", at=1.0))),
            "commands",
            id="a command more",
        ),
    ],
)
def test_everything_about_a_decision_is_compared(records, change, why):
    found = played(changed(records, DecideCall, change))

    assert found.difference is not None
    assert found.difference.why in {why, "commands"}


@pytest.mark.parametrize("method", ["take", "decide"])
def test_a_core_that_breaks_is_what_a_replay_is_to_find(records, method, monkeypatch):
    """A live crash that was recorded is seen again, and where; it is no traceback."""

    def broken(self: Loop, *_: object) -> None:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(Loop, method, broken)
    found = played(records)

    assert found.difference is not None
    assert "error" == found.difference.why
    assert "the core raised ZeroDivisionError while" in found.difference.message


def test_a_crash_that_comes_again_is_shown_with_the_recorded_one(records, monkeypatch):
    def broken(self: Loop, *_: object) -> None:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(Loop, "decide", broken)
    parts = [record for record in records if isinstance(record, RecordingHeader | SnapshotPart)]
    found = played([*parts, DecideCall(1, 0, broke="KeyError: 'n1'")])

    assert found.difference is not None
    assert "ZeroDivisionError while deciding: by nothing (when this was recorded, it raised KeyError: 'n1')" in (
        found.difference.message
    )


def a_part(records: list[RecordingRecord], name: str, value: object) -> list[RecordingRecord]:
    return [
        SnapshotPart(name, msgspec.Raw(msgspec.msgpack.encode(value)))
        if isinstance(record, SnapshotPart) and record.name == name
        else record
        for record in records
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(lambda found: found[1:], "does not begin with a header", id="no header"),
        pytest.param(
            lambda found: [one for one in found if getattr(one, "name", "") != "queue"],
            "has no queue",
            id="part missing",
        ),
        pytest.param(
            lambda found: a_part(found, "changes", "many"), "cannot be read (changes: ", id="part of another kind"
        ),
        pytest.param(
            lambda found: [found[0], SnapshotPart("secrets", msgspec.Raw(b"\x80")), *found[1:]],
            "'secrets'",
            id="unknown part",
        ),
        pytest.param(
            lambda found: a_part(found, "cluster.columns", columns([])), "but has only 0 rows", id="rows without nodes"
        ),
        pytest.param(
            lambda found: [msgspec.structs.replace(found[0], configuration=OTHER), *found[1:]],
            "there is no plugin 'Theirs'",
            id="plugin that is not installed",
        ),
        pytest.param(
            lambda found: [msgspec.structs.replace(found[0], configuration=UNKNOWN), *found[1:]],
            "is inconsistent",
            id="other schedulers",
        ),
        pytest.param(
            lambda found: [msgspec.structs.replace(found[0], detail="chatty"), *found[1:]],
            "unknown detail 'chatty'",
            id="detail",
        ),
        *[
            pytest.param(
                lambda found, started=started: [msgspec.structs.replace(found[0], started=started), *found[1:]],
                "invalid start time",
                id=f"began at {started}",
            )
            for started in (math.nan, math.inf, -1.0, 1e300)
        ],
        pytest.param(
            lambda found: [msgspec.structs.replace(found[0], carried=-5), *found[1:]],
            "carried commands -5",
            id="carried",
        ),
        *[
            pytest.param(
                lambda found, now=now: [*found[:-1], TakenEvents((TimePassed(now),)), found[-1]],
                "invalid time",
                id=f"now {now}",
            )
            for now in (math.nan, math.inf)
        ],
    ],
)
def test_what_cannot_be_replayed_is_refused_in_one_line(records, change, words):
    with pytest.raises(InputError) as caught:
        played(change(records))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def columns(nodes: list[object]) -> dict[str, object]:
    return {"nodes": nodes, "spare": [], "image_sizes": {}, "rules": [], "namespaces": {}}


OTHER = """
{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
 "profiles": [{"plugins": {"score": {"enabled": [{"name": "Theirs"}]}}}]}
"""
UNKNOWN = """
{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
 "profiles": [{"schedulerName": "unknown"}]}
"""


def test_every_part_of_a_snapshot_is_needed(records):
    """A list may be empty, and is left out then."""
    named = {record.name for record in records if isinstance(record, SnapshotPart)}

    assert named <= set(FIELDS)
    assert isinstance(records[0], RecordingHeader)
