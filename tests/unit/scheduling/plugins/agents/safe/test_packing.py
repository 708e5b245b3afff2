"""TargetLoadPacking: nodes are filled up to a share of their cpu."""

import msgspec
import pytest

from lamina.model.pod import Container
from lamina.model.resources import amounts
from lamina.scheduling.plugins.agents.safe import PackingArgs, TargetLoadPacking
from lamina.testing import a_node, a_pod
from tests.unit.scheduling.bench import Bench
from tests.unit.scheduling.plugins.agents.safe.usage import measured, plain, points

IDLE = PackingArgs(default_requests=0)
"""Such that a pod that asks for nothing uses nothing."""


def score(percent: float, pod=None, args: PackingArgs = IDLE) -> int:
    bench = Bench(plain())
    bench.context.usage.report((measured("n1", (percent / 100, 0.0)),))
    return points(TargetLoadPacking(bench.context, args), bench, pod or a_pod())["n1"]


@pytest.mark.parametrize(
    ("percent", "want"), [(0, 40), (20, 70), (40, 100), (41, 39), (50, 33), (70, 20), (100, 0), (120, 0)]
)
def test_published_scores_are_met(percent, want):
    assert want == score(percent)


def test_the_target_can_be_set():
    """Up to 80 it rises from 80 to 100, and falls to nothing from there."""
    args = PackingArgs(target_utilization=80, default_requests=0)

    assert [80, 90, 100, 40] == [score(percent, args=args) for percent in (0, 40, 80, 90)]


@pytest.mark.parametrize(
    ("container", "percent"),
    [
        pytest.param(Container("app:1", amounts({"cpu": "100m"}), limits=amounts({"cpu": "400m"})), 40, id="its limit"),
        pytest.param(Container("app:1", amounts({"cpu": "200m"})), 30, id="1.5 times its request"),
        pytest.param(Container("app:1"), 100, id="a core"),
        pytest.param(Container("app:1", amounts({"memory": "1"})), 100, id="a core, whatever it asks for of the rest"),
    ],
)
def test_a_container_is_expected_to_use(container, percent):
    pod = msgspec.structs.replace(a_pod(), containers=(container,), requests=container.requests)

    assert score(percent) == score(0, pod, PackingArgs())


def test_overhead_comes_on_top():
    """1.5 · 100 + 50 of 1000 are 20 %."""
    pod = msgspec.structs.replace(a_pod(cpu="100m"), requests=amounts({"cpu": "150m"}))

    assert 70 == score(0, pod, PackingArgs())


def test_a_node_nobody_knows_is_the_mean_of_the_others():
    bench = Bench(plain("n1"), plain("n2"), plain("silent"), a_node("no cpu", cpu=0))
    bench.context.usage.report((measured("n1", (0.2, 0.0)), measured("n2", (0.4, 0.0))))

    assert {"n1": 70, "n2": 100, "silent": 85, "no cpu": 85} == points(TargetLoadPacking(bench.context, IDLE), bench)


def test_compatible_gives_it_nothing():
    bench = Bench(plain("n1"), plain("silent"))
    bench.context.usage.report((measured("n1", (0.2, 0.0)),))
    args = PackingArgs(compatible=True, default_requests=0)

    assert {"n1": 70, "silent": 0} == points(TargetLoadPacking(bench.context, args), bench)
