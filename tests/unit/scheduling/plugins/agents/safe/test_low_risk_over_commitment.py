"""LowRiskOverCommitment: what pods may use and do use beyond their requests."""

import pytest

from lamina.model.node_usage import NodeUsage, ResourceUsage
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.plugins.agents.safe import LowRiskOverCommitment, OverCommitmentArgs
from lamina.scheduling.plugins.agents.safe.args import LimitWeights
from lamina.scheduling.plugins.agents.safe.low_risk_over_commitment import RISK
from lamina.testing import a_node, a_pod
from tests.unit.scheduling.bench import Bench
from tests.unit.scheduling.plugins.agents.safe.usage import points

ONLY_LIMITS = OverCommitmentArgs(risk_limit_weights=LimitWeights(cpu=1, memory=1))
ONLY_LOAD = OverCommitmentArgs(risk_limit_weights=LimitWeights(cpu=0, memory=0))
HALF = (2000.0, 200.0)
"""A use of half of four cores, with a deviation of a twentieth of them."""


def a_bench(
    requested: int = 0, limited: int = 0, use: tuple[float, float] | None = HALF, name: str = "n1", cpu: int = 4
) -> Bench:
    """A node of four cores on which pods asked for *requested* and may use *limited* thousandths of a core."""
    bench = Bench(a_node(name, cpu=cpu))
    add(bench, name, requested, limited, use)
    return bench


def add(bench: Bench, name: str, requested: int, limited: int, use: tuple[float, float] | None) -> None:
    bench.place(name, a_pod(f"on {name}", cpu=f"{requested}m", limits={"cpu": f"{limited}m"}))
    if use is not None:
        bench.context.usage.report((NodeUsage(name, cpu=ResourceUsage(*use)),))


def asking(requests: int, limits: int):
    return a_pod(cpu=f"{requests}m", limits={"cpu": f"{limits}m"})


def score(bench: Bench, pod, args: OverCommitmentArgs | None = None) -> int:
    return points(LowRiskOverCommitment(bench.context, args or OverCommitmentArgs()), bench, pod)["n1"]


@pytest.mark.parametrize(
    ("limited", "most", "limits", "load", "both"),
    [
        # 100 · (1 - risk): published risks 0.5714, 0.5000, 0.5357 and 0, 0.4947, 0.2473.
        pytest.param(5000, 1000, 43, 50, 46, id="limits exceed the capacity"),
        pytest.param(3000, 500, 100, 51, 75, id="limits hold them back"),
    ],
)
def test_published_risks_are_met(limited, most, limits, load, both):
    """2000 requested on four cores, 500 more asked for."""
    bench = a_bench(requested=2000, limited=limited)

    assert limits == score(bench, asking(500, most), ONLY_LIMITS)
    assert load == score(bench, asking(500, most), ONLY_LOAD)
    assert both == score(bench, asking(500, most))


@pytest.mark.parametrize(
    ("limited", "most", "limits", "load", "both"),
    [
        pytest.param(5000, 1000, 0.5714, 0.5000, 0.5357, id="limits exceed the capacity"),
        pytest.param(3000, 500, 0.0, 0.4947, 0.2473, id="limits hold them back"),
    ],
)
def test_published_risks_are_met_before_they_are_rounded(limited, most, limits, load, both):
    bench = a_bench(requested=2000, limited=limited)
    state = CycleState()
    LowRiskOverCommitment(bench.context, OverCommitmentArgs()).score(state, asking(500, most), bench.view)
    cpu = state[RISK][0]
    found = cpu.limits.item(0), cpu.load.item(0)

    assert pytest.approx((limits, load), abs=5e-5) == found
    assert pytest.approx(both, abs=1e-4) == cpu.weight * found[0] + (1 - cpu.weight) * found[1]


@pytest.mark.parametrize(
    ("cpu", "memory", "want"),
    [
        # Of cpu limits risk 1/2 and load nothing, of memory limits 1/4 and load nothing.
        pytest.param(1.0, 0.0, 50, id="limits of cpu only"),
        pytest.param(0.0, 1.0, 75, id="limits of memory only"),
        pytest.param(0.2, 1.0, 75, id="cpu by a fifth: 0.1 is less than 0.25"),
        pytest.param(0.8, 0.1, 60, id="memory by a tenth: 0.4 is more than 0.025"),
    ],
)
def test_limits_may_count_differently_for_cpu_and_memory(cpu, memory, want):
    """A pod asks for nothing and may use 8 of 4 cores, and asks for 4 of 16 GiB and may use 20."""
    bench = Bench(a_node("n1"))
    bench.context.usage.report((NodeUsage("n1", cpu=ResourceUsage(0.0), memory=ResourceUsage(0.0)),))
    pod = a_pod(memory="4Gi", limits={"cpu": 8, "memory": "20Gi"})
    args = OverCommitmentArgs(risk_limit_weights=LimitWeights(cpu=cpu, memory=memory))

    assert want == score(bench, pod, args)


