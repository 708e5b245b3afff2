"""TargetLoadPacking: nodes are filled up to a share of their cpu."""

from collections import Counter

import msgspec
import pytest

from lamina.model import events
from lamina.model.node_usage import NodeUsage, ResourceUsage
from lamina.model.pod import Container, total_requests
from lamina.model.resources import amounts
from lamina.scheduling.plugins.agents.safe import PackingArgs, TargetLoadPacking
from lamina.testing import LoopHarness, a_loop, a_node, a_pod
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


@pytest.mark.parametrize("target", range(1, 100))
def test_a_node_at_its_target_is_as_good_as_can_be_and_one_beyond_is_not(target):
    """Whatever floats make of 7, 14, 28, 55 or 56 percent."""
    args = PackingArgs(target_utilization=target, default_requests=0)

    assert 100 == score(target, args=args)
    assert target >= score(target + 0.1, args=args)


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


def test_how_many_times_its_request_a_container_is_expected_to_use_can_be_set():
    assert score(50) == score(0, a_pod(cpu="200m"), PackingArgs(default_requests_multiplier=2.5))


@pytest.mark.parametrize(
    ("overhead", "percent"),
    [
        pytest.param(0, 15, id="1.5 · 100"),
        pytest.param(50, 20, id="1.5 · 100 and the overhead"),
    ],
)
def test_containers_that_run_beforehand_are_not_expected_to_use_anything(overhead, percent):
    """An init container asks for much more; it has ended when the pod is measured."""
    container, before = Container("app:1", amounts({"cpu": "100m"})), Container("init:1", amounts({"cpu": "700m"}))
    requests, _ = total_requests((container,), (before,), overhead=amounts({"cpu": f"{overhead}m"}))
    pod = msgspec.structs.replace(a_pod(), containers=(container,), init_containers=(before,), requests=requests)

    assert score(percent) == score(0, pod, PackingArgs())


@pytest.mark.parametrize(
    ("args", "coming", "percent"),
    [
        pytest.param({}, a_pod(cpu="200m"), 30, id="1.5 times its request"),
        pytest.param({}, a_pod(cpu="100m", limits={"cpu": "400m"}), 40, id="its limit"),
        pytest.param({}, a_pod(), 100, id="a core"),
        pytest.param({"default_requests": 100}, a_pod(), 10, id="what is set for those who say nothing"),
        pytest.param({"default_requests_multiplier": 2}, a_pod(cpu="200m"), 40, id="what is set for requests"),
    ],
)
def test_pods_that_are_not_measured_yet_count_with_what_they_are_expected_to_use(args, coming, percent):
    bench = Bench(plain())
    bench.context.usage.report((NodeUsage("n1", cpu=ResourceUsage(0.0)),))
    bench.context.usage.came("n1", coming)
    small = msgspec.structs.replace(a_pod(), containers=())

    assert {"n1": score(percent)} == points(TargetLoadPacking(bench.context, PackingArgs(**args)), bench, small)


@pytest.mark.parametrize(
    "more", [pytest.param({}, id="no requests"), pytest.param({"cpu": "100m", "limits": {"cpu": 1}}, id="a limit")]
)
def test_a_burst_does_not_go_to_one_node(more):
    """Each is expected to use one of four cores, and no node should be used for more than 40 percent."""
    desk = LoopHarness(a_loop(["PrioritySort", "NodeName", "TargetLoadPacking", "DefaultBinder"]))
    names = ("n1", "n2", "n3")
    desk.tell(*(events.NodeSeen(a_node(name)) for name in names))
    desk.tell(events.UsageReported(tuple(NodeUsage(name, cpu=ResourceUsage(0.0)) for name in names)))
    desk.see(*(a_pod(f"p{number}", **more) for number in range(9)))

    assert {"n1": 3, "n2": 3, "n3": 3} == Counter(desk.bound.values())


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
