"""The recorded event logs of a real cluster, replayed, give the published availabilities by class."""

import csv
import gzip
import importlib
from collections import defaultdict
from pathlib import Path
from statistics import mean, pstdev

import pytest

from lamina.qos.engine import QosEngine
from lamina.qos.life_cycle_facts import PodCreated, PodDeleted, PodWasBound, QosFact
from lamina.qos.promise import QosSettings
from tests.unit.qos.qos_lives import key, promised

ROOT = Path(__file__).resolve().parents[3]
SLOS = {"prod": 1.0, "batch": 0.9, "free": 0.5}
VALIDATION_1, VALIDATION_2 = "validation1-workload1", "validation2-workload3"


@pytest.mark.parametrize(
    ("run", "controllers", "published"),
    [
        pytest.param(
            f"{VALIDATION_1}-priority",
            256,
            {"prod": (0.996, 0.02), "batch": (0.997, 0.02), "free": (0.418, 0.478)},
            id="256 deployments by priority",
        ),
        pytest.param(
            f"{VALIDATION_1}-qos",
            256,
            {"prod": (0.998, 0.01), "batch": (0.908, 0.004), "free": (0.473, 0.012)},
            id="256 deployments by QoS",
        ),
        pytest.param(f"{VALIDATION_2}-priority", 221, {"batch": (0.899, 0.297)}, id="221 deployments by priority"),
        pytest.param(f"{VALIDATION_2}-qos", 221, {"batch": (0.895, 0.008)}, id="221 deployments by QoS"),
    ],
)
def test_a_recorded_run_has_the_published_qos(monkeypatch, run, controllers, published):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    data = importlib.import_module("_real_data")
    needed = [f"qos/{run}-events.csv.gz"]
    folder = data.data_folder(needed)
    if folder is None:
        pytest.skip(data.missing(needed))
    with gzip.open(folder / needed[0], "rt", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    # The last terminations of a file are the end of the experiment.
    end = [float(row["seconds"]) for row in rows if row["event"] == "termination"][-controllers]
    engine = QosEngine(QosSettings())
    for row in rows:
        at, fact = float(row["seconds"]), fact_of(row)
        if fact is not None and at < end:
            engine.feed(fact, at)

    found = defaultdict(list)
    for name in {row["controller"] for row in rows}:
        standing = engine.controller_standing(key(name), end)
        assert standing is not None
        found[name.partition("-")[0]].append(standing.qos)

    assert set(found) == set(published)
    for group, (average, spread) in published.items():
        assert mean(found[group]) == pytest.approx(average, abs=0.01)
        assert pstdev(found[group]) == pytest.approx(spread, abs=0.02)


def fact_of(row: dict[str, str]) -> QosFact | None:
    at, pod, name = float(row["seconds"]), row["pod"], row["controller"]
    match row["event"]:
        case "waiting":
            return PodCreated(at, pod, "default", pod, key(name), promised(SLOS[name.partition("-")[0]]), 1)
        case "allocation":
            return PodWasBound(at, pod)
        case "termination":
            return PodDeleted(at, pod)
    return None
