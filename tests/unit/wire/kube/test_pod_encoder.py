"""Pods as an API server shows them: what stands where, in every phase."""

import msgspec
import pytest

from lamina.model.node_features import REQUIRABLE
from lamina.model.pod import Container, HostPort, Owner, Pod, PodUid, PreferredNodes, SpreadConstraint
from lamina.model.selectors import LabelSelector, NodeSelector, NodeSelectorTerm, Requirement
from lamina.model.taints import Toleration
from lamina.testing import a_pod
from lamina.wire.kube.codec import decode_pod
from lamina.wire.kube.pod_encoder import encode_pod, encode_pod_metadata, encode_pod_spec
from lamina.wire.kube.pod_status_encoder import PodDetails, encode_pod_status, phase_of

EPOCH = 1_772_000_000.0  # 2026-02-25T06:13:20Z
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

replace = msgspec.structs.replace
BOUND = replace(a_pod("p", cpu="500m", memory="1Gi", on="n1"), created_at=1.0, bound_at=2.5)
RUNNING = replace(BOUND, started=True, ready=True, ready_at=9.0)
DONE = replace(BOUND, started=True, finished=True, ended_at=20.0)


def transition(status, kind):
    """Status and time of a condition; None when it is missing."""
    found = [one for one in status.get("conditions", []) if one["type"] == kind]
    return (found[0]["status"], found[0]["lastTransitionTime"]) if found else None


def test_a_waiting_pod_has_the_fields_of_a_new_one():
    pod = replace(a_pod("p", cpu=1, memory="1Gi", labels={"app": "x"}, priority=7), created_at=5.9)

    assert encode_pod(pod, EPOCH) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "p",
            "namespace": "default",
            "uid": "p",
            "creationTimestamp": "2026-02-25T06:13:25Z",
            "labels": {"app": "x"},
        },
        "spec": {
            "containers": [
                {
                    "name": "c0",
                    "image": "app:1",
                    "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
                    "imagePullPolicy": "IfNotPresent",
                }
            ],
            "schedulerName": "default-scheduler",
            "priority": 7,
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
            "securityContext": {},
        },
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }


@pytest.mark.parametrize(
    ("pod", "phase", "scheduled", "ready"),
    [
        pytest.param(a_pod("p"), "Pending", None, None, id="waiting"),
        pytest.param(BOUND, "Pending", ("True", "2026-02-25T06:13:22Z"), None, id="bound"),
        pytest.param(
            RUNNING, "Running", ("True", "2026-02-25T06:13:22Z"), ("True", "2026-02-25T06:13:29Z"), id="running"
        ),
        pytest.param(
            replace(RUNNING, ready=False, ready_at=0.0),
            "Running",
            ("True", "2026-02-25T06:13:22Z"),
            ("False", "2026-02-25T06:13:22Z"),
            id="running, not ready",
        ),
        pytest.param(
            DONE, "Succeeded", ("True", "2026-02-25T06:13:22Z"), ("False", "2026-02-25T06:13:40Z"), id="succeeded"
        ),
        pytest.param(
            replace(DONE, failed=True),
            "Failed",
            ("True", "2026-02-25T06:13:22Z"),
            ("False", "2026-02-25T06:13:40Z"),
            id="failed",
        ),
        pytest.param(
            replace(BOUND, finished=True, failed=True),
            "Failed",
            ("True", "2026-02-25T06:13:22Z"),
            ("False", "2026-02-25T06:13:22Z"),
            id="rejected by its node",
        ),
    ],
)
def test_phase_and_conditions_tell_what_happened(pod, phase, scheduled, ready):
    status = encode_pod_status(pod, EPOCH)

    assert phase == status["phase"] == phase_of(pod)
    assert scheduled == transition(status, "PodScheduled")
    assert ready == transition(status, "Ready") == transition(status, "ContainersReady")


