"""``lamina evaluate``: the results of a study, again, after an interruption, and in a folder that is in use."""

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lamina.cli.evaluate.command import evaluate
from lamina.cli.evaluate.study_folder import StudyFolder
from lamina.model.errors import InputError

SCENARIO = """\
defaults: {runtime: plain, reportGap: 0s, statusDelay: 0s}
images: {app: {base: 100MB}, other: {base2: 50MB}}
nodes: [{name: n, count: 3, cpu: 4, memory: 16Gi, bandwidth: 100MB}]
pods:
- {name: p, count: 4, every: 5s, image: app, cpu: 1, duration: 30s}
- {name: q, count: 2, at: 3s, every: 7s, image: other, cpu: 1, duration: 30s}
"""
STUDY = """\
name: small
scenario: base.yaml
profiles: [kube-default, lamina-local]
seeds: 2
metrics: [bytes_pulled, startup_mean]
factors:
  bandwidth: {field: "nodes[0].bandwidth", values: [100MB, 10MB]}
"""
RESULTS = ("results.csv", "summary.json", "digest.md", "report.html", "study.json")


@pytest.fixture
def study(tmp_path: Path) -> Path:
    (tmp_path / "base.yaml").write_text(SCENARIO, encoding="utf-8")
    path = tmp_path / "study.yaml"
    path.write_text(STUDY, encoding="utf-8")
    return path


def run(study: Path, out: Path) -> Result:
    return CliRunner().invoke(evaluate, [str(study), "--out", str(out), "--jobs", "1"], catch_exceptions=False)


def contents(out: Path) -> dict[str, bytes]:
    return {name: (out / name).read_bytes() for name in RESULTS}


def test_a_study_has_a_line_for_every_run_with_levels_seed_and_version(study, tmp_path):
    done = run(study, tmp_path / "out")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out" / "results.csv").read_text(encoding="utf-8"))))

    assert done.exit_code == 0
    assert [(row["point"], row["bandwidth"], row["seed"], row["profile"]) for row in rows] == [
        (point, bandwidth, seed, profile)
        for point, bandwidth in (("0", "100MB"), ("1", "10MB"))
        for seed in ("1", "2")
        for profile in ("kube-default", "lamina-local")
    ]
    assert {(row["version"] != "", len(row["fingerprint"])) for row in rows} == {(True, 16)}
    # A tenth of the bandwidth makes every pull last longer, whichever the profile.
    assert min(float(row["startup_mean"]) for row in rows[4:]) > max(float(row["startup_mean"]) for row in rows[:4])


def test_the_same_study_twice_gives_the_same_bytes(study, tmp_path):
    for name in ("one", "two"):
        run(study, tmp_path / name)

    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_an_interrupted_study_continues_and_gives_the_same_bytes(study, tmp_path):
    run(study, tmp_path / "whole")
    run(study, tmp_path / "cut")
    kept = sorted((tmp_path / "cut" / "runs").iterdir())
    times = {file.name: file.stat().st_mtime_ns for file in kept}
    for file in kept[3:]:
        file.unlink()
    for name in ("results.csv", "summary.json", "digest.md", "report.html"):
        (tmp_path / "cut" / name).unlink()

    assert [task.keep for task in StudyFolder(study, tmp_path / "cut").unfinished()] == kept[3:]
    again = run(study, tmp_path / "cut")

    assert "3 of 8 runs are in" in again.stderr
    assert contents(tmp_path / "cut") == contents(tmp_path / "whole")
    assert {file.name: file.stat().st_mtime_ns for file in kept[:3]} == {
        file.name: times[file.name] for file in kept[:3]
    }


def test_results_of_another_study_are_not_continued(study, tmp_path):
    run(study, tmp_path / "out")
    study.write_text(STUDY.replace("10MB]", "20MB]"), encoding="utf-8")

    with pytest.raises(InputError, match="has runs of another study, version or state"):
        StudyFolder(study, tmp_path / "out")


def test_a_study_with_catalog_files_continues_in_a_folder_that_was_moved(study, tmp_path):
    beside = tmp_path / "data"
    beside.mkdir()
    for name in ("one", "two"):
        (beside / f"{name}.jsonl").write_text('{"format":"lamina-catalog","version":1}\n', encoding="utf-8")
    (tmp_path / "base.yaml").write_text(f"catalog: data/one.jsonl\n{SCENARIO}", encoding="utf-8")
    levels = "[data/one.jsonl, data/two.jsonl]"
    study.write_text(f"{STUDY}  catalog: {{field: catalog, values: {levels}}}\n", encoding="utf-8")
    (tmp_path / "deeper").mkdir()

    for out in (tmp_path / "out", tmp_path / "deeper" / "out"):
        out.mkdir()
        StudyFolder(study, out)
    (tmp_path / "out").rename(tmp_path / "deeper" / "moved")
    StudyFolder(study, tmp_path / "deeper" / "moved")

    names = [
        json.loads((tmp_path / "deeper" / "moved" / "scenarios" / f"000{point}.yaml").read_bytes())["catalog"]
        for point in range(4)
    ]
    assert names == ["../../../data/one.jsonl", "../../../data/two.jsonl"] * 2


def test_ratios_over_the_points_are_geometric_means(study, tmp_path):
    run(study, tmp_path / "out")
    summary = json.loads((tmp_path / "out" / "summary.json").read_bytes())
    overall = next(one for one in summary["overall"] if one["metric"] == "startup_mean")
    ratios = [
        row["against"]["ratio"]
        for point in summary["points"]
        for row in point["compared"]["rows"]
        if (row["profile"], row["metric"]) == ("lamina-local", "startup_mean")
    ]

    assert len(ratios) == 2
    assert overall["mean"] == pytest.approx((ratios[0] * ratios[1]) ** 0.5)
    assert overall["worst"] == max(ratios)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        pytest.param("[kube-default, lamina-local]", "[no-such]", "no-such", id="a profile"),
        pytest.param("[kube-default, lamina-local]", "[]", "nothing to compare", id="no profile"),
        pytest.param("[kube-default, lamina-local]", "[ryax, ryax]", "listed twice", id="a profile twice"),
        pytest.param("[bytes_pulled, startup_mean]", "[bytes]", "there is no metric 'bytes'", id="a metric"),
        pytest.param("base.yaml", "none.yaml", "none.yaml", id="a scenario"),
        pytest.param("[100MB, 10MB]", "[100MB, fast]", "bandwidth", id="a level"),
        pytest.param("seeds: 2", "schedulers: [mine]", "no registered scheduler", id="a scheduler"),
    ],
)
def test_a_mistake_is_reported_before_the_first_run(study, tmp_path, before, after, message):
    study.write_text(STUDY.replace(before, after), encoding="utf-8")
    (tmp_path / "out").mkdir()

    with pytest.raises(InputError, match=message):
        StudyFolder(study, tmp_path / "out")


def test_the_page_of_a_study_has_its_factors_and_points(study, tmp_path):
    run(study, tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")

    assert 'data-chart="sensitivity-0"' in page
    assert "<summary>bandwidth 10MB</summary>" in page
    assert len(page) < 3_000_000
