"""From the cluster to the store: what events of the simulation make of objects."""

from typing import Any

import msgspec
import pytest

from lamina.model.events import NodeGone, NodeSeen, PodGone, PodSeen, TimePassed
from lamina.model.pod import Pod, PodUid
from lamina.simulator.cluster import Delays, VirtualCluster, VirtualNodeSpec
from lamina.simulator.cluster.image_reports import empty_image
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.engine import Environment
from lamina.simulator.facade.node_objects import node_address
from lamina.simulator.facade.store_writer import StoreWriter
from lamina.testing import a_node, a_pod
from tests.unit.simulator.facade.api_client import NODES, PODS, STRATEGIC, NotedFacade, a_node_object

NODE_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


class Recorder:
    """Takes what a cluster says and forgets it."""

    def note(self, record: object) -> None:
        """Forget."""

    def publish(self, event: object) -> None:
        """Forget."""


class Written:
    """A façade that a cluster writes to, event by event."""

    def __init__(self, most_ended: int = 100) -> None:
        self.environment = Environment()
        self.cluster = VirtualCluster(self.environment, (), Delays(), Recorder(), unknown_image=empty_image)
        self.facade = NotedFacade(("kube-node-lease",))
        self.writer = StoreWriter(self.facade.state, self.cluster, most_ended)

    def submit(self, pod: Pod, life: PodLifecycle | None = None) -> Pod:
        """Submit a pod to the cluster and show it."""
        self.cluster.submit(pod, life or PodLifecycle())
        self.writer.apply([PodSeen(pod)])
        return pod

    def show(self, pod: Pod, **changes: Any) -> Pod:
        """Show a pod in another state."""
        shown = msgspec.structs.replace(pod, **changes)
        self.writer.apply([PodSeen(shown)])
        return shown

    def pod(self, name: str = "p") -> dict[str, Any]:
        """Return a pod of the store."""
        return self.facade.get(f"{PODS}/{name}")


@pytest.fixture
def written() -> Written:
    return Written()


def test_a_pod_of_the_scenario_becomes_an_object_in_its_namespace(written):
    written.submit(a_pod("p", namespace="team", labels={"app": "web"}))

    found = written.facade.get("/api/v1/namespaces/team/pods/p")
    assert ({"app": "web"}, "Pending") == (found["metadata"]["labels"], found["status"]["phase"])
    assert "team" in written.facade.names("/api/v1/namespaces")


def test_a_pod_runs_and_ends(written):
    pod = written.submit(a_pod("p"))
    bound = written.show(pod, node_name="n1")
    assert ("n1", "Pending") == (written.pod()["spec"]["nodeName"], written.pod()["status"]["phase"])
    written.facade.now = 5.0
    running = written.show(bound, started=True, ready=True)
    assert ("Running", "2026-01-01T00:00:05Z") == (
        written.pod()["status"]["phase"],
        written.pod()["status"]["startTime"],
    )
    written.facade.now = 9.0
    written.show(running, finished=True, ready=False)

    status = written.pod()["status"]
    conditions = {one["type"]: (one["status"], one.get("reason")) for one in status["conditions"]}
    assert ("Succeeded", ("False", "PodCompleted")) == (status["phase"], conditions["Ready"])
    ended = status["containerStatuses"][0]["state"]["terminated"]
    assert (0, "2026-01-01T00:00:05Z", "2026-01-01T00:00:09Z") == (
        ended["exitCode"],
        ended["startedAt"],
        ended["finishedAt"],
    )


def test_a_pod_that_its_node_refuses_fails_with_the_reason(written):
    pod = written.submit(a_pod("p"))
    written.cluster.pods[pod.uid].reason = "OutOfcpu"
    written.show(pod, node_name="n1", finished=True, failed=True)

    status = written.pod()["status"]
    assert ("Failed", "OutOfcpu") == (status["phase"], status["reason"])
    assert "containerStatuses" not in status, "it never ran"