@pytest.mark.parametrize(
    ("requested", "limited", "pod", "want"),
    [
        pytest.param(0, 0, asking(500, 4000), 100, id="limits reach the capacity"),
        # One core too many, of 4.5 that were not requested: 0.22.
        pytest.param(0, 0, asking(500, 5000), 78, id="limits of the pod exceed it"),
        # Half a core too many, of half a core that was not requested.
        pytest.param(4000, 4000, asking(500, 500), 0, id="requests are more than there is, and count as all of it"),
        pytest.param(0, 0, a_pod(cpu="500m"), 100, id="without limits requests stand in"),
        # Two cores too many, of 5.5 that were not requested.
        pytest.param(500, 5500, a_pod(cpu="500m"), 60, id="without limits, beside one with"),
    ],
)
def test_limits_beyond_the_capacity_are_a_risk(requested, limited, pod, want):
    assert want == score(a_bench(requested, limited), pod, ONLY_LIMITS)


@pytest.mark.parametrize(
    ("requested", "limited", "use", "want"),
    [
        pytest.param(3000, 8000, (2000.0, 0.0), 100, id="steadily below requests"),
        pytest.param(1000, 8000, (2000.0, 0.0), 0, id="steadily above"),
        pytest.param(2000, 8000, (0.0, 0.0), 100, id="not used at all"),
        pytest.param(0, 0, (2000.0, 100.0), 100, id="no limits and no requests: nobody exceeds them"),
        pytest.param(1000, 1500, (2000.0, 0.0), 0, id="steadily above limits as well"),
        # The root of five times a fortieth is 0.0559; two of those below the mean: P = 0.0224.
        pytest.param(1553, 8000, (2000.0, 100.0), 2, id="a window hides deviation"),
        pytest.param(2000, 8000, (2000.0, 4000.0), 50, id="no more deviation than there can be"),
    ],
)
def test_use_beyond_requests_is_a_risk(requested, limited, use, want):
    assert want == score(a_bench(requested, limited, use), asking(100, 100), ONLY_LOAD)


def test_the_window_says_how_much_deviation_was_averaged_away():
    """One sample hides nothing: 1553 of 4000 are 4.5 deviations below the mean."""
    args = OverCommitmentArgs(smoothing_window_size=1, risk_limit_weights=LimitWeights(cpu=0, memory=0))

    assert 0 == score(a_bench(1553, 8000, (2000.0, 100.0)), asking(100, 100), args)


def test_the_worse_of_cpu_and_memory_decides():
    """Limits of cpu reach the capacity, those of memory are (20 - 16) / (20 - 4) beyond."""
    bench = a_bench(use=None)
    pod = a_pod(cpu=1, memory="4Gi", limits={"cpu": 1, "memory": "20Gi"})

    assert 75 == score(bench, pod, ONLY_LIMITS)


def test_a_load_nobody_measured_is_the_mean_of_the_others():
    """Load 0, 1 and unknown: 100, 0 and 50 points; limits are known of all three."""
    bench = Bench(*(a_node(name) for name in ("calm", "busy", "silent", "silent and tight")))
    add(bench, "calm", 3000, 8000, (2000.0, 0.0))
    add(bench, "busy", 1000, 8000, (2000.0, 0.0))
    add(bench, "silent", 0, 0, None)
    add(bench, "silent and tight", 1000, 8000, None)
    pod = asking(100, 100)

    by_load = points(LowRiskOverCommitment(bench.context, ONLY_LOAD), bench, pod)
    both = points(LowRiskOverCommitment(bench.context, OverCommitmentArgs()), bench, pod)

    assert {"calm": 100, "busy": 0, "silent": 50, "silent and tight": 50} == by_load
    # 1 - (0.5 · 0 + 0.5 · 0.5), and 1 - (0.5 · (8100 - 4000)/(8100 - 1100) + 0.5 · 0.5)
    assert (75, 46) == (both["silent"], both["silent and tight"])


def test_where_nothing_was_measured_limits_decide():
    bench = Bench(a_node("tight"), a_node("free"))
    add(bench, "tight", 1000, 8000, None)

    assert {"tight": 71, "free": 100} == points(
        LowRiskOverCommitment(bench.context, OverCommitmentArgs()), bench, asking(100, 100)
    )


def test_compatible_gives_nothing_to_a_node_nobody_measured():
    bench = a_bench(use=None)
    bench.put(a_node("known"))
    add(bench, "known", 2000, 8000, (1000.0, 0.0))
    args = OverCommitmentArgs(compatible=True)

    # 1 - 0.5 · (8100 - 4000)/(8100 - 2100)
    assert {"n1": 0, "known": 66} == points(LowRiskOverCommitment(bench.context, args), bench, asking(100, 100))


@pytest.mark.parametrize("compatible", [True, False])
def test_a_pod_that_asks_for_nothing_is_not_ranked(compatible):
    bench = a_bench(requested=2000, limited=8000)

    assert 0 == score(bench, a_pod(), OverCommitmentArgs(compatible=compatible))


def test_a_node_without_capacity_is_no_risk_in_this_respect():
    assert 100 == score(a_bench(cpu=0), asking(100, 100))
