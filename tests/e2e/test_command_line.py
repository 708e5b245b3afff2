"""The command line as a person meets it: help, output, exit codes, mistakes."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import yaml

from lamina.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
FOUNDING = ROOT / "examples" / "founding" / "scenario.yaml"

A_POD_TOO_LARGE = """\
images: {app: {base: 1MB}}
nodes:
- {name: n, cpu: 4, memory: 1Gi}
pods:
- {name: huge, image: app, cpu: 8}
- {name: misspelt, imaeg: app}
"""


def lamina(*arguments: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lamina.cli.main", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=240, check=False)


def test_help_lists_the_commands_and_imports_nothing_heavy() -> None:
    """
    A tool that is started often must start at once.
    """
    heavy = "import sys; from lamina.cli.main import lamina; lamina(['--help'], standalone_mode=False); print(sorted(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, timeout=60, check=True).stdout

    assert all(name in shown for name in COMMANDS)
    assert not any(f"'{module}'" in shown for module in ("numpy", "rich", "msgspec", "yaml", "zstandard"))


@pytest.mark.parametrize("command", list(COMMANDS))
def test_every_command_has_help_with_examples(command: str) -> None:
    """
    People look before they read.
    """
    told = lamina(command, "--help")

    assert 0 == told.returncode
    assert re.search(rf"lamina\S* {command}", told.stdout.split("Examples:")[1])


def test_python_runs_the_package_as_the_command() -> None:
    """
    For machines on which the folder of scripts is not on the PATH.
    """
    told = subprocess.run([sys.executable, "-m", "lamina", "version"], capture_output=True, text=True, check=False)

    assert (0, lamina("--version").stdout, "") == (told.returncode, told.stdout, told.stderr)


def test_a_scenario_on_standard_input_gives_the_same_figures() -> None:
    """
    And its imports and labels do not show where it was copied to.
    """
    command = [sys.executable, "-m", "lamina", "simulate", "-", "-o=json"]
    with FOUNDING.open("rb") as file:
        told = subprocess.run(command, stdin=file, capture_output=True, text=True, timeout=240, check=False)

    assert (0, lamina("simulate", FOUNDING, "--output", "json").stdout) == (told.returncode, told.stdout)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param("lamina sim", ["plain,simulate"], id="a command"),
        pytest.param("lamina catalog g", ["plain,generate"], id="a command of a group"),
        pytest.param("lamina simulate --out", ["plain,--out", "plain,--output"], id="an option"),
        pytest.param("lamina agent --onc", ["plain,--once"], id="an option of a command's old name"),
    ],
)
def test_a_shell_can_complete_words(words: str, expected: list[str]) -> None:
    """
    As click does it; docs/command-line.md shows how to switch it on.
    """
    asked = {"_LAMINA_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    told = subprocess.run(
        [sys.executable, "-m", "lamina"],
        capture_output=True,
        text=True,
        env=os.environ | asked,
        timeout=60,
        check=False,
    )

    assert (expected, "") == (told.stdout.splitlines(), told.stderr)


def test_simulate_writes_trace_and_summary_and_explain_reads_them(tmp_path: Path) -> None:
    """
    The whole way from a scenario to an explanation.
    """
    run = lamina("simulate", FOUNDING, "--detail", "full", "--out", tmp_path / "out")
    why = lamina("explain", "p3", "--trace", tmp_path / "out")
    data = json.loads(lamina("explain", "default/p3", "--trace", tmp_path / "out", "-o", "json").stdout)
    same = yaml.safe_load(lamina("explain", "p3", "--trace", tmp_path / "out" / "trace.jsonl.zst", "-o", "yaml").stdout)

    assert (0, 0) == (run.returncode, why.returncode)
    written = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert ["jobs.csv", "machine_states.csv", "schedule.csv", "summary.json", "trace.jsonl.zst"] == written
    assert 3 == json.loads((tmp_path / "out" / "summary.json").read_bytes())["pods"]["started"]
    assert "default/p3 -> n3, 180 points ahead of n1" in why.stdout
    assert "has 500 MB, would pull" in why.stdout
    assert "n3" == data["chosen"]["node"]
    assert data == same


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_simulate_prints_its_summary_as_data(output: str) -> None:
    """
    The same figures as in summary.json.
    """
    text = lamina("simulate", FOUNDING, "-o", output).stdout

    figures = msgspec.json.decode(text) if output == "json" else yaml.safe_load(text)
    assert ("founding", "lamina-balanced", 3) == (figures["scenario"], figures["profile"], figures["pulls"])


def test_all_mistakes_of_a_scenario_are_told_at_once_and_nothing_is_written(tmp_path: Path) -> None:
    """
    Exit 2; file, line, path and what to try, one line each; no half-made output.
    """
    (tmp_path / "bad.yaml").write_text(A_POD_TOO_LARGE, encoding="utf-8")

    told = lamina("simulate", "bad.yaml", "--out", "out", cwd=tmp_path)

    assert 2 == told.returncode
    assert ["bad.yaml:5", "bad.yaml:6"] == sorted(line.split(": ")[0] for line in told.stderr.splitlines())
    assert "did you mean 'image'?" in told.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["simulat"], "did you mean 'simulate'?", id="a misspelt command"),
        pytest.param(["simulate", "nowhere.yaml"], "nowhere.yaml", id="a file that is not there"),
        pytest.param(
            ["simulate", FOUNDING, "--profile", "balanced"], "did you mean 'lamina-balanced'?", id="a misspelt profile"
        ),
        pytest.param(
            ["simulate", FOUNDING, "--profile", "./x.yaml"], "x.yaml: cannot be read", id="no such profile file"
        ),
        pytest.param(["simulate", FOUNDING, "--sead", "1"], "--seed", id="a misspelt flag"),
        pytest.param(
            ["simulate", FOUNDING, "--seed", "x"], "'x' is not a valid integer", id="a flag that is no number"
        ),
        pytest.param(["explain", "p1", "--trace", "nowhere"], "nowhere", id="a trace that is not there"),
        pytest.param(["explain", "p1", "--trace", FOUNDING], "scenario.yaml", id="a trace that is none"),
        pytest.param(
            ["profiles", "lamina-evn"], "did you mean 'lamina-even'?", id="a profile to print that is misspelt"
        ),
    ],
)
def test_bad_usage_and_bad_input_end_with_2_and_a_line_that_helps(arguments: list[object], words: str) -> None:
    """
    Never a traceback.
    """
    told = lamina(*arguments)

    assert 2 == told.returncode
    assert words in told.stderr
    assert "Traceback" not in told.stderr


def test_a_trace_that_was_cut_short_is_told_plainly(tmp_path: Path) -> None:
    """
    Half a trace is no trace.
    """
    lamina("simulate", FOUNDING, "--out", tmp_path)
    trace = tmp_path / "trace.jsonl.zst"
    trace.write_bytes(trace.read_bytes()[:-20])

    told = lamina("explain", "p3", "--trace", tmp_path)

    assert 2 == told.returncode
    assert "trace.jsonl.zst" in told.stderr
    assert "Traceback" not in told.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["p9"], "there is no pod 'default/p9'", id="a pod that never came"),
        pytest.param(["p3", "--attempt", "7"], "has no attempt 7; this trace has: 1", id="an attempt that never was"),
    ],
)
def test_explain_says_what_is_not_in_the_trace(tmp_path: Path, arguments: list[str], words: str) -> None:
    """
    And what is.
    """
    lamina("simulate", FOUNDING, "--out", tmp_path)

    told = lamina("explain", *arguments, "--trace", tmp_path)

    assert 2 == told.returncode
    assert words in told.stderr


def test_a_printed_profile_is_a_configuration_file(tmp_path: Path) -> None:
    """
    Print, change, use.
    """
    (tmp_path / "mine.yaml").write_text(lamina("profiles", "lamina-balanced").stdout, encoding="utf-8")

    by_file = json.loads(lamina("simulate", FOUNDING, "--profile", tmp_path / "mine.yaml", "-o", "json").stdout)
    by_name = json.loads(lamina("simulate", FOUNDING, "--profile", "lamina-balanced", "-o", "json").stdout)

    assert by_name["nodes"] == by_file["nodes"]


def test_a_renamed_profile_is_found_under_its_former_name_and_recorded_under_the_new_one(tmp_path: Path) -> None:
    """
    As an option, in a scenario and in a comparison; the list has the new name only.
    """
    founding = FOUNDING.read_text(encoding="utf-8")
    (tmp_path / "s.yaml").write_text(
        founding.replace("profile: lamina-balanced", "profile: original"), encoding="utf-8"
    )

    by_option = json.loads(lamina("simulate", FOUNDING, "--profile", "original", "-o", "json").stdout)
    by_scenario = json.loads(lamina("simulate", tmp_path / "s.yaml", "-o", "json").stdout)
    compared = json.loads(
        lamina("compare", FOUNDING, "--profiles", "kube-default,original", "--seeds", 1, "-o", "json").stdout
    )
    listed = [line.split()[0] for line in lamina("profiles").stdout.splitlines()]

    assert ("ryax", "ryax") == (by_option["profile"], by_scenario["profile"])
    assert {"kube-default", "ryax"} == {row["profile"] for row in compared["rows"]}
    assert ("ryax" in listed, "original" in listed) == (True, False)


def test_the_demo_plays_all_four_stories_in_plain_text_when_piped(tmp_path: Path) -> None:
    """
    With the figures of the runs it tells of, no escape codes, and the name of its report.
    """
    report = tmp_path / "demo.html"
    told = lamina("demo", "--report", report)

    assert str(report) in told.stdout.splitlines()
    assert report.read_bytes().startswith(b"<!doctype html>")

    assert 0 == told.returncode
    assert "\x1b" not in told.stdout
    assert "default/p3 -> n3, 180 points ahead of n1" in told.stdout
    rows = [
        tuple(cell.strip() for cell in line.split("|")[1:3])
        for line in told.stdout.splitlines()
        if line.startswith(("|kube-", "|image-", "|lamina-"))
    ]
    assert [("kube-default", "4"), ("image-locality", "2"), ("lamina-balanced", "3"), ("lamina-local", "2")] == rows[:4]
    assert ("lamina-local", "2") == rows[7]
    assert "771 kB is" in told.stdout
    assert "against kube-default" in told.stdout


@pytest.mark.parametrize(
    "arguments",
    [["demo"], ["simulate", FOUNDING], ["simulate", FOUNDING, "-o", "json"], ["profiles"], ["--help"]],
    ids=["demo", "a table", "data", "a list", "help"],
)
def test_nobody_listening_is_no_error(arguments: list[object]) -> None:
    """
    ``| head`` has seen enough; that is not a problem the run found.
    """
    command = [sys.executable, "-m", "lamina.cli.main", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        said = running.stderr.read()

    assert (b"", 0) == (said, running.returncode)


@pytest.mark.parametrize("arguments", [["demo"], ["simulate", FOUNDING], ["profiles", "lamina-balanced"]], ids=str)
def test_output_that_cannot_be_written_is_told_in_one_line(arguments: list[object]) -> None:
    """
    A full disk, say.
    """
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "lamina.cli.main", *map(str, arguments)]
        told = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=ROOT, timeout=60, check=False
        )

    assert (2, "lamina: output cannot be written: No space left on device\n") == (told.returncode, told.stderr)


def test_what_people_write_is_not_taken_for_markup(tmp_path: Path) -> None:
    """
    Names with brackets are names.
    """
    text = FOUNDING.read_text(encoding="utf-8").replace("name: founding", 'name: "[/bold] [red]founding"')
    (tmp_path / "odd.yaml").write_text(text, encoding="utf-8")

    told = lamina("simulate", tmp_path / "odd.yaml", "--out", tmp_path / "br[ack]ets")

    assert 0 == told.returncode
    assert "[/bold] [red]founding" in told.stdout
    assert "br[ack]ets" in told.stdout
