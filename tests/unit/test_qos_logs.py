"""The measures of service levels give the published figures for the event logs of the real cluster."""

import importlib
from pathlib import Path

import pytest

from lamina.simulator.run.service_levels import capacity_lost, class_levels, controller_levels
from lamina.simulator.workloads import load_scenario

ROOT = Path(__file__).resolve().parents[2]
SLOTS = 200.0


@pytest.fixture
def logs(monkeypatch):
    """The reader of the logs, and the data folder."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    reader, data = importlib.import_module("_qos_logs"), importlib.import_module("_real_data")
    folder = data.data_folder(reader.LOGS)
    if folder is None:
        pytest.skip(data.missing(reader.LOGS))
    return reader, folder


# Class → mean, standard deviation, share that meets the SLO; evictions; share of lost capacity.
PUBLISHED = [
    pytest.param(
        "validation1-workload1-priority",
        {"prod": (0.999, 0.0, 1.0), "batch": (0.999, 0.0, 1.0), "free": (0.418, 0.478, 0.41)},
        (40, 0.004),
        id="validation 1, priorities",
    ),
    pytest.param(
        "validation1-workload1-qos",
        {"prod": (0.999, 0.0, 1.0), "batch": (0.908, 0.004, 1.0), "free": (0.473, 0.012, 0.01)},
        (3122, 0.017),
        id="validation 1, QoS-driven",
    ),
    pytest.param(
        "validation2-workload3-priority", {"batch": (0.901, 0.296, 0.90)}, (0, 0.005), id="validation 2, priorities"
    ),
    pytest.param(
        "validation2-workload3-qos", {"batch": (0.896, 0.008, 0.61)}, (2428, 0.013), id="validation 2, QoS-driven"
    ),
]


@pytest.mark.parametrize(("name", "classes", "cluster"), PUBLISHED)
def test_the_recorded_runs_have_the_published_figures(logs, name, classes, cluster):
    reader, folder = logs
    promises, spans = reader.recorded(folder / "qos" / f"{name}-events.csv.gz")
    levels = controller_levels(promises, spans, reader.END)
    found = class_levels(levels)

    assert set(classes) == set(found)
    for group, (mean, sd, met) in classes.items():
        assert mean == pytest.approx(found[group].mean, abs=0.002)
        assert sd == pytest.approx(found[group].sd, abs=0.0025)
        assert met == pytest.approx(found[group].met, abs=0.01)
    evictions, lost = cluster
    assert evictions == sum(sum(level.disruptions.values()) for level in levels)
    assert lost == pytest.approx(capacity_lost(spans, [(0.0, SLOTS)], reader.END), abs=0.001)


@pytest.mark.parametrize(
    ("name", "classes"),
    [
        pytest.param("validation1", {"batch": 80, "free": 96, "prod": 80}, id="validation 1"),
        pytest.param("validation2", {"batch": 221}, id="validation 2"),
    ],
)
def test_the_published_tables_have_one_deployment_a_second(logs, tmp_path, name, classes):
    reader, folder = logs
    if not (folder / f"qos/{name}-workload.csv").is_file():
        pytest.skip(importlib.import_module("_real_data").missing(reader.WORKLOADS))
    path = tmp_path / "scenario.yaml"
    path.write_text(
        "layers: {L: 1kB}\nimages: {'web:1': [L]}\nimports:\n"
        f"- {{qosWorkload: qos/{name}-workload.csv, nodes: {{count: 20, cpu: 3750m, memory: 3750M}}}}\n"
    )
    controllers = load_scenario(path, data=folder).controllers
    groups = [spec.template.labels["class"] for spec in controllers]

    assert classes == {group: groups.count(group) for group in sorted(set(groups))}
    assert list(range(len(controllers))) == [spec.at for spec in controllers]
