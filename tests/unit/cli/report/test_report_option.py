"""``--report`` of `lamina simulate`, `lamina compare` and `lamina demo`: which file, and what it leaves alone."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lamina.cli.compare.command import compare
from lamina.cli.compare.run_pool import RunTask, reported, run_one
from lamina.cli.report.report_file import report_path
from lamina.cli.simulate.command import simulate
from lamina.model.errors import InputError

# Layers of 100 and 50 MB at 100 MB/s: the first pod needs 1.5 s, the others find the lower layer. The removal of images
# is not simulated, so a node keeps what it has.
SCENARIO = """\
name: small
defaults: {runtime: plain, reportGap: 0s, statusDelay: 0s}
layers: {base: 100MB, a: 50MB, b: 50MB}
images:
  registry.example/a:1: [base, a]
  registry.example/b:1: [base, b]
nodes: [{name: n, count: 2, cpu: 4, memory: 16Gi, bandwidth: 100MB}]
pods:
- {name: a, count: 2, every: 20s, image: "registry.example/a:1", cpu: 1, duration: 15s}
- {name: b, at: 50s, image: "registry.example/b:1", cpu: 1, duration: 15s}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def run(command: Any, *arguments: object) -> Result:
    return CliRunner().invoke(command, [str(one) for one in arguments], catch_exceptions=False)


def data(file: Path) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', file.read_text(encoding="utf-8"))
    assert found is not None
    decoded: dict[str, Any] = json.loads(found[1])
    return decoded


@pytest.mark.parametrize(
    ("report", "out", "expected"),
    [
        pytest.param(None, None, None, id="no report"),
        pytest.param(".", None, "report.html", id="no name"),
        pytest.param(".", "some/folder", "some/folder/report.html", id="no name, with a folder"),
        pytest.param("mine.html", "some/folder", "mine.html", id="a name, with a folder"),
        pytest.param("mine.HTM", None, "mine.HTM", id="another ending"),
    ],
)
def test_the_report_goes_where_it_is_expected(report, out, expected):
    path = report_path(None if report is None else Path(report), None if out is None else Path(out))

    assert path == (None if expected is None else Path(expected))


@pytest.mark.parametrize(
    ("report", "message"),
    [
        pytest.param("scenario.yaml", "does not end with .html; write the scenario first", id="a scenario"),
        pytest.param("no/such/folder/report.html", "there is no folder 'no/such/folder'", id="no folder"),
    ],
)
def test_a_name_that_no_report_should_have_is_refused(report, message):
    with pytest.raises(InputError) as refused:
        report_path(Path(report), None)

    assert message in str(refused.value)


def test_a_report_of_a_run_has_every_pod_and_layer(scenario, tmp_path):
    file = tmp_path / "run.html"
    done = run(simulate, scenario, "--profile", "lamina-balanced", "--report", file)
    (one,) = data(file)["runs"]

    assert done.exit_code == 0
    assert [pod["pod"] for pod in one["pods"]] == ["default/a1", "default/a2", "default/b"]
    # By bytes on the nodes: both upper layers have 50 MB.
    assert one["layers"][0] == {"name": "base", "bytes": 100_000_000}
    assert sorted(layer["name"] for layer in one["layers"]) == ["a", "b", "base"]
    # Pods arrive at 0, 20 and 50 s. The first pulls both layers of a; b finds the base on the same node.
    assert [(pod["pull"], pod["bytes_pulled"]) for pod in one["pods"]] == [
        (1.5, 150_000_000),
        (0.0, 0),
        (0.5, 50_000_000),
    ]
    assert all(pod["why"] for pod in one["pods"])
    # This runtime keeps no packed layers: a layer is held once its image is complete.
    assert [change[0] for change in one["changes"]] == [1.5, 1.5, 50.5]


def test_the_last_bytes_of_a_report_are_those_of_the_summary(scenario, tmp_path):
    file = tmp_path / "run.html"
    figures = json.loads(run(simulate, scenario, "--report", file, "-o", "json").stdout)

    assert data(file)["lines"][0]["series"]["bytes_pulled"][-1] == figures["bytes_pulled"]


def test_a_report_without_a_name_goes_to_the_folder_of_the_results(scenario, tmp_path):
    out = tmp_path / "out"
    run(simulate, scenario, "--out", out, "--report")

    assert (out / "report.html").is_file()


def test_a_report_changes_no_other_output(scenario, tmp_path):
    options = (scenario, "--profiles", "kube-default,lamina-balanced", "--seeds", 2, "--jobs", 1, "-o", "json")
    plain = run(compare, *options, "--out", tmp_path / "plain")
    with_report = run(compare, *options, "--out", tmp_path / "with", "--report")

    assert with_report.stdout == plain.stdout
    for name in ("results.jsonl", "comparison.json"):
        assert (tmp_path / "with" / name).read_bytes() == (tmp_path / "plain" / name).read_bytes()
    assert [one["pods"] != [] for one in data(tmp_path / "with" / "report.html")["runs"]] == [True, True]


def test_the_same_comparison_gives_the_same_report(scenario, tmp_path):
    files = [tmp_path / "one.html", tmp_path / "two.html"]
    for file in files:
        run(
            compare, scenario, "--profiles", "kube-default,lamina-balanced", "--seeds", 2, "--jobs", 1, "--report", file
        )

    assert files[0].read_bytes() == files[1].read_bytes()


def test_only_the_first_seed_of_a_comparison_has_pods(scenario):
    tasks = reported([RunTask(scenario, profile, seed) for seed in (1, 2) for profile in ("kube-default", "ryax")])

    assert [(task.seed, task.report, task.report_share) for task in tasks] == [
        *[(1, "pods", 2)] * 2,
        *[(2, "figures", 2)] * 2,
    ]
    assert [len(run_one(task)["report_record"].pods) for task in tasks] == [3, 3, 0, 0]
