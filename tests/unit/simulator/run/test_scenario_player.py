"""What a scenario does to a cluster, and in which order at one instant."""

import pytest

from lamina.model.errors import WiringError
from lamina.scheduling.config.named_profiles import named
from lamina.scheduling.plugins.in_tree import registry
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.controllers import ControllerSpec
from lamina.simulator.run import SimulationResult, simulate, summary
from lamina.simulator.workloads import Scenario, ScenarioEvent
from lamina.testing import a_pod
from lamina.trace import trace_records
from lamina.trace.trace_records import TraceRecord
from lamina.trace.trace_writer import MemoryTrace
from tests.unit.simulator.test_run import IMAGES, a_node_spec, a_scenario, arriving, log, placed


def run(scenario: Scenario) -> tuple[SimulationResult, list[TraceRecord]]:
    trace = MemoryTrace()
    return simulate(scenario, named("lamina-balanced", registry()), trace=trace), trace.records


def a_controller(kind: str = "Deployment", name: str = "web", cpu: int = 1, life: PodLifecycle | None = None, **more):
    template = a_pod("template", cpu, image=IMAGES["web"].names[0], scheduler="")
    return ControllerSpec(kind=kind, name=name, template=template, life=life or PodLifecycle(), **more)


def running(result: SimulationResult) -> list[tuple[str, str]]:
    return [(pod.pod.removeprefix("default/"), pod.node) for pod in result.pods if pod.phase == "running"]


# ----------------------------------------------------------------------------------------------------- from outside


def test_a_node_that_joins_takes_pods_that_waited():
    late = ScenarioEvent(5.0, "join", "n2", node=a_node_spec("n2", 8, holds=["web"]))
    result, trace = run(a_scenario([a_node_spec("n1", 1)], [arriving(0.0, "p")], events=(late,)))

    assert {"p": "n2"} == placed(result)
    assert [(0.0, "node-joined", "n1"), (5.0, "node-joined", "n2")] == log(trace, trace_records.NodeJoined)
    assert ["n1", "n2"] == [node.node for node in result.nodes]


def test_a_node_that_is_open_again_takes_pods():
    nodes = [a_node_spec("n1", holds=["web"])]
    events = (ScenarioEvent(1.0, "cordon", "n1"), ScenarioEvent(9.0, "uncordon", "n1"))
    result, _ = run(a_scenario(nodes, [arriving(2.0, "p")], events=events))

    assert ("n1", 9.0) == (result.pods[0].node, result.pods[0].bound)


def test_a_drained_node_is_empty_and_closed():
    nodes = [a_node_spec("n1", 8, holds=["web"])]
    scenario = a_scenario(
        nodes, [arriving(0.0, "p"), arriving(20.0, "q")], events=(ScenarioEvent(10.0, "drain", "n1"),)
    )
    result, _ = run(scenario)

    assert ["pending"] == [pod.phase for pod in result.pods if pod.pod == "default/q"]
    assert result.pods[0].phase in ("removed", "failed")


def test_a_node_that_fails_is_written_down_and_so_is_its_recovery():
    events = (ScenarioEvent(10.0, "fail", "n1"), ScenarioEvent(20.0, "recover", "n1"))
    _, trace = run(a_scenario([a_node_spec("n1", 8, holds=["web"])], [arriving(0.0, "p")], events=events))

    assert [(10.0, "node-failed", "n1"), (20.0, "node-recovered", "n1")] == log(
        trace, trace_records.NodeFailed, trace_records.NodeRecovered
    )


def test_arrivals_need_not_be_in_order():
    scenario = a_scenario([a_node_spec("n1", 16, holds=["web"])], [arriving(5.0, "late"), arriving(1.0, "early")])
    _, trace = run(scenario)

    assert [(1.0, "pod-arrived", "early"), (5.0, "pod-arrived", "late")] == log(trace, trace_records.PodArrived)


def test_at_one_instant_pods_arrive_before_things_happen_to_the_cluster():
    """The pod comes in time to be removed."""
    scenario = a_scenario([a_node_spec("n1")], [arriving(5.0, "p")], events=(ScenarioEvent(5.0, "remove", "p"),))

    assert ["removed"] == [pod.phase for pod in run(scenario)[0].pods]


# ------------------------------------------------------------------------------------------------------- controllers


def test_a_controller_keeps_its_pods_and_any_profile_will_do_for_them():
    scenario = a_scenario([a_node_spec("n1", 8, holds=["web"])], [], controllers=(a_controller(replicas=3),))
    result, _ = run(scenario)

    assert [("web-1", "n1"), ("web-2", "n1"), ("web-3", "n1")] == running(result)


def test_a_controller_can_be_scaled():
    scenario = a_scenario(
        [a_node_spec("n1", 8, holds=["web"])],
        [],
        controllers=(a_controller(replicas=1),),
        events=(ScenarioEvent(10.0, "scale", "web", count=3), ScenarioEvent(20.0, "scale", "web", count=0)),
    )
    result, trace = run(scenario)

    assert [0.0, 10.0, 10.0] == [record.at for record in trace if isinstance(record, trace_records.PodArrived)]
    assert ["removed"] * 3 == [pod.phase for pod in result.pods]
    assert {20.0} == {pod.ended for pod in result.pods}


def test_a_controller_can_be_given_another_image():
    scenario = a_scenario(
        [a_node_spec("n1", 8, holds=["web", "api"])],
        [],
        controllers=(a_controller(replicas=2),),
        events=(ScenarioEvent(10.0, "update", "web", image=IMAGES["api"].names[0]),),
    )
    result, trace = run(scenario)
    arrived = [(one.at >= 10.0, one.images) for one in trace if isinstance(one, trace_records.PodArrived)]

    assert [(False, IMAGES["web"].names)] * 2 + [(True, IMAGES["api"].names)] * 2 == arrived
    assert 2 == len(running(result))


def test_a_job_runs_to_its_end():
    job = a_controller("Job", "batch", replicas=3, parallelism=2, life=PodLifecycle(seconds=10.0))
    result, _ = run(a_scenario([a_node_spec("n1", 8, holds=["web"])], [], controllers=(job,)))

    assert ["finished"] * 3 == [pod.phase for pod in result.pods]
    assert 3 == summary(result)["pods"]["finished"]


@pytest.mark.parametrize("kind", ["scale", "update"])
def test_who_is_not_there_cannot_be_changed(kind):
    scenario = a_scenario([a_node_spec("n1")], [], events=(ScenarioEvent(1.0, kind, "nobody"),))

    with pytest.raises(WiringError):
        run(scenario)
