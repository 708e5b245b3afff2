"""``lamina compare`` as a person meets it: output, files, mistakes, and how it ends."""

import csv
import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from lamina.evaluation.run_metrics import METRICS

ROOT = Path(__file__).resolve().parents[2]

TINY = """\
name: tiny
defaults: {runtime: plain, reportGap: 0s, statusDelay: 10s}
layers: {base: 300MB, a: 50MB, b: 100MB}
images:
  registry.example/a:1: [base, a]
  registry.example/b:1: [base, b]
nodes:
- {name: n, count: 3, cpu: 4, memory: 16Gi, bandwidth: 100MB}
pods:
- {name: a, count: 4, every: 20s, image: "registry.example/a:1", cpu: 1, duration: 50s}
- {name: b, count: 4, at: 5s, every: 25s, image: "registry.example/b:1", cpu: 1}
"""

# Takes minutes; nobody waits for its end.
LONG = """\
images: {app: {base: 10MB}}
nodes: [{name: n, count: 50, cpu: 16, memory: 64Gi}]
pods: [{name: p, count: 20000, every: 100ms, image: app, cpu: 1, duration: 30s}]
"""


def lamina(*arguments: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lamina.cli.main", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=120, check=False)


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    (tmp_path / "tiny.yaml").write_text(TINY, encoding="utf-8")
    return tmp_path / "tiny.yaml"


@pytest.mark.slow
def test_the_result_does_not_depend_on_how_many_run_at_once(tiny: Path) -> None:
    """
    Printed and written, byte for byte.
    """
    profiles = ("--profiles", "kube-default,image-locality", "--seeds", 2)
    one = lamina("compare", tiny, *profiles, "--jobs", 1, "-o", "json", "--out", tiny.parent / "one")
    two = lamina("compare", tiny, *profiles, "--jobs", 2, "-o", "json", "--out", tiny.parent / "two")

    assert (0, "", "") == (one.returncode, one.stderr, two.stderr)
    assert one.stdout == two.stdout
    for name in ("results.jsonl", "comparison.json"):
        assert (tiny.parent / "one" / name).read_bytes() == (tiny.parent / "two" / name).read_bytes()


def test_compare_writes_every_run_and_the_table(tiny: Path) -> None:
    """
    A line per run in a fixed order, and what it prints as JSON.
    """
    out = tiny.parent / "deep" / "study"
    told = lamina(
        "compare", tiny, "--profiles", "kube-default,image-locality", "--seeds", 2, "--out", out, "-o", "json"
    )

    runs = [json.loads(line) for line in (out / "results.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [("kube-default", 1), ("image-locality", 1), ("kube-default", 2), ("image-locality", 2)] == [
        (run["profile"], run["seed"]) for run in runs
    ]
    assert all("nodes" not in run and run["pods"]["started"] == 8 for run in runs)
    table = json.loads(told.stdout)
    assert table == json.loads((out / "comparison.json").read_bytes())
    assert ["kube-default"] == list(table["unsupported"])
    assert ("tiny", "kube-default", [1, 2]) == (table["scenario"], table["baseline"], table["seeds"])
    pulled = [run["bytes_pulled"] for run in runs if run["profile"] == "image-locality"]
    rows = {(row["profile"], row["metric"]): row for row in table["rows"]}
    assert sum(pulled) / 2 == rows["image-locality", "bytes_pulled"]["estimate"]["mean"]
    assert rows["image-locality", "bytes_pulled"]["against"]["ratio"] < 1
    assert rows["kube-default", "bytes_pulled"]["against"] is None


def test_the_formats_say_the_same(tiny: Path) -> None:
    """
    JSON, YAML and CSV.
    """
    command = (
        "compare",
        tiny,
        "--profiles",
        "image-locality",
        "--profiles",
        "kube-default",
        "--seeds",
        2,
        "--jobs",
        1,
        "-o",
    )
    table = json.loads(lamina(*command, "json").stdout)
    lines = list(csv.DictReader(io.StringIO(lamina(*command, "csv").stdout)))

    assert table == yaml.safe_load(lamina(*command, "yaml").stdout)
    # This scenario measures no nodes and has no promises, so these figures do not exist.
    without = {metric.name for metric in METRICS if metric.path[0] == "qos"} | {"overload_seconds"}
    assert without == {row["metric"] for row in table["rows"] if row["estimate"] is None}
    assert [
        (row["profile"], row["metric"], "" if row["estimate"] is None else str(row["estimate"]["mean"]))
        for row in table["rows"]
    ] == [(line["profile"], line["metric"], line["mean"]) for line in lines]


@pytest.mark.parametrize("output", ["json", "yaml", "csv", "table"])
def test_metrics_choose_the_rows_and_their_order(tiny: Path, output: str) -> None:
    """
    In every format, and rows of zeros as well; `balance` is the former name of `imbalance`.
    """
    arguments = ("--profiles", "kube-default", "--seeds", 1, "--metrics", "evictions, pulls", "--metrics", "balance")
    told = lamina("compare", tiny, *arguments, "-o", output)

    assert (0, "") == (told.returncode, told.stderr)
    assert ["evictions", "pulls", "imbalance"] == {
        "json": lambda: [row["metric"] for row in json.loads(told.stdout)["rows"]],
        "yaml": lambda: [row["metric"] for row in yaml.safe_load(told.stdout)["rows"]],
        "csv": lambda: [row["metric"] for row in csv.DictReader(io.StringIO(told.stdout))],
        # Titles, one beside the other.
        "table": lambda: [
            {"evicted": "evictions"}.get(title, title)
            for title in next(line for line in told.stdout.splitlines() if "evicted" in line).replace("|", " ").split()
        ],
    }[output]()


def test_help_lists_the_metrics_with_their_units() -> None:
    """
    Every name that can be chosen.
    """
    told = lamina("compare", "--help").stdout

    assert not [metric.name for metric in METRICS if f"\n  {metric.name}" not in told]
    assert "overload (node-s)" in told


def test_json_says_why_there_is_no_verdict() -> None:
    """
    Cut off while pods still pull, under one profile fewer than under the other.
    """
    story = ROOT / "tests" / "unit" / "cli" / "comparisons" / "never-starts.yaml"
    told = lamina("compare", story, "--profiles", "kube-default,lamina-balanced", "--seeds", 2, "-o", "json")

    table = json.loads(told.stdout)
    row = next(row for row in table["rows"] if row["metric"] == "startup_p99" and row["against"])
    assert (None, False) == (row["verdict"], row["comparable"])
    assert row["no_verdict"].startswith("different numbers of pods: started 11.0 a run here")
    assert {"kube-default", "lamina-balanced"} == {one["profile"] for one in table["populations"]}


def test_a_table_in_a_pipe_is_plain_and_names_the_baseline(tiny: Path) -> None:
    """
    Profiles by name or by file; the baseline need not come first.
    """
    (tiny.parent / "mine.yaml").write_text(lamina("profiles", "image-locality").stdout, encoding="utf-8")
    arguments = ("--profiles", "mine.yaml,kube-default", "--baseline", "kube-default", "--seeds", 2, "--jobs", 1)
    told = lamina("compare", "tiny.yaml", *arguments, cwd=tiny.parent)

    assert (0, "") == (told.returncode, told.stderr)
    assert told.stdout.isascii()
    assert "tiny under 2 profiles and 2 seeds" in told.stdout
    assert "against kube-default" in told.stdout
    assert 3 == sum(line.startswith(("|mine.yaml", "|kube-default")) for line in told.stdout.splitlines())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param([], "--profiles: nothing to compare; name profiles, or schedulers", id="no profiles"),
        pytest.param(["--profiles", ""], "--profiles: the value is empty", id="an empty list"),
        pytest.param(
            ["--profiles", "image-locality,,kube-default"], "--profiles: an empty name", id="a comma too many"
        ),
        pytest.param(
            ["--profiles", "kube-defalt"], "--profiles: there is no profile 'kube-defalt'", id="an unknown profile"
        ),
        pytest.param(["--profiles", "./gone.yaml"], "gone.yaml: cannot be read", id="no such profile file"),
        pytest.param(["--profiles", "tiny.yaml"], "tiny.yaml:1: name: unknown field", id="a file that is no profile"),
        pytest.param(
            ["--profiles", "image-locality,image-locality"], "'image-locality' is listed 2 times", id="a profile twice"
        ),
        pytest.param(
            ["--profiles", "image-locality,kube-default", "--baseline", "kube"],
            "--baseline: 'kube' is not among the profiles",
            id="a baseline that is not compared",
        ),
        pytest.param(
            ["--profiles", "image-locality", "--metrics", "pulls,eviction"],
            "--metrics: there is no metric 'eviction'; did you mean 'evictions'?",
            id="an unknown metric",
        ),
        pytest.param(
            ["--profiles", "image-locality", "--metrics", ""], "--metrics: the value is empty", id="no metric"
        ),
        pytest.param(["--profiles", "image-locality", "--seeds", "0"], "0 is not in the range", id="no seeds"),
        pytest.param(
            ["--profiles", "image-locality", "--seeds", "x"],
            "'x' is not a valid integer",
            id="seeds that are no number",
        ),
        pytest.param(["--profiles", "image-locality", "--jobs", "0"], "0 is not in the range", id="no jobs"),
        pytest.param(["--profiles", "image-locality", "--out", "tiny.yaml"], "is a file", id="a folder that is a file"),
        pytest.param(
            ["--profiles", "image-locality", "--out", "tiny.yaml/x"],
            "--out: tiny.yaml/x cannot be created",
            id="inside a file",
        ),
    ],
)
def test_bad_usage_and_bad_input_end_with_2_and_a_line_that_helps(tiny: Path, arguments: list[str], words: str) -> None:
    """
    Before anything runs; never a traceback.
    """
    told = lamina("compare", "tiny.yaml", *arguments, cwd=tiny.parent)

    assert (2, "") == (told.returncode, told.stdout)
    assert words in told.stderr
    assert "Traceback" not in told.stderr


