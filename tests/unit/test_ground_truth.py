"""The simulator against a real cluster's runs, and against what anybody can work out: 200 jobs on 16 nodes."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def batkube(monkeypatch):
    """The benchmark that knows the workload."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("batkube")


@pytest.fixture
def recorded(batkube):
    """The real runs, where they are at hand."""
    folder = batkube.data_folder()
    if folder is None:
        pytest.skip(f"needs recorded runs: {batkube.MISSING}")
    return batkube.recorded(folder)


def test_without_delays_200_jobs_on_16_nodes_take_13_rounds(batkube):
    free = batkube.Delays(report=0.0, status=0.0, start=0.0)

    makespan, waited = batkube.simulated(batkube.BURST, free, 16, seed=1)

    assert 13 * 170.0 == makespan
    # 16 jobs wait for each of the first twelve rounds to end, and the last eight for the thirteenth to begin.
    assert (16 * sum(range(12)) + 8 * 12) * 170.0 / 200 == pytest.approx(waited)


def test_the_real_cluster_never_ran_more_than_15_jobs_at_once(batkube, recorded):
    most = {batkube.at_once(jobs) for name in (batkube.BURST, batkube.SPACED) for jobs in recorded[name].values()}

    assert {15} == most


def test_with_the_delays_of_half_the_real_runs_the_other_half_is_met(batkube, recorded):
    for workload, figure, allowed in ((batkube.BURST, 0, 0.03), (batkube.SPACED, 1, 0.15)):
        runs = recorded[workload]
        lags = batkube.delays([jobs for number, jobs in runs.items() if number % 2 == 0])
        truth = [batkube.figures(jobs)[figure] for number, jobs in runs.items() if number % 2 == 1]
        ours = batkube.simulated(workload, lags, batkube.AT_WORK, seed=1)[figure]

        assert sum(truth) / len(truth) == pytest.approx(ours, rel=allowed), workload
