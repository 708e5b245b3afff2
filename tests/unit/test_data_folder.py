"""The data folder of the studies: a tiny one, made as docs/data-folder.md describes it, is read; without it they skip."""

import csv
import gzip
import importlib
import io
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "data-folder.md").read_text(encoding="utf-8")
STUDIES = ("locality_study", "policy", "extender_levels", "hotedge", "prefix_or_set", "calibration", "batkube")
A, B, C = ("a" * 64, "b" * 64, "c" * 64)


@pytest.fixture
def benchmark(monkeypatch):
    """Import a module of benchmarks/, where they find one another."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module


@pytest.fixture
def data(benchmark):
    return benchmark("_real_data")


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()))


def jsonl(*records: dict[str, object]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def table(*rows: dict[str, object]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Every file that is read, with the fields of the page and no others."""
    put(
        tmp_path / "images/public2024_images.jsonl.gz",
        jsonl(
            {"repo": "team/App", "config": A, "layers": [0, 1], "ml": False},
            {"repo": "team/App", "config": B, "layers": [0, 2], "ml": False},
            {"repo": "team/model", "config": C, "layers": [2], "ml": True},
        ),
    )
    put(
        tmp_path / "images/public2024_layers.csv.gz",
        table(*({"digest": digest, "size_bytes": size} for digest, size in ((A, 10), (B, 20), (C, 30)))),
    )
    versions = [
        {"repo": "base", "manifest": f"sha256:{A}", "layers": [[f"sha256:{A}", 10]]},
        {"repo": "base", "manifest": f"sha256:{B}", "layers": [[f"sha256:{A}", 10], [f"sha256:{B}", 20]]},
    ]
    put(tmp_path / "images/official_versions30.jsonl.gz", jsonl(*versions))
    platforms = ("linux/amd64", "linux/arm64")
    put(
        tmp_path / "images/official_snapshot_2019-12.jsonl.gz",
        jsonl(*({**one, "platform": platform} for one, platform in zip(versions, platforms, strict=True))),
    )
    put(
        tmp_path / "traces/alibaba_dlrm_v2025_instances.csv.gz",
        table(an_instance("i_0", "app_0"), an_instance("i_1", "app_1", creation_time="50", deletion_time="80")),
    )
    put(tmp_path / "traces/azure_functions_2019_sample1000_inv.csv.gz", "f,o,a,1,2,3\nx,x,x,1,,2\ny,y,y,0,0,5\n")
    put(
        tmp_path / "calibration/k8s_pull_events_2024.csv.gz",
        table(
            a_pull("run1", image_bytes_compressed=60_000_000),
            a_pull("run1", synthetic=1, nominal_layers=9, nominal_uncompressed_bytes=1e9),
            a_pull("run1"),
            a_pull("run4", image_bytes_compressed=60_000_000),
        ),
    )
    put(tmp_path / "batkube/real_cluster_runs.csv.gz", table(a_job(0), a_job(0, starting_time=30), a_job(1)))
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path))
    return tmp_path


def an_instance(name: str, app: str, **times: str) -> dict[str, object]:
    asks = {"instance_sn": name, "app_name": app, "cpu_request": "4", "memory_request": "16.0"}
    return {**asks, "creation_time": "", "deletion_time": "", **times}


def a_pull(run: str, **more: object) -> dict[str, object]:
    which = {
        "study": "pulling",
        "run": run,
        "cluster_nodes": 4,
        "time": "2024-11-10T06:47:09Z",
        "node": "n",
        "image": "i",
    }
    took = {"pull_seconds": 2.0, "pull_seconds_incl_wait": 3.0, "image_bytes_compressed": "", "synthetic": 0}
    return {**which, **took, "nominal_layers": "", "nominal_uncompressed_bytes": "", **more}


def a_job(run: int, **more: object) -> dict[str, object]:
    times = {"starting_time": 5, "finish_time": 175, "execution_time": 170, "waiting_time": 5, "scheduled": 4}
    return {"workload": "200_delay170", "run": run, **times, "allocated_resources": "n1", **more}


# ---------------------------------------------------------------------------------------------------------------- reading


def sizes(images):
    return {image.digest: [layer.size for layer in image.layers] for image in images}


def test_the_public_catalog_is_two_files(data, folder):
    found = data.public(folder)

    assert ["team/App", "team/model"] == list(found)
    assert {f"sha256:{A}": [10, 20], f"sha256:{B}": [10, 30]} == sizes(found["team/App"])
    assert {"team/model"} == data.machine_learning(folder)


