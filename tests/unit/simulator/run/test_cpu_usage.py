"""What pods really used over a window, in thousandths of a cpu times seconds."""

import pytest

from lamina.model.resources import amounts
from lamina.simulator.cluster import VirtualPod
from lamina.simulator.cluster.pod_lifecycle import RUNS_FOREVER, LifecycleStage, PodLifecycle
from lamina.simulator.run.cpu_usage import RestartTimes, used_seconds
from lamina.testing import a_pod
from lamina.trace.trace_records import PodRestarted


def ran(
    life: PodLifecycle = RUNS_FOREVER, started: float | None = 10.0, ended: float | None = None, restarts: int = 0
) -> VirtualPod:
    """A pod that asks for two cpu."""
    pod = VirtualPod(a_pod("p", 2), (), 0.0, life)
    pod.started, pod.ended, pod.restarts = started, ended, restarts
    return pod


def stage(seconds: float, cpu: float) -> LifecycleStage:
    return LifecycleStage(seconds, amounts({"cpu": cpu, "memory": 1}))


@pytest.mark.parametrize(
    ("pod", "window", "expected"),
    [
        pytest.param(ran(), (0.0, 30.0), 2000 * 20, id="runs on: what it asks for"),
        pytest.param(ran(ended=15.0), (0.0, 30.0), 2000 * 5, id="until it ended"),
        pytest.param(ran(PodLifecycle(seconds=4.0), ended=20.0), (0.0, 30.0), 2000 * 4, id="stopping uses nothing"),
        pytest.param(ran(), (12.0, 14.0), 2000 * 2, id="only the window counts"),
        pytest.param(ran(ended=11.0), (12.0, 14.0), 0, id="ended before"),
        pytest.param(ran(), (0.0, 9.0), 0, id="began after"),
        pytest.param(ran(started=None), (0.0, 30.0), 0, id="never ran"),
        pytest.param(ran(), (10.0, 10.0), 2000, id="an instant: what it used then"),
        pytest.param(ran(ended=10.0), (10.0, 10.0), 0, id="an instant: it had ended"),
        pytest.param(
            ran(PodLifecycle(stages=(stage(2.0, 1), stage(3.0, 4))), ended=15.0),
            (0.0, 30.0),
            1000 * 2 + 4000 * 3,
            id="stages, one after the other",
        ),
        pytest.param(
            ran(PodLifecycle(stages=(stage(2.0, 1), stage(3.0, 4)))), (11.0, 13.0), 1000 + 4000, id="parts of two"
        ),
        pytest.param(
            ran(PodLifecycle(stages=(stage(2.0, 1), stage(3.0, 4))), ended=11.0),
            (0.0, 30.0),
            1000,
            id="stages that were cut off",
        ),
    ],
)
def test_a_pod_counts_while_it_runs(pod, window, expected):
    assert expected == used_seconds([pod], RestartTimes(), *window)


def test_between_two_runs_nothing_is_used():
    """It runs for 5 seconds, three times: from 10, 25 and 50; the last time it is removed after 2."""
    restarts = RestartTimes()
    for number, at in enumerate((25.0, 50.0), 1):
        restarts.add(PodRestarted(at, "default/p", "n1", number))

    assert 2000 * 12 == used_seconds([ran(PodLifecycle(seconds=5.0), ended=52.0, restarts=2)], restarts, 0.0, 100.0)


def test_restarts_of_an_earlier_pod_of_that_name_are_not_its_own():
    restarts = RestartTimes()
    for number, at in enumerate((3.0, 20.0, 90.0), 1):
        restarts.add(PodRestarted(at, "default/p", "n1", number))

    assert 2000 * 10 == used_seconds([ran(PodLifecycle(seconds=5.0), ended=60.0, restarts=1)], restarts, 0.0, 100.0)
