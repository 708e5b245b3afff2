"""Preemption in a run: victims stop within their grace period, and are counted apart from other evictions."""

from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.run import summary
from lamina.simulator.workloads import PodArrival
from lamina.trace import trace_records
from tests.unit.simulator.test_run import a_node_spec, a_scenario, arriving, log, run


def test_a_preempted_pod_stops_within_its_grace_period_and_the_other_pod_then_takes_its_place():
    """It takes 40 s to stop and has 30; its controller is not simulated here."""
    low = arriving(0.0, "low")
    low = PodArrival(low.at, low.pod, PodLifecycle(stopping=40.0, grace=30.0))
    scenario = a_scenario([a_node_spec("n1", holds=["web"])], [low, arriving(10.0, "high", priority=10)])
    result, trace = run(scenario, "kube-default")

    assert [(40.0, "pod-removed", "low")] == log(trace, trace_records.PodRemoved)
    assert [("removed", "Preempted"), ("running", "")] == [(pod.phase, pod.reason) for pod in result.pods]
    assert (1, 0) == (result.preemptions, result.evictions)
    assert 1 == summary(result)["preemptions"]
    assert 40.0 <= (result.pods[1].bound or 0.0) < 42.0