def test_all_mistakes_are_told_at_once_and_nothing_is_made(tmp_path: Path) -> None:
    """
    In the scenario, in each profile, and in what they are to be compared to.
    """
    (tmp_path / "bad.yaml").write_text("nodes: []\npodz: []\n", encoding="utf-8")
    arguments = ("--profiles", "kube-defalt,gone.yaml,kube-default", "--baseline", "image", "--out", "out")
    told = lamina("compare", "bad.yaml", *arguments, cwd=tmp_path)

    assert 2 == told.returncode
    assert {"bad.yaml:1", "bad.yaml:2", "--profiles", "gone.yaml", "--baseline"} == {
        line.split(": ")[0] for line in told.stderr.splitlines()
    }
    assert ["bad.yaml"] == [path.name for path in tmp_path.iterdir()]


def test_a_scenario_that_is_not_there_is_told(tmp_path: Path) -> None:
    """
    By its name.
    """
    told = lamina("compare", "nowhere.yaml", "--profiles", "image-locality", cwd=tmp_path)

    assert (2, "nowhere.yaml: there is no such file\n") == (told.returncode, told.stderr)


# ------------------------------------------------------------------------------------------------------ how it ends


def a_long_comparison(folder: Path, jobs: int, stderr: int = subprocess.PIPE) -> "subprocess.Popen[bytes]":
    """Start a comparison that goes on for minutes."""
    (folder / "long.yaml").write_text(LONG, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "lamina.cli.main",
        "compare",
        "long.yaml",
        "--profiles",
        "image-locality,kube-default",
    ]
    return subprocess.Popen(
        [*command, "--seeds", "50", "--jobs", str(jobs), "--out", "out"],
        stdout=subprocess.PIPE,
        stderr=stderr,
        cwd=folder,
        start_new_session=True,
    )