def test_what_clients_wrote_stays(written):
    pod = written.submit(a_pod("p"))
    written.facade.patch(f"{PODS}/p", {"metadata": {"annotations": {"mine": "1"}}}, STRATEGIC)
    disrupted = {"status": {"conditions": [{"type": "DisruptionTarget", "status": "True"}]}}
    written.facade.patch(f"{PODS}/p/status", disrupted, STRATEGIC)
    written.show(pod, node_name="n1", started=True, ready=True)

    assert {"mine": "1"} == written.pod()["metadata"]["annotations"]
    assert "DisruptionTarget" in [one["type"] for one in written.pod()["status"]["conditions"]]


def test_a_client_can_change_the_labels_of_a_pod_of_the_scenario(written):
    """Such a pod has fewer fields than one that a client created."""
    written.submit(a_pod("p"))
    before = written.pod()

    assert 200 == written.facade.put(f"{PODS}/p", before)[0]
    assert before == written.pod(), "nothing was changed"
    assert 200 == written.facade.patch(f"{PODS}/p", {"metadata": {"labels": {"a": "b"}}})[0]


def test_the_same_state_twice_is_one_event(written):
    pod = written.submit(a_pod("p"))
    events = written.facade.watch(f"{PODS}?resourceVersion={written.facade.revision}")
    bound = written.show(pod, node_name="n1")
    written.show(bound)

    assert [("MODIFIED", "p")] == events.seen


def test_a_pod_that_is_stopped_by_the_cluster_shows_it(written):
    pod = written.submit(a_pod("p"))
    written.cluster.pods[pod.uid].grace = 30.0
    written.facade.now = 10.0
    written.show(pod, node_name="n1", deleting=True)

    assert ("2026-01-01T00:00:40Z", 30) == (
        written.pod()["metadata"]["deletionTimestamp"],
        written.pod()["metadata"]["deletionGracePeriodSeconds"],
    )
    written.writer.apply([PodGone(pod.uid)])
    assert 404 == written.facade.send("GET", f"{PODS}/p")[0]


def test_events_about_pods_that_are_gone_are_ignored(written):
    pod = a_pod("p")
    written.writer.apply([PodGone(pod.uid), PodSeen(pod)])

    assert [] == written.facade.names(PODS), "the cluster does not have it"


def test_the_oldest_ended_pods_are_removed(written):
    written = Written(most_ended=2)
    for name in "abc":
        pod = written.submit(a_pod(name))
        written.show(pod, node_name="n1", finished=True)

    assert ["b", "c"] == written.facade.names(PODS)


def test_an_ended_pod_makes_room_for_one_of_the_same_name(written):
    first = written.submit(msgspec.structs.replace(a_pod("p"), uid=PodUid("1")))
    written.show(first, node_name="n1", finished=True)
    written.submit(msgspec.structs.replace(a_pod("p"), uid=PodUid("2")))

    assert ("2", "Pending") == (written.pod()["metadata"]["uid"], written.pod()["status"]["phase"])


# ------------------------------------------------------------------------------------------------------------- nodes


def test_a_node_joins_changes_and_leaves(written):
    events = written.facade.watch(NODES)
    node = a_node("n1")
    written.writer.apply([NodeSeen(node)])
    written.writer.apply([NodeSeen(node)])
    written.writer.apply([NodeSeen(msgspec.structs.replace(node, unschedulable=True))])
    assert written.facade.get(f"{NODES}/n1")["spec"]["unschedulable"] is True
    written.writer.apply([NodeGone("n1")])

    assert [("ADDED", "n1"), ("MODIFIED", "n1"), ("DELETED", "n1")] == events.seen


def test_the_cluster_writes_only_what_it_changed_on_a_node(written):
    node = a_node("n1")
    written.writer.apply([NodeSeen(node)])
    written.facade.patch(f"{NODES}/n1", {"metadata": {"labels": {"mine": "1"}}})
    written.facade.patch(f"{NODES}/n1/status", {"status": {"capacity": {"example.com/gpu": "8"}}})
    written.writer.apply([NodeSeen(msgspec.structs.replace(node, unschedulable=True))])

    found = written.facade.get(f"{NODES}/n1")
    assert ("1", "8", True) == (
        found["metadata"]["labels"]["mine"],
        found["status"]["capacity"]["example.com/gpu"],
        found["spec"]["unschedulable"],
    )


