"""Lives of pods: how long one run takes, and what a pod uses at each moment of it."""

import math

import pytest

from lamina.model.resources import amounts
from lamina.simulator.cluster import VirtualPod
from lamina.simulator.cluster.pod_lifecycle import RUNS_FOREVER, LifecycleStage, PodLifecycle
from lamina.testing import a_pod

QUIET = LifecycleStage(10.0, amounts({"cpu": "100m"}))
BUSY = LifecycleStage(5.0, amounts({"cpu": 2}))


@pytest.mark.parametrize(
    ("life", "length"),
    [
        pytest.param(RUNS_FOREVER, None, id="a service"),
        pytest.param(PodLifecycle(seconds=60.0), 60.0, id="a task"),
        pytest.param(PodLifecycle(stages=(QUIET, BUSY)), 15.0, id="stages: their sum"),
        pytest.param(PodLifecycle(seconds=99.0, stages=(QUIET, BUSY)), 15.0, id="stages count for more"),
        pytest.param(PodLifecycle(stages=(QUIET, LifecycleStage(math.inf))), None, id="a stage without end"),
    ],
)
def test_one_run_is_as_long_as_its_life_says(life, length):
    assert length == life.length


@pytest.mark.parametrize(
    ("stages", "since", "now", "uses"),
    [
        pytest.param((QUIET, BUSY), None, 3.0, {}, id="not running"),
        pytest.param((), 2.0, 3.0, {"cpu": 3}, id="without stages, what it asks for"),
        pytest.param((QUIET, BUSY), 2.0, 2.0, {"cpu": "100m"}, id="at its start"),
        pytest.param((QUIET, BUSY), 2.0, 11.9, {"cpu": "100m"}, id="first stage"),
        pytest.param((QUIET, BUSY), 2.0, 12.0, {"cpu": 2}, id="a stage counts from its first moment"),
        pytest.param((QUIET, BUSY), 2.0, 40.0, {"cpu": 2}, id="after the last stage, as in it: it is stopping"),
    ],
)
def test_a_pod_uses_what_its_stage_says(stages, since, now, uses):
    pod = VirtualPod(a_pod("p", 3), (), 0.0, PodLifecycle(stages=stages))
    pod.since = since

    assert amounts(uses) == pod.using(now)
