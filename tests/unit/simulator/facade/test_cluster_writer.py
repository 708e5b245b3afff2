"""From the API to the cluster: nodes, pods and refusals of clients act on the simulation."""

from collections.abc import Sequence

import pytest

from lamina.simulator.cluster import Delays
from lamina.simulator.workloads import PodArrival
from lamina.trace.trace_records import NodeJoined, NodeLeft, PodBound, PodDecided, PodFinished, PodRemoved
from tests.unit.simulator.facade.api_client import NODES, PODS, ApiClient, a_node_object, a_pod_object
from tests.unit.simulator.facade.facade_story import FacadeStory
from tests.unit.simulator.test_run import a_node_spec, a_scenario, arriving, log

AT_ONCE = Delays(start=0.0)


def ticks(*times: float) -> Sequence[PodArrival]:
    """Pods of another scheduler: their arrivals let clients act at these times."""
    return [arriving(at, f"tick{at:g}", cpu=0, scheduler="none") for at in times]


def test_nodes_of_clients_join_change_leave_and_come_back():
    def taint(client: ApiClient) -> object:
        return client.patch(f"{NODES}/n1", {"spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}})

    story = FacadeStory(
        {
            0.0: lambda client: client.made(PODS, a_pod_object("a")),
            10.0: lambda client: uids.append(client.made(NODES, a_node_object("n1"))["metadata"]["uid"]),
            20.0: lambda client: client.patch(f"{NODES}/n1", {"spec": {"unschedulable": True}}),
            21.0: lambda client: client.made(PODS, a_pod_object("b")),
            30.0: lambda client: client.patch(f"{NODES}/n1", {"spec": {"unschedulable": None}}),
            40.0: taint,
            41.0: lambda client: client.made(PODS, a_pod_object("c")),
            50.0: lambda client: client.delete(f"{NODES}/n1"),
            60.0: lambda client: uids.append(client.made(NODES, a_node_object("n1"))["metadata"]["uid"]),
        }
    )
    uids: list[str] = []
    story.run(a_scenario([], ticks(0, 10, 20, 21, 30, 40, 41, 50, 60), delays=AT_ONCE, until=100.0))

    assert [
        (0.0, "decided: unschedulable", "a"),
        (10.0, "node-joined", "n1"),
        (10.0, "pod-bound", "a"),
        # the node is cordoned from 20 s to 30 s, and tainted from 40 s on
        (21.0, "decided: unschedulable", "b"),
        (30.0, "pod-bound", "b"),
        (41.0, "decided: unschedulable", "c"),
        (50.0, "pod-removed", "a"),
        (50.0, "pod-removed", "b"),
        (50.0, "node-left", "n1"),
        (60.0, "node-joined", "n1"),
        (60.0, "pod-bound", "c"),
    ] == log(story.records, PodDecided, NodeJoined, NodeLeft, PodBound, PodRemoved)
    assert 2 == len(set(uids)), "the node that came back is another one"


def test_a_label_of_a_client_reaches_the_cluster():
    story = FacadeStory({0.0: lambda client: client.patch(f"{NODES}/n1", {"metadata": {"labels": {"zone": "a"}}})})
    story.run(a_scenario([a_node_spec("n1")], ticks(0), until=5.0))

    assert story.facade is not None
    assert "a" == story.facade.cluster.nodes["n1"].labels["zone"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        pytest.param(PODS, a_pod_object("p", overhead={"cpu": "1"}, runtimeClassName="x"), id="pod"),
        pytest.param(NODES, a_node_object("n2"), id="node"),
    ],
)
def test_what_the_simulator_can_read_is_accepted(path, body):
    answers = []
    story = FacadeStory({0.0: lambda client: answers.append(client.post(path, body)[0])})
    story.run(a_scenario([a_node_spec("n1")], ticks(0), until=5.0))

    assert [201] == answers


def test_a_pod_of_a_client_runs_as_its_annotation_says():
    """simSpec lists how long it runs, as in k8s-cluster-simulator."""
    body = a_pod_object("p")
    body["metadata"]["annotations"] = {"simSpec": '[{"seconds": 7, "resourceUsage": {"cpu": "1"}}]'}
    story = FacadeStory({0.0: lambda client: client.made(PODS, body)})
    story.run(a_scenario([a_node_spec("n1")], ticks(0), delays=AT_ONCE))

    assert [(7.0, "pod-finished", "p")] == log(story.records, PodFinished)
    assert "Succeeded" == story.client.get(f"{PODS}/p")["status"]["phase"]


def test_a_pod_that_names_its_node_needs_no_scheduler():
    story = FacadeStory({0.0: lambda client: client.made(PODS, a_pod_object("p", nodeName="n1"))})
    story.run(a_scenario([a_node_spec("n1")], ticks(0), delays=AT_ONCE, until=5.0))

    assert [(0.0, "pod-bound", "p")] == log(story.records, PodBound)
    assert "Running" == story.client.get(f"{PODS}/p")["status"]["phase"]


def test_attempts_are_counted_until_a_pod_is_bound():
    story = FacadeStory()
    pods = [arriving(0.0, "first", duration=30.0), arriving(1.0, "waits"), arriving(2.0, "more", cpu=1)]
    story.run(a_scenario([a_node_spec("n1", holds=["web"])], pods, delays=AT_ONCE, until=60.0))
    decisions = [one.decision for one in story.records if isinstance(one, PodDecided)]

    assert [("default/waits", 1, "0/1 nodes"), ("default/more", 1, "0/1 nodes")] == [
        (one.pod, one.attempt, one.message) for one in decisions
    ]
