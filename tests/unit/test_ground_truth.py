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
    folder = batkube.data_folder(batkube.RUNS)
    if folder is None:
        pytest.skip(batkube.missing(batkube.RUNS))
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


# ------------------------------------------------------------------------------------------------------------- calibration


@pytest.fixture
def calibration(monkeypatch):
    """The benchmark that replays recorded pulls."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("calibration")


def a_pull(calibration, gigabytes, *, asked=0.0, image="zeros"):
    return calibration.Seen("node", image, asked, 1.0, 10, gigabytes * 1e9, 0.0)


@pytest.mark.parametrize(
    ("gigabytes", "seconds"),
    [
        # Half a second, ten layers of 0.02 s, and 200 MB/s as long as memory takes it in.
        pytest.param(1, 0.5 + 0.2 + 5.0, id="memory takes it in"),
        # 100 MB/s more come in than go out, so 1 GB of memory is full after 10 s and 2 GB; the rest goes at the disk's 100.
        pytest.param(6, 0.5 + 0.2 + 10.0 + 40.0, id="the disk is the limit after ten seconds"),
    ],
)
def test_a_replayed_pull_takes_what_its_parameters_say(calibration, gigabytes, seconds):
    machine = calibration.Machine(resolve=0.5, overhead=0.02, unpack=200e6, disk=100e6, cache=1e9)

    ((_, took),) = calibration.replay([a_pull(calibration, gigabytes)], machine)

    # Between layers memory empties a little, for as long as a layer's overhead.
    assert seconds == pytest.approx(took, rel=0.03)


def test_pods_that_pull_one_image_at_the_same_time_share_the_pull(calibration):
    machine = calibration.Machine(resolve=0.0, overhead=0.0, unpack=200e6, disk=200e6, cache=1e9)
    pulls = [a_pull(calibration, 1), a_pull(calibration, 1, asked=0.5), a_pull(calibration, 1, asked=9.0)]

    took = [round(seconds, 1) for _, seconds in calibration.replay(pulls, machine)]

    assert [5.0, 4.5, 5.0] == took
