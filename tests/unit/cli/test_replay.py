"""``lamina replay``: 0 when every decision is the same, 1 with both sides when one is not, 2 and one line for a bad file."""

import json

import msgspec
import pytest
from click.testing import CliRunner

from lamina.cli.main import run
from lamina.cli.replay import replay
from lamina.services.scheduler.recordings import RecordingFiles, RecordingSettings
from lamina.trace.recording import Decided, compressed
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
        if isinstance(one, Decided) and any(outcome.kind == "bind" for outcome in one.outcomes)
    )
    decided = records[place]
    assert isinstance(decided, Decided)
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
    assert "the decision came out otherwise" in result.output
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