def children(process: "subprocess.Popen[bytes]") -> list[str]:
    return Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()


def wait_for_children(process: "subprocess.Popen[bytes]") -> None:
    """Two that run, and one that Python keeps to tidy up after them."""
    while len(children(process)) < 3 and process.poll() is None:
        time.sleep(0.05)


@pytest.mark.realtime
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="looks for child processes in /proc")
@pytest.mark.parametrize(
    ("end", "code"),
    [
        pytest.param(signal.SIGINT, 130, id="Ctrl-C"),
        pytest.param(signal.SIGTERM, 143, id="ended"),
        pytest.param(signal.SIGKILL, -signal.SIGKILL, id="killed"),
    ],
)
def test_no_process_outlives_the_command(tmp_path: Path, end: signal.Signals, code: int) -> None:
    """
    The pipe is closed when the last of them is gone; only the command itself says something, and removes its folder.
    """
    with a_long_comparison(tmp_path, 2) as running:
        wait_for_children(running)
        # They are started one after the other, and the last needs a moment until it has begun.
        time.sleep(0.5)
        running.send_signal(end)
        _, said = running.communicate(timeout=60)

    assert code == running.returncode
    assert b"Traceback" not in said
    if end != signal.SIGKILL:
        assert re.fullmatch(rb"(interrupted|terminated): \d+ of 100 runs were done; no file was written", said.strip())
        assert ["long.yaml"] == [path.name for path in tmp_path.iterdir()]


@pytest.mark.realtime
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="looks for child processes in /proc")
def test_a_process_that_is_killed_from_outside_ends_the_command_with_advice(tmp_path: Path) -> None:
    """
    As when memory runs out.
    """
    with a_long_comparison(tmp_path, 2) as running:
        wait_for_children(running)
        time.sleep(0.5)
        os.kill(int(children(running)[-1]), signal.SIGKILL)
        _, said = running.communicate(timeout=60)

    assert 1 == running.returncode
    assert "try again with fewer --jobs" in said.decode()
    assert b"Traceback" not in said


@pytest.mark.realtime
@pytest.mark.slow
def test_a_terminal_sees_how_far_it_is_after_two_seconds_and_a_pipe_never(tmp_path: Path) -> None:
    """
    On standard error; the bar is taken away at the end.
    """
    mine, theirs = pty.openpty()
    with a_long_comparison(tmp_path, 1, stderr=theirs) as running:
        began = time.monotonic()
        os.close(theirs)
        said = b""
        while b"runs done" not in said and time.monotonic() < began + 60:
            said += os.read(mine, 4096)
        waited = time.monotonic() - began
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=60)
    os.close(mine)

    assert b"/100 runs done" in said
    assert waited > 2.0