@pytest.mark.parametrize(
    ("pod", "state"),
    [
        pytest.param(RUNNING, {"running": {"startedAt": "2026-02-25T06:13:29Z"}}, id="running"),
        pytest.param(
            DONE,
            {
                "terminated": {
                    "exitCode": 0,
                    "reason": "Completed",
                    "startedAt": "2026-02-25T06:13:22Z",
                    "finishedAt": "2026-02-25T06:13:40Z",
                }
            },
            id="succeeded",
        ),
        pytest.param(
            replace(DONE, failed=True),
            {
                "terminated": {
                    "exitCode": 1,
                    "reason": "Error",
                    "startedAt": "2026-02-25T06:13:22Z",
                    "finishedAt": "2026-02-25T06:13:40Z",
                }
            },
            id="failed",
        ),
    ],
)
def test_every_container_has_a_status_once_the_pod_has_started(pod, state):
    (status,) = encode_pod_status(pod, EPOCH, PodDetails(restarts=3))["containerStatuses"]

    assert ("c0", 3, pod.ready, state) == tuple(status[key] for key in ("name", "restartCount", "ready", "state"))


def test_a_deleted_pod_says_until_when_it_may_run():
    pod = replace(RUNNING, deleting=True, deleting_since=10.0)

    written = encode_pod_metadata(pod, EPOCH, PodDetails(grace=60, deletion_grace=0))
    usual = encode_pod_metadata(pod, EPOCH)

    assert ("2026-02-25T06:13:30Z", 0) == (written["deletionTimestamp"], written["deletionGracePeriodSeconds"])
    assert ("2026-02-25T06:14:00Z", 30) == (usual["deletionTimestamp"], usual["deletionGracePeriodSeconds"])


@pytest.mark.parametrize(
    ("kind", "version", "policy"),
    [
        pytest.param("ReplicaSet", "apps/v1", "Always", id="replica set"),
        pytest.param("Job", "batch/v1", "Never", id="job"),
        pytest.param("Node", "v1", "Always", id="mirror pod"),
    ],
)
def test_the_owner_is_the_controller(kind, version, policy):
    pod = a_pod("p", owner=Owner(kind, "web", "u1"))
    (owner,) = encode_pod_metadata(pod)["ownerReferences"]

    assert {"kind": kind, "name": "web", "uid": "u1", "apiVersion": version, "controller": True} == {
        key: value for key, value in owner.items() if key != "blockOwnerDeletion"
    }
    assert policy == encode_pod_spec(pod)["restartPolicy"]
    assert encode_pod_spec(pod, PodDetails(restart_policy="OnFailure"))["restartPolicy"] == "OnFailure"


def test_the_api_version_of_a_controller_is_kept():
    pod = a_pod("p", owner=Owner("StatefulSet", "web", "u1", "apps.example.com/v1"))
    (owner,) = encode_pod_metadata(pod)["ownerReferences"]

    assert "apps.example.com/v1" == owner["apiVersion"]


@pytest.mark.parametrize("features", [(), REQUIRABLE[:1], REQUIRABLE[1:], REQUIRABLE])
def test_required_features_survive_encoding(features):
    pod = replace(a_pod("p"), required_features=features)

    assert features == decode_pod(msgspec.json.encode(encode_pod(pod))).required_features


def test_placement_constraints_are_those_of_the_api():
    pod = replace(
        a_pod("p", tolerations=[Toleration("gpu", "Exists", effect="NoSchedule")]),
        node_selector=(("disk", "ssd"),),
        required_nodes=NodeSelector((NodeSelectorTerm((Requirement("zone", "In", ("a",)),)),)),
        preferred_nodes=(PreferredNodes(5, NodeSelectorTerm((), (Requirement("metadata.name", "In", ("n1",)),))),),
        spread=(SpreadConstraint(1, "zone", selector=LabelSelector()),),
        gates=("wait",),
        pull_secrets=("key",),
        image_volumes=("model:latest",),
    )
    spec = encode_pod_spec(pod)

    assert spec["nodeSelector"] == {"disk": "ssd"}
    assert spec["affinity"]["nodeAffinity"] == {
        REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]},
        PREFERRED: [
            {
                "weight": 5,
                "preference": {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]},
            }
        ],
    }
    assert spec["tolerations"] == [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]
    assert spec["topologySpreadConstraints"] == [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    ]
    assert spec["schedulingGates"] == [{"name": "wait"}]
    assert spec["imagePullSecrets"] == [{"name": "key"}]
    assert spec["volumes"] == [{"name": "image-1", "image": {"reference": "model:latest", "pullPolicy": "Always"}}]


