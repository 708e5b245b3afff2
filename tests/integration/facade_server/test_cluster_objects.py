"""The same scenario with claims and a disruption budget, under Lamina and under the real kube-scheduler."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from lamina.trace import trace_records
from lamina.trace.trace_reader import read_trace
from testbed import building

pytestmark = [pytest.mark.realtime, pytest.mark.testbed("kube-scheduler", alone=True)]

ROOT = Path(__file__).resolve().parents[3]
BUDGETS = ROOT / "examples" / "budgets" / "scenario.yaml"

Line = tuple[float, str, str]


def played(scenario: Path, out: Path, *words: object) -> list[Line]:
    """Return when pods of which controller were removed and started; equal nodes are chosen at random."""
    command = [sys.executable, "-m", "lamina.cli.main", "simulate", str(scenario), "--out", str(out), *map(str, words)]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=250, check=False)
    assert (0, "") == (ended.returncode, ended.stderr)
    kinds = (trace_records.PodRemoved, trace_records.PodStarted)
    records = [one for one in read_trace(out / "trace.jsonl.zst") if isinstance(one, kinds)]
    return sorted((one.at, type(one).__name__, one.pod.rpartition("-")[0]) for one in records)


def test_kube_scheduler_evicts_and_places_the_same_pods_at_the_same_times(tmp_path):
    """Its volumes are made at once, so the scenario has no delay for them."""
    written = yaml.safe_load(BUDGETS.read_text(encoding="utf-8"))
    written["defaults"]["provisionDelay"] = "0s"
    del written["profile"]
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(yaml.safe_dump(written), encoding="utf-8")

    ours = played(scenario, tmp_path / "lamina", "--profile", "kube-default")
    theirs = played(scenario, tmp_path / "kube", "--scheduler", building.ensure("kube-scheduler"))

    assert ours == theirs
    assert ["shop", "report", "shop"] == [pod.removeprefix("default/") for _, kind, pod in ours if kind == "PodRemoved"]
