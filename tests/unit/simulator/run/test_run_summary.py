"""A summary counts every pod once: started, or not started and how far it came."""

import pytest

from lamina.simulator.cluster import Phase
from lamina.simulator.run import SimulationResult, summary
from lamina.simulator.run.result import PodOutcome
from lamina.simulator.run.run_summary import NEVER_STARTED
from tests.unit.simulator.test_run import a_node_spec, a_scenario, arriving, run


def a_result(*pods: tuple[Phase, float | None]) -> SimulationResult:
    """Pods that ended up so, and when they started."""
    outcomes = tuple(PodOutcome(pod="default/p", phase=phase, arrived=0.0, bound=0.0, started=at) for phase, at in pods)
    return SimulationResult(
        scenario="s", profile="p", seed=0, seconds=9.0, peak_load=None, imbalance=None, pods=outcomes, nodes=()
    )


@pytest.mark.parametrize("phase", NEVER_STARTED)
def test_a_pod_that_never_started_is_counted_by_its_phase(phase):
    counted = summary(a_result((phase, None), ("running", 1.0)))["pods"]

    assert (2, 1) == (counted["total"], counted["started"])
    assert {**dict.fromkeys(NEVER_STARTED, 0), "total": 1, phase: 1} == counted["not_started"]


@pytest.mark.parametrize("phase", ["failed", "removed", "stopping", "finished", "restarting"])
def test_a_pod_that_ended_after_its_start_counts_as_started(phase):
    counted = summary(a_result((phase, 1.0)))["pods"]

    assert (1, 0) == (counted["started"], counted["not_started"]["total"])


def test_pods_that_still_pull_when_the_run_is_cut_off_are_not_started():
    scenario = a_scenario([a_node_spec("n1")], [arriving(0.0, "p"), arriving(9.0, "late")], until=3.5)

    # Of the second nothing is known: it has not arrived.
    assert {"total": 1, "pulling": 1} == {
        key: number for key, number in summary(run(scenario)[0])["pods"]["not_started"].items() if number
    }


def test_a_summary_of_nothing_has_no_figures():
    figures = summary(run(a_scenario([a_node_spec("n1")], []))[0])

    assert {"p50": None, "p95": None, "p99": None, "mean": None, "max": None} == figures["startup_seconds"]["total"]
    assert (0, 0, 0.0) == (figures["bytes_pulled"], figures["pods"]["total"], figures["virtual_seconds"])
    assert (None, None) == (figures["peak_load"], figures["imbalance"])
