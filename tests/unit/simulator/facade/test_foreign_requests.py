"""
Request shapes of schedulers that cannot be run here, written from their source code.

IBM's k8s-custom-scheduler is kube-scheduler 1.8 with two files replaced. Poseidon is a client of 2019 (client-go 8).
"""

from typing import Any

import pytest

from lamina.simulator.facade.gang_resources import gang_custom_resources
from tests.unit.simulator.facade.api_client import (
    JSON,
    PODS,
    NotedFacade,
    a_deployment,
    a_node_object,
    a_pod_object,
    labelled,
)

NIMBIX = {"task-type": "Nimbix"}


@pytest.fixture
def facade() -> NotedFacade:
    facade = NotedFacade()
    facade.made("/api/v1/nodes", a_node_object("n1"))
    facade.made("/api/v1/nodes", a_node_object("n2"))
    return facade


# --------------------------------------------------------------------------------------------------------------- IBM


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        pytest.param("/api/v1/pods?limit=500&resourceVersion=0", "PodList", id="pods"),
        pytest.param("/api/v1/nodes?limit=500&resourceVersion=0", "NodeList", id="nodes"),
        pytest.param("/api/v1/persistentvolumes?limit=500&resourceVersion=0", "PersistentVolumeList", id="volumes"),
        pytest.param("/api/v1/persistentvolumeclaims?resourceVersion=0", "PersistentVolumeClaimList", id="claims"),
        pytest.param("/api/v1/services?resourceVersion=0", "ServiceList", id="services"),
        pytest.param("/api/v1/replicationcontrollers?resourceVersion=0", "ReplicationControllerList", id="controllers"),
        pytest.param("/apis/extensions/v1beta1/replicasets?resourceVersion=0", "ReplicaSetList", id="replica sets"),
        pytest.param("/apis/apps/v1beta1/statefulsets?resourceVersion=0", "StatefulSetList", id="stateful sets"),
    ],
)
def test_kube_scheduler_1_8_can_sync_all_its_caches(facade, path, kind):
    """One missing list keeps it from its first decision for ever."""
    found = facade.get(path, accept="application/vnd.kubernetes.protobuf, */*")
    assert kind == found["kind"]

    following = f"{path.partition('?')[0]}?resourceVersion={found['metadata']['resourceVersion']}&timeoutSeconds=431"
    assert [] == facade.watch(following).seen


def test_a_replica_set_is_seen_under_its_old_group(facade):
    spec = a_deployment("web")["spec"]
    made = {"metadata": {"name": "web"}, "spec": spec}
    events = facade.watch("/apis/extensions/v1beta1/replicasets")
    facade.made("/apis/apps/v1/namespaces/default/replicasets", made)

    (event,) = events.all
    assert ("ADDED", "extensions/v1beta1", "ReplicaSet") == (
        event["type"],
        event["object"]["apiVersion"],
        event["object"]["kind"],
    )


def test_ibm_writes_why_a_pod_waits_with_put(facade):
    """The whole pod, with one condition and the annotation for the nominated node of that time."""
    pod = facade.made(PODS, a_pod_object("p"))
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes"}
    body = {**pod, "status": {**pod["status"], "conditions": [condition]}}
    body["metadata"] = {**pod["metadata"], "annotations": {"scheduler.kubernetes.io/nominated-node-name": "n1"}}
    status, found = facade.put(f"{PODS}/p/status", body)

    assert (200, "n1") == (status, found["metadata"]["annotations"]["scheduler.kubernetes.io/nominated-node-name"])
    assert ("refused", "p", "0/2 nodes") in facade.inputs.take()
    assert 409 == facade.put(f"{PODS}/p/status", body)[0], "the version is an old one now"


def test_ibm_preempts_with_get_and_delete(facade):
    facade.made(PODS, a_pod_object("victim"))
    facade.bind("victim", "n1")
    facade.inputs.take()
    uid = facade.get(f"{PODS}/victim")["metadata"]["uid"]
    status, found = facade.delete(
        f"{PODS}/victim", {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}}
    )

    assert (200, True) == (status, "deletionTimestamp" in found["metadata"])
    assert [("stopping", "victim", "30")] == facade.inputs.take()


def test_ibm_replaces_a_task_by_a_pod_of_the_same_name(facade):
    """DELETE with grace 0, then POST of the changed pod without its uid and version."""
    old = facade.made(PODS, labelled(a_pod_object("task"), **NIMBIX))
    events = facade.watch(f"{PODS}?resourceVersion={facade.revision}")
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
    assert 200 == facade.delete(f"{PODS}/task", options)[0]
    metadata = {name: value for name, value in old["metadata"].items() if name not in {"uid", "resourceVersion"}}
    new = facade.made(PODS, {**old, "metadata": metadata})

    assert old["metadata"]["uid"] != new["metadata"]["uid"]
    assert [("MODIFIED", "task"), ("DELETED", "task"), ("ADDED", "task")] == events.seen
    assert 201 == facade.bind("task", "n1")[0]


