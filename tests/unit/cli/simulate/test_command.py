"""``lamina simulate``: its options, and what is in its folder after runs that ended well, badly, or not at all."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import lamina.simulator.run as simulator
from lamina.cli.simulate.command import simulate
from lamina.model.errors import InputError
from lamina.trace.trace_reader import read_trace
from lamina.trace.trace_writer import TraceWriter

SCENARIO = """\
defaults: {runtime: plain, bandwidth: 10MB, startDelay: 500ms}
images: {app: {base: 10MB}}
nodes: [{name: n, count: 3, cpu: 4, memory: 1Gi}]
pods: [{name: p, count: 6, every: 1s, image: app, cpu: 2, duration: 20s}]
"""

FILES = ["jobs.csv", "machine_states.csv", "schedule.csv", "summary.json", "trace.jsonl.zst"]


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(simulate, [str(one) for one in arguments], catch_exceptions=False)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def figures(*arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(*arguments, "-o", "json").stdout)
    return found


# --------------------------------------------------------------------------------------------------------------- options


@pytest.mark.parametrize(
    ("option", "waiting"),
    [
        # Six pods, each tried when it comes: with the latency of 250 ms each waits for its own attempt.
        pytest.param("free", 0.0, id="free"),
        pytest.param("250ms", 0.25, id="a quarter of a second"),
    ],
)
def test_latency_is_charged_to_decisions(scenario, option, waiting):
    found = figures(scenario, "--latency", option)

    assert waiting == found["startup_seconds"]["decision"]["max"]
    assert {"free": "free", "250ms": "0.25s"}[option] == found["latency"]


def test_a_measured_latency_is_told(scenario):
    told = run(scenario, "--latency", "measured")

    assert "another run gives other figures" in told.stdout


def test_until_ends_the_run_whatever_the_scenario_says(scenario):
    assert (3, 2.0) == tuple(figures(scenario, "--until", "2s")[key] for key in ("decisions", "virtual_seconds"))


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        (
            "--latency",
            "soon",
            "--latency: 'soon' is not a duration; write for example 500ms, 10s, 5m or 1h; or write free",
        ),
        ("--until", "later", "--until: 'later' is not a duration"),
        ("--until", "-1s", "--until: '-1s' is negative"),
    ],
)
def test_a_wrong_option_is_told_in_one_line(scenario, option, value, words):
    with pytest.raises(InputError) as told:
        run(scenario, option, value)

    assert str(told.value).startswith(words)
    assert 1 == len(str(told.value).splitlines())


def test_the_table_shows_what_a_start_consists_of(scenario):
    lines = run(scenario).stdout.splitlines()
    rows = {cells[1].strip(): cells[2:7] for line in lines if (cells := line.split("|")) and len(cells) > 6}

    assert ["waiting to be tried", "decided and bound", "waiting for its pulls", "downloading"] == list(rows)[1:5]
    assert ["unpacking", "starting", "arrival to running"] == list(rows)[5:8]
    # 10 MB at 10 MB/s, and half a second to start.
    assert ["1.50", "1.00", "0.50"] == [
        rows[name][4].strip() for name in ("arrival to running", "downloading", "starting")
    ]


# ------------------------------------------------------------------------------------------------------------ the folder


def test_a_run_leaves_files_that_tell_the_same(scenario, tmp_path):
    out = tmp_path / "out"
    told = run(scenario, "--out", out)

    assert 0 == told.exit_code
    assert FILES == names(out)
    assert figures(scenario) == json.loads((out / "summary.json").read_bytes())
    assert 1 + 6 == len((out / "jobs.csv").read_text().splitlines())
    assert 2 == len((out / "schedule.csv").read_text().splitlines())
    assert len(list(read_trace(out / "trace.jsonl.zst"))) > 6


class DiskFullError(Exception):
    """Something that goes wrong."""


def failing_run(error: BaseException):
    """A run that writes some records and then fails."""
    real = simulator.simulate

    def fail(*arguments, **options):
        real(*arguments, **options)
        raise error

    return fail


@pytest.mark.parametrize(
    "error", [DiskFullError("x"), KeyboardInterrupt(), SystemExit(3)], ids=lambda one: type(one).__name__
)
@pytest.mark.parametrize("before", [{}, dict.fromkeys(FILES, "old")], ids=["an empty folder", "results of before"])
def test_a_run_that_fails_leaves_the_folder_as_it_was(scenario, tmp_path, monkeypatch, error, before):
    out = tmp_path / "out"
    out.mkdir()
    for name, text in before.items():
        (out / name).write_text(text)
    monkeypatch.setattr(simulator, "simulate", failing_run(error))
    with contextlib.suppress(DiskFullError, KeyboardInterrupt, SystemExit):
        run(scenario, "--out", out)

    assert before == {path.name: path.read_text() for path in out.iterdir()}


@pytest.mark.parametrize("when", ["jobs_csv", "schedule_csv"])
def test_a_table_that_cannot_be_made_leaves_nothing_at_all(scenario, tmp_path, monkeypatch, when):
    from lamina.simulator.run import batsim_files

    def fail(*_):
        raise DiskFullError

    monkeypatch.setattr(batsim_files, when, fail)
    with pytest.raises(DiskFullError):
        run(scenario, "--out", tmp_path / "new" / "out")

    assert not (tmp_path / "new").exists()


def test_a_trace_that_cannot_be_completed_leaves_no_summary_either(scenario, tmp_path, monkeypatch):
    def fail(self):
        raise DiskFullError

    monkeypatch.setattr(TraceWriter, "close", fail)
    with pytest.raises(DiskFullError):
        run(scenario, "--out", tmp_path / "out")

    assert not (tmp_path / "out").exists()


@pytest.mark.realtime
@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code", "said", "left"),
    [
        pytest.param(signal.SIGINT, 130, "interrupted: no file was written", [], id="Ctrl-C"),
        pytest.param(signal.SIGTERM, 143, "terminated: no file was written", [], id="SIGTERM"),
        pytest.param(signal.SIGKILL, -signal.SIGKILL, "", ["out"], id="SIGKILL"),
    ],
)
def test_a_run_that_is_stopped_leaves_nothing_under_a_final_name(tmp_path, number, code, said, left):
    """The signal hits a run that goes on for long: pods come for hours of virtual time. Only a kill leaves its drafts."""
    text = SCENARIO.replace("count: 6, every: 1s", "count: 30000, every: 15s").replace("duration: 20s", "duration: 60s")
    (tmp_path / "long.yaml").write_text(text, encoding="utf-8")
    out = tmp_path / "new" / "out"
    command = [sys.executable, "-m", "lamina.cli.main", "simulate", tmp_path / "long.yaml", "--out", out]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        while not (out.is_dir() and any(out.iterdir())) and process.poll() is None:
            time.sleep(0.05)
        os.kill(process.pid, number)
        assert process.stderr is not None
        told = process.stderr.read()

    assert (code, said) == (process.returncode, told.strip())
    assert left == (names(tmp_path / "new") if (tmp_path / "new").exists() else [])
    assert all(name.endswith(".part") for name in (names(out) if left else []))


# ---------------------------------------------------------------------------------------------- decision processes of Batsim


@pytest.mark.parametrize(
    ("options", "words"),
    [
        pytest.param(
            ["--batsim", "timeout=3s"], "--batsim: is about a scheduler that --scheduler names; add it", id="alone"
        ),
        pytest.param(
            ["--scheduler", "kube-scheduler", "--batsim", "timeout=3s"],
            "--batsim: is about a scheduler that is named with batsim:; write it before the name",
            id="another scheduler",
        ),
        pytest.param(
            ["--scheduler", "batsim:tcp://127.0.0.1:1", "--settle", "log"],
            "--settle: a scheduler after batsim: answers when it has decided; omit it",
            id="settling",
        ),
        pytest.param(
            ["--scheduler", "batsim:tcp://127.0.0.1:1", "--latency", "5ms"],
            "--latency: a scheduler after batsim: states how long it decides; omit it",
            id="latency",
        ),
        pytest.param(
            ["--scheduler", "batsim:x", "--profile", "p"], "--scheduler: not together with --profile", id="profile"
        ),
    ],
)
def test_options_that_a_decision_process_does_not_have(scenario, options, words):
    with pytest.raises(InputError) as caught:
        run(scenario, *options)

    assert words in str(caught.value)


def test_a_repeated_run_of_messages_states_its_own_latency(scenario, tmp_path):
    log = tmp_path / "run.messages"
    log.write_text('{"format":"lamina-batsim-messages","version":1,"scenario":"other"}\n')

    for options, words in (([], "the log is about scenario 'other', not 'small'"), (["--latency", "1s"], "omit it")):
        with pytest.raises(InputError) as caught:
            run(scenario, "--replay", log, *options)
        assert words in str(caught.value)
