"""SafeBalance: means and deviations of use, as kube-safe-scheduler and LoadVariationRiskBalancing weigh them."""

import pytest

from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.scheduling_agent import LINEAR
from lamina.scheduling.plugins.agents.safe import BalanceArgs, SafeBalance
from lamina.scheduling.plugins.agents.safe.safe_balance import SCORES
from lamina.testing import a_pod
from tests.unit.scheduling.bench import Bench
from tests.unit.scheduling.plugins.agents.safe.usage import annotated, measured, plain, points

COMPATIBLE = BalanceArgs(compatible=True)
FINE = (0.425, 0.10)  # level 6
FAIR = (0.80, 0.10)  # level 4


def level(node, args: BalanceArgs = COMPATIBLE) -> int:
    bench = Bench(node)
    return LINEAR[points(SafeBalance(bench.context, args), bench)[node.name]]


@pytest.mark.parametrize("resource", ["cpu", "memory"])
@pytest.mark.parametrize(
    ("mean", "deviation", "want"),
    [
        (0.425, 0.10, 6),
        (0.70, 0.15, 5),
        (0.80, 0.10, 4),
        (0.85, 0.10, 4),
        (0.85, 0.05, 5),
        (0.30, 0.30, 6),
        (0.60, 0.30, 4),
        (0.50, 0.50, 4),
        (0.95, 0.0, 5),
        (0.90, 0.0, 6),
        (0.0, 0.0, 10),
        (1.0, 1.0, 0),
    ],
    ids=str,
)
def test_published_levels_are_met(mean, deviation, want, resource):
    assert want == level(annotated(**{resource: (mean, deviation)}))


@pytest.mark.parametrize(
    ("cpu", "memory", "want"),
    [
        pytest.param(FINE, FAIR, 4, id="memory is worse"),
        pytest.param(FAIR, FINE, 4, id="cpu is worse"),
        pytest.param(None, FINE, 6, id="only memory is known"),
        pytest.param(None, None, 0, id="nothing is known"),
    ],
)
def test_the_worse_of_cpu_and_memory_decides(cpu, memory, want):
    assert want == level(annotated(cpu=cpu, memory=memory))


@pytest.mark.parametrize(
    ("args", "want"),
    [
        # 100 · (1 - (0.425 + x)/2)
        pytest.param({}, 63, id="√0.1: 62.94"),
        pytest.param({"sensitivity": 1}, 74, id="0.1: 73.75"),
        pytest.param({"sensitivity": 1, "margin": 0}, 79, id="nothing: 78.75"),
        pytest.param({"sensitivity": 1, "margin": 3}, 64, id="0.3: 63.75"),
        pytest.param({"margin": 100}, 29, id="no more than 1: 28.75"),
    ],
)
@pytest.mark.parametrize("source", ["measured", "annotations"])
def test_points_are_what_upstream_gives(args, want, source):
    bench = Bench(annotated("n1", FINE) if source == "annotations" else plain("n1"))
    if source == "measured":
        bench.context.usage.report((measured("n1", FINE),))

    assert {"n1": want} == points(SafeBalance(bench.context, BalanceArgs(source=source, **args)), bench)


@pytest.mark.parametrize(
    ("sensitivity", "want"),
    [pytest.param(1, 73.75, id="LoadVariationRiskBalancing"), pytest.param(2, 62.9386, id="kube-safe-scheduler")],
)
def test_published_values_are_met_before_they_are_rounded(sensitivity, want):
    bench = Bench(annotated("n1", FINE))
    state = CycleState()
    SafeBalance(bench.context, BalanceArgs(sensitivity=sensitivity)).score(state, a_pod(), bench.view)

    assert pytest.approx(want, abs=5e-5) == state[SCORES][0].points.item(0)


def test_what_the_pod_asks_for_counts():
    """100 · (1 - (0.3 + 0.2)/2)"""
    bench = Bench(plain())
    bench.context.usage.report((measured("n1", (0.3, 0.0), (0.1, 0.0)),))

    assert {"n1": 75} == points(SafeBalance(bench.context, BalanceArgs()), bench, a_pod(cpu="200m", memory="100"))


def test_a_node_nobody_knows_is_the_mean_of_the_others():
    """(62.94 + 44.19) / 2 = 53.6, and 62.94 where only that one is feasible."""
    bench = Bench(annotated("fine", FINE), annotated("fair", FAIR), plain("silent"))
    plugin = SafeBalance(bench.context, BalanceArgs())

    assert {"fine": 63, "fair": 44, "silent": 54} == points(plugin, bench)
    assert {"fine": 63, "silent": 63} == points(plugin, bench, feasible=("fine", "silent"))