def test_ibm_records_events_in_the_core_group(facade):
    body: dict[str, Any] = {
        "metadata": {"name": "p.15a1b2c3d4e5f6a7", "namespace": "default", "creationTimestamp": None},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
        "reason": "Scheduled",
        "message": "Successfully assigned p to n1",
        "source": {"component": "default-scheduler"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 1,
        "type": "Normal",
    }
    path = "/api/v1/namespaces/default/events"
    facade.made(path, body)
    count = {"count": 2, "lastTimestamp": "2026-01-01T00:00:05Z"}

    assert (
        200
        == facade.send(
            "PATCH", f"{path}/p.15a1b2c3d4e5f6a7", count, content_type="application/strategic-merge-patch+json"
        )[0]
    )
    assert 2 == facade.get(f"{path}/p.15a1b2c3d4e5f6a7")["count"]


# ---------------------------------------------------------------------------------------------------------- Poseidon


def test_poseidon_watches_its_own_pods_and_all_others(facade):
    """Each pod reaches exactly one of the two watches."""
    own = facade.watch("/api/v1/pods?fieldSelector=spec.schedulerName%3Dposeidon&resourceVersion=0")
    others = facade.watch("/api/v1/pods?fieldSelector=spec.schedulerName%21%3Dposeidon&resourceVersion=0")
    facade.made(PODS, a_pod_object("mine", schedulerName="poseidon"))
    facade.made(PODS, a_pod_object("theirs"))
    facade.bind("mine", "n1")
    facade.delete(f"{PODS}/theirs")

    assert [("ADDED", "mine"), ("MODIFIED", "mine")] == own.seen
    assert [("ADDED", "theirs"), ("MODIFIED", "theirs"), ("DELETED", "theirs")] == others.seen


def test_an_old_poseidon_selects_by_label(facade):
    """--kubeVersion below 1.6: ``scheduler in (poseidon)``."""
    facade.made(PODS, labelled(a_pod_object("mine"), scheduler="poseidon"))
    facade.made(PODS, a_pod_object("theirs"))

    assert ["mine"] == facade.names("/api/v1/pods?labelSelector=scheduler+in+(poseidon)")


def test_poseidon_writes_conditions_with_put(facade):
    pod = facade.made(PODS, a_pod_object("p", schedulerName="poseidon"))
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
    status, found = facade.put(f"{PODS}/p/status", {**pod, "status": {**pod["status"], "conditions": [condition]}})

    assert (200, "no room") == (status, found["status"]["conditions"][0]["message"])


def test_poseidon_migrates_a_pod_by_deletion_and_a_new_binding(facade):
    """The controller of the pod creates another one, which Poseidon binds elsewhere."""
    facade.made(PODS, a_pod_object("web-1", schedulerName="poseidon"))
    facade.bind("web-1", "n1")
    facade.patch(f"{PODS}/web-1/status", {"status": {"phase": "Running"}})
    facade.inputs.take()
    facade.delete(f"{PODS}/web-1", {})
    facade.made(PODS, a_pod_object("web-2", schedulerName="poseidon"))
    facade.bind("web-2", "n2")

    assert [("stopping", "web-1", "30"), ("created", "web-2"), ("bound", "web-2", "n2")] == facade.inputs.take()


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/apis/batch/v1/namespaces/default/jobs/x", id="job"),
        pytest.param("/apis/apps/v1/namespaces/default/replicasets/x", id="replica set"),
        pytest.param("/apis/apps/v1/namespaces/default/deployments/x", id="deployment"),
        pytest.param("/api/v1/namespaces/default/persistentvolumeclaims/x", id="claim"),
        pytest.param("/api/v1/persistentvolumes/x", id="volume"),
    ],
)
def test_poseidon_may_ask_for_owners_that_do_not_exist(facade, path):
    assert (404, "NotFound") == (facade.send("GET", path)[0], facade.send("GET", path)[1]["reason"])


# ------------------------------------------------------------------------------------------------ scripts and others


def test_a_shell_script_binds_without_a_namespace_and_with_a_trailing_slash(facade):
    """bashScheduler: kubectl's raw selector with two equal signs, curl for the binding."""
    facade.made(PODS, a_pod_object("p"))
    assert ["p"] == facade.names("/api/v1/pods?fieldSelector=status.phase==Pending&limit=500")
    target = {"apiVersion": "v1", "kind": "Node", "name": "n1"}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": target}

    assert 201 == facade.send("POST", f"{PODS}/p/binding/", body, content_type=f"{JSON};charset=utf-8")[0]


def test_a_python_script_creates_a_binding_in_the_namespace(facade):
    """kubernetes-client/python: create_namespaced_binding."""
    facade.made(PODS, a_pod_object("p"))
    body = {"metadata": {"name": "p"}, "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"}}

    assert (201, "Status") == (
        facade.post("/api/v1/namespaces/default/bindings", body)[0],
        facade.send("POST", "/api/v1/namespaces/default/bindings", body)[1]["kind"],
    )


def test_a_queue_of_volcano_is_created_once(facade):
    """Volcano asks for the queues root and default, and creates them; a second POST says that they exist."""
    facade.state.types.add_customs(gang_custom_resources())
    path = "/apis/scheduling.volcano.sh/v1beta1/queues"
    assert 404 == facade.send("GET", f"{path}/default")[0]
    body = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "default"},
        "spec": {"weight": 1},
    }
    facade.made(path, body)

    assert (409, "AlreadyExists") == (facade.post(path, body)[0], facade.post(path, body)[1]["reason"])