def test_containers_without_a_name_get_one_because_patches_find_them_by_name():
    pod = Pod(
        uid=PodUid("p"),
        name="p",
        containers=(Container("a"), Container("b", name="b"), Container("c")),
        init_containers=(Container("i", sidecar=True),),
    )
    spec = encode_pod_spec(pod)

    assert ["container-1", "b", "container-3"] == [one["name"] for one in spec["containers"]]
    assert [("init-1", "Always")] == [(one["name"], one["restartPolicy"]) for one in spec["initContainers"]]


def test_host_ports_stand_at_the_first_container():
    pod = replace(a_pod("p", images=["a", "b"]), host_ports=(HostPort(80), HostPort(53, "UDP", "10.0.0.1")))
    first, second = encode_pod_spec(pod)["containers"]

    assert first["ports"] == [
        {"containerPort": 80, "hostPort": 80, "protocol": "TCP"},
        {"containerPort": 53, "hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"},
    ]
    assert "ports" not in second
    assert "ports" not in encode_pod_spec(replace(pod, host_ports=()))["containers"][0]


@pytest.mark.parametrize(
    ("requests", "limits", "qos"),
    [
        pytest.param((), (), "BestEffort", id="nothing"),
        pytest.param((("example.com/gpu", 1),), (), "BestEffort", id="other resources"),
        pytest.param((("cpu", 100),), (), "Burstable", id="requests"),
        pytest.param((), (("cpu", 100), ("memory", 5)), "Guaranteed", id="limits"),
        pytest.param((("cpu", 100), ("memory", 5)), (("cpu", 100), ("memory", 5)), "Guaranteed", id="both alike"),
        pytest.param((("cpu", 99), ("memory", 5)), (("cpu", 100), ("memory", 5)), "Burstable", id="limits above"),
    ],
)
def test_the_quality_of_service_class_follows_from_cpu_and_memory(requests, limits, qos):
    pod = Pod(uid=PodUid("p"), name="p", containers=(Container("a", requests, limits=limits),))

    assert qos == encode_pod_status(pod)["qosClass"]


@pytest.mark.parametrize(
    ("requests", "scoring", "spec"),
    [
        # 500m more than the container's 1000m, in both totals.
        pytest.param(1500, 1500, {"overhead": {"cpu": "500m"}}, id="overhead"),
        pytest.param(700, 700, {"resources": {"requests": {"cpu": "700m"}}}, id="pod level"),
    ],
)
def test_totals_that_containers_do_not_explain_are_overhead_or_pod_level(requests, scoring, spec):
    memory = ("memory", 1024)
    pod = Pod(
        uid=PodUid("p"),
        name="p",
        containers=(Container("a", (("cpu", 1000), memory), "a"),),
        requests=(("cpu", requests), memory),
        scoring_requests=(("cpu", scoring), memory),
    )
    written = encode_pod(pod)

    assert spec == {key: written["spec"][key] for key in ("overhead", "resources") if key in written["spec"]}
    assert pod == decode_pod(msgspec.json.encode(written))


def test_details_of_the_node_are_in_the_status():
    details = PodDetails(reason="Evicted", message="low on disk", pod_ip="10.0.0.9", host_ip="10.1.0.1")
    status = encode_pod_status(replace(RUNNING, nominated_node="n2"), EPOCH, details)

    assert {
        "reason": "Evicted",
        "message": "low on disk",
        "podIP": "10.0.0.9",
        "podIPs": [{"ip": "10.0.0.9"}],
        "hostIP": "10.1.0.1",
        "hostIPs": [{"ip": "10.1.0.1"}],
        "nominatedNodeName": "n2",
    }.items() <= status.items()


def test_a_change_of_one_result_does_not_reach_another():
    """Outer objects are new in every call; inner ones are shared, and callers do not change them."""
    first, second = encode_pod(RUNNING), encode_pod(RUNNING)
    for part in ("metadata", "spec", "status"):
        first[part]["x"] = 1

    assert second == encode_pod(RUNNING)
    assert first["spec"]["containers"] is second["spec"]["containers"]


def test_a_time_that_no_date_can_express_is_named():
    with pytest.raises(ValueError, match="1000000000000000 seconds since 1970 cannot be written as a date"):
        encode_pod(replace(BOUND, created_at=1e15))