def test_nodes_have_addresses_of_their_own_and_pods_that_of_their_host(written):
    written.writer.apply([NodeSeen(a_node("n1")), NodeSeen(a_node("n2"))])
    pod = written.submit(a_pod("p"))
    written.show(pod, node_name="n2", started=True, ready=True)

    found = [one["status"]["addresses"] for one in written.facade.get(NODES)["items"]]
    assert [
        [{"type": "InternalIP", "address": f"172.16.0.{number}"}, {"type": "Hostname", "address": f"n{number}"}]
        for number in (1, 2)
    ] == found
    assert ("172.16.0.2", [{"ip": "172.16.0.2"}]) == tuple(
        written.pod()["status"][name] for name in ("hostIP", "hostIPs")
    )


def test_a_node_that_a_client_creates_keeps_its_addresses(written):
    mine = [{"type": "InternalIP", "address": "192.0.2.7"}]
    for name, addresses in (("n1", mine), ("n2", [])):
        body = a_node_object(name)
        body["status"]["addresses"] = addresses
        written.facade.made(NODES, body)
        written.writer.apply([NodeSeen(a_node(name))])

    found = [one["status"]["addresses"] for one in written.facade.get(NODES)["items"]]
    assert mine == found[0]
    assert {"type": "InternalIP", "address": "172.16.0.2"} in found[1]


def test_a_node_has_a_lease_until_it_leaves(written):
    written.facade.now = 3.0
    written.facade.made(NODES, a_node_object("n2"))
    written.writer.apply([NodeSeen(a_node("n1")), NodeSeen(a_node("n2"))])
    assert ["n1", "n2"] == written.facade.names(NODE_LEASES)
    lease = written.facade.get(f"{NODE_LEASES}/n2")
    assert {
        "holderIdentity": "n2",
        "leaseDurationSeconds": 40,
        "renewTime": "2026-01-01T00:00:03.000000Z",
    } == lease["spec"]
    node = written.facade.get(f"{NODES}/n2")
    assert [node["metadata"]["uid"]] == [one["uid"] for one in lease["metadata"]["ownerReferences"]]

    written.writer.apply([NodeGone("n1")])
    written.facade.delete(f"{NODES}/n2")
    assert [] == written.facade.names(NODE_LEASES)


@pytest.mark.parametrize(
    ("number", "address"),
    [
        pytest.param(1, "172.16.0.1", id="first"),
        pytest.param(300, "172.16.1.44", id="next byte"),
        pytest.param(1_048_575, "172.31.255.255", id="last"),
        pytest.param(1_048_577, "172.16.0.1", id="again from the first"),
    ],
)
def test_addresses_of_nodes_are_numbered(number, address):
    assert address == node_address(number)


def test_other_events_change_nothing(written):
    before = written.facade.revision
    written.writer.apply([TimePassed(5.0)])

    assert before == written.facade.revision


def test_every_server_has_the_priority_classes_of_system_pods(written):
    assert ["system-cluster-critical", "system-node-critical"] == written.facade.names(
        "/apis/scheduling.k8s.io/v1/priorityclasses"
    )


def test_the_spec_of_a_node_is_what_the_cluster_has():
    written = Written()
    spec = VirtualNodeSpec(name="n1", allocatable=a_node("n1").allocatable, bandwidth=1e6)
    written.cluster.join(spec)
    written.writer.apply([NodeSeen(a_node("n1"))])

    assert "Ready" in [one["type"] for one in written.facade.get(f"{NODES}/n1")["status"]["conditions"]]


def test_a_pod_whose_gates_are_removed_in_the_cluster_has_none_in_the_store(written):
    pod = written.submit(msgspec.structs.replace(a_pod("p"), gates=("lamina.dev/gang",)))
    before = written.pod()["spec"]["schedulingGates"]

    written.show(pod, gates=())

    assert [{"name": "lamina.dev/gang"}] == before
    assert "schedulingGates" not in written.pod()["spec"]
