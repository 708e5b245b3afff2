"""``lamina replay``: 0 when every decision is the same, 1 with both sides when one is not, 2 and one line for a bad file."""

import json

import msgspec
import pytest
from click.testing import CliRunner

from lamina.cli.main import run
from lamina.cli.replay import replay
from lamina.services.scheduler.recordings import RecordingFiles, RecordingSettings
from lamina.trace.recording import DecideCall, compressed
from lamina.trace.recording_reader import read_recording
from tests.unit.services.scheduler.recorded import Life


@pytest.fixture
def recording(tmp_path):
    life = Life().live(6)
    return RecordingFiles(RecordingSettings(tmp_path), life.writer).write(life.ring.recording())


def altered(path):
    """Say of the last binding that it was to another node."""
    records = list(read_recording(path))[:-1]
    place = max(
        number
        for number, one in enumerate(records)
        if isinstance(one, DecideCall) and any(outcome.kind == "bind" for outcome in one.outcomes)
    )
    decided = records[place]
    assert isinstance(decided, DecideCall)
    outcomes = tuple(msgspec.structs.replace(one, node="n99") for one in decided.outcomes)
    records[place] = msgspec.structs.replace(decided, outcomes=outcomes)
    path.write_bytes(b"".join(compressed(records)))
    return path


def test_equal_decisions_end_in_0(recording):
    result = CliRunner().invoke(replay, [str(recording)])

    assert 0 == result.exit_code
    assert "equal      yes" in result.output


def test_a_different_decision_ends_in_1_and_is_shown_both_ways(recording):
    result = CliRunner().invoke(replay, [str(altered(recording))])

    assert 1 == result.exit_code
    assert "equal      no" in result.output
    assert "the decision differs" in result.output
    shown = [line.split() for line in result.output.splitlines() if line.startswith("  re")]
    assert [["recorded", "bind"], ["replayed", "bind"]] == [line[:2] for line in shown if line[1] == "bind"]
    assert "to n99" in result.output


def test_a_program_gets_json(recording):
    report = json.loads(CliRunner().invoke(replay, [str(recording), "-o", "json"]).output)

    assert (True, True, None) == (report["equal"], report["exact"], report["difference"])
    assert report["decisions"] >= 6
    difference = json.loads(CliRunner().invoke(replay, [str(altered(recording)), "-o", "json"]).output)["difference"]
    assert "commands" == difference["why"]
    assert difference["recorded"] != difference["replayed"]


@pytest.mark.parametrize("content", [None, b"", b"hello\n"], ids=["missing", "empty", "text"])
def test_what_is_no_recording_ends_in_2_and_one_line(tmp_path, monkeypatch, capsys, content):
    path = tmp_path / "file"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setattr("sys.argv", ["lamina", "replay", str(path)])

    assert 2 == run()
    error = capsys.readouterr().err
    assert 1 == len(error.splitlines())
    assert str(path) in error


def test_nothing_in_a_file_is_a_command_to_the_terminal(recording):
    """Nor markup, nor a line of its own: what a stranger wrote is shown as text."""
    hostile = "\x1b]0;owned\x07\x1b[2J\x9b31m[red]\nequal      yes"
    header, *records = list(read_recording(altered(recording)))[:-1]
    header = msgspec.structs.replace(header, lamina=hostile, exact=False, lost=(hostile,))
    records = [
        msgspec.structs.replace(
            one, outcomes=tuple(msgspec.structs.replace(outcome, message=hostile) for outcome in one.outcomes)
        )
        if isinstance(one, DecideCall)
        else one
        for one in records
    ]
    recording.write_bytes(b"".join(compressed([header, *records])))
    result = CliRunner().invoke(replay, [str(recording)])

    assert 1 == result.exit_code
    assert all(one.isprintable() for one in result.output.replace("\n", ""))
    assert "[red]" in result.output
    assert "equal      yes" not in result.output.splitlines()


def test_a_recorded_crash_that_does_not_come_again_ends_in_1_and_shows_both(recording):
    records = [*list(read_recording(recording))[:-1], DecideCall(1, 0, broke="KeyError: 'n1'")]
    recording.write_bytes(b"".join(compressed(records)))
    result = CliRunner().invoke(replay, [str(recording)])

    assert 1 == result.exit_code
    assert "the core raised an error" in result.output
    assert "the core raised KeyError: 'n1' when this was recorded, and decided in the replay" in result.output


@pytest.mark.parametrize("started", [float("nan"), 1e300])
def test_a_file_from_no_time_ends_in_2_and_one_line(recording, monkeypatch, capsys, started):
    header, *records = list(read_recording(recording))[:-1]
    recording.write_bytes(b"".join(compressed([msgspec.structs.replace(header, started=started), *records])))
    monkeypatch.setattr("sys.argv", ["lamina", "replay", str(recording)])

    assert 2 == run()
    assert 1 == len(capsys.readouterr().err.splitlines())