def test_images_of_all_repositories_have_different_names(data, folder):
    names = [name for images in data.public(folder).values() for image in images for name in image.names]

    assert 3 == len(set(names))
    assert all(re.fullmatch(r"registry\.example/[a-z0-9-]+:v\d+", name) for name in names)


def test_versions_keep_the_order_of_the_file(data, folder):
    assert [f"sha256:{A}", f"sha256:{B}"] == [image.digest for image in data.official(folder)["base"]]


def test_of_the_snapshot_one_platform_is_read(data, folder):
    assert {f"sha256:{A}": [10]} == sizes(data.snapshot(folder)["base"])


def test_a_line_that_is_no_object_is_named_with_file_and_line(data, folder):
    put(folder / data.OFFICIAL[0], jsonl({"repo": "r", "manifest": f"sha256:{A}", "layers": []}) + "[]\n")

    with pytest.raises(ValueError, match=r"official_versions30\.jsonl\.gz:2: not an object"):
        data.official(folder)


def test_pulls_that_say_nothing_and_streamed_ones_are_left_out(benchmark, folder):
    ((key, pulls),) = benchmark("calibration").recorded(folder).items()

    assert ("pulling", "run1", "4") == key
    assert [(9, 0.0, 60_000_000.0), (9, 1e9, 0.0)] == [(one.layers, one.unpacked, one.size) for one in pulls]


def test_runs_of_a_real_cluster_are_read_by_workload_and_number(benchmark, folder):
    batkube = benchmark("batkube")
    runs = batkube.recorded(folder)["200_delay170"]

    assert {0: 2, 1: 1} == {run: len(jobs) for run, jobs in runs.items()}
    assert (175.0, 5.0) == batkube.figures(runs[0])


def test_a_trace_of_applications_becomes_pods_with_one_image_for_each(benchmark, folder):
    found = benchmark("_policy_scenarios").recommendation("6", 1, folder)
    day = 86_400.0

    assert ["i-0", "i-1"] == [arrival.pod.name for arrival in found.arrivals]
    assert found.arrivals[0].at < day
    assert (day + 50, 30.0) == (found.arrivals[1].at, found.arrivals[1].life.seconds)
    assert {("cpu", 4000), ("memory", 16 * 1024**3)} <= set(found.arrivals[1].pod.requests)
    assert 2 == len({arrival.pod.containers[0].image for arrival in found.arrivals})


def test_calls_of_a_function_are_summed_over_its_minutes(benchmark, folder):
    assert [3, 5] == benchmark("_policy_scenarios")._calls(folder)


# ------------------------------------------------------------------------------------------------------------ without it


@pytest.mark.parametrize("study", STUDIES)
def test_a_study_without_its_files_says_so_in_one_line(benchmark, tmp_path, monkeypatch, capsys, study):
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "none"))
    found = benchmark(study).main()

    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("skipped: the data folder lacks ")
    assert line.endswith("; set LAMINA_DATA to a folder that has it, see docs/data-folder.md")
    assert {"skipped": line.removeprefix("skipped: ")} == found


def test_only_the_files_that_are_missing_are_named(data, folder):
    (folder / data.OFFICIAL[0]).unlink()
    needed = (*data.PUBLIC, *data.OFFICIAL)

    assert data.data_folder(needed) is None
    assert data.missing(needed).startswith("the data folder lacks images/official_versions30.jsonl.gz; ")
    assert folder == data.data_folder(data.PUBLIC)


# --------------------------------------------------------------------------------------------------------------- the page


def test_the_page_names_every_file_and_every_field_of_the_made_folder(folder):
    unnamed = []
    for path in sorted(folder.rglob("*.gz")):
        name = str(path.relative_to(folder))
        with gzip.open(path, "rt", encoding="utf-8") as file:
            first = file.readline()
        fields = json.loads(first) if path.name.endswith(".jsonl.gz") else first.strip().split(",")
        fields = [] if "azure" in name else fields
        unnamed += [word for word in (name, *fields) if f"`{word}`" not in PAGE]

    assert [] == unnamed


@pytest.mark.parametrize("study", STUDIES)
def test_the_page_lists_every_study(study):
    assert f"NAME={study.replace('_', '-')}`" in PAGE
