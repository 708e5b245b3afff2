"""Laws for objects with arbitrary content: admission admits or refuses them, and every table has a row for them."""

import copy
from typing import Any

import pytest

from lamina.simulator.facade.admission import admit_create, admit_update
from lamina.simulator.facade.api_errors import StatusError
from lamina.simulator.facade.tables import render_table
from tests.unit.simulator.facade.admission_objects import TYPES, cluster_object, context, pod, workload

VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    2**40,
    1.5,
    "",
    "1Gi",
    "a b",
    [],
    [None],
    ["x"],
    [{}],
    {},
    {"name": 1},
    {"a b": None},
]
"""What a client may send in any field."""
RICH_POD = pod(
    {
        "initContainers": [{"name": "i", "image": "x", "restartPolicy": "Always"}],
        "volumes": [{"name": "v", "configMap": {"name": "m"}}, {"name": "w", "projected": {"sources": [{}]}}],
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "nodeSelector": {"a": "b"},
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}],
        "affinity": {
            "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}}]},
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "z"}]},
        },
        "schedulingGates": [{"name": "g"}],
        "resources": {"limits": {"cpu": "1"}},
        "overhead": {"cpu": "1"},
        "priorityClassName": "high",
        "activeDeadlineSeconds": 5,
    },
    ports=[{"containerPort": 1, "hostPort": 2}],
    env=[{"name": "e", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}],
    resources={"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1"}},
    livenessProbe={"httpGet": {"port": 1}},
    lifecycle={"preStop": {"httpGet": {"port": 1}}},
)
JOB_SPEC = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}}
CLAIM = {"metadata": {"name": "c"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
OBJECTS = [
    RICH_POD,
    workload("Deployment", strategy={"rollingUpdate": {"maxSurge": 1}}),
    workload("ReplicaSet"),
    workload("StatefulSet", volumeClaimTemplates=[CLAIM], persistentVolumeClaimRetentionPolicy={}),
    workload("DaemonSet", updateStrategy={"type": "RollingUpdate"}),
    cluster_object("Job", "batch/v1", spec=JOB_SPEC),
    cluster_object("CronJob", "batch/v1", spec={"schedule": "* * * * *", "jobTemplate": {"spec": JOB_SPEC}}),
    cluster_object("ReplicationController", spec={"template": workload("ReplicaSet")["spec"]["template"]}),
    cluster_object(
        "Node",
        spec={"taints": [{"key": "a", "effect": "NoSchedule"}]},
        status={"capacity": {"cpu": "1"}, "conditions": [{}]},
    ),
    cluster_object("Namespace", spec={"finalizers": []}, status={"phase": "Active"}),
    cluster_object("Service", spec={"ports": [{"port": 1}], "externalIPs": ["1.2.3.4"], "clusterIP": "None"}),
    cluster_object("Secret", stringData={"a": "b"}, data={"c": ""}),
    cluster_object("ConfigMap", data={"a": "b"}, immutable=True),
    cluster_object("PersistentVolume", spec={"capacity": {"storage": "1Gi"}}),
    cluster_object("PersistentVolumeClaim", spec=CLAIM["spec"]),
    cluster_object("PriorityClass", "scheduling.k8s.io/v1", value=3, preemptionPolicy="Never"),
    cluster_object("StorageClass", "storage.k8s.io/v1", provisioner="p"),
    cluster_object("PodDisruptionBudget", "policy/v1", spec={"minAvailable": 1}, status={"disruptionsAllowed": 1}),
    cluster_object("Lease", "coordination.k8s.io/v1", spec={"holderIdentity": "a"}),
    cluster_object(
        "ResourceClaim", "resource.k8s.io/v1", spec={"devices": {"requests": [{"name": "r", "exactly": {}}]}}
    ),
    cluster_object("Event", involvedObject={"kind": "Pod"}, series={"count": 2}, source={"component": "a"}),
    cluster_object(
        "CustomResourceDefinition",
        "apiextensions.k8s.io/v1",
        name="ws.example.com",
        spec={
            "group": "example.com",
            "scope": "Cluster",
            "names": {"plural": "ws", "kind": "W", "shortNames": ["w"]},
            "versions": [{"name": "v1", "storage": True, "additionalPrinterColumns": [{"name": "A"}]}],
        },
    ),
]
by_kind = pytest.mark.parametrize("found", [pytest.param(each, id=each["kind"]) for each in OBJECTS])


def fields(found, path=()):
    """Yield the path of every field below the metadata."""
    for key, value in found.items() if isinstance(found, dict) else enumerate(found):
        if path or key not in ("apiVersion", "kind", "metadata"):
            yield (*path, key)
            if isinstance(value, (dict, list)):
                yield from fields(value, (*path, key))


def replaced(found, path, value):
    found = copy.deepcopy(found)
    inner = found
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return found


def changed(found):
    """Yield the object with each of the values in each of its fields."""
    for path in fields(found):
        for value in VALUES:
            yield replaced(found, path, value)


def outcome(call):
    """Return the HTTP status that a client sees."""
    try:
        call()
    except StatusError as error:
        return error.code
    return 200


@by_kind
def test_admission_admits_or_refuses_every_object_and_never_fails(found):
    type_ = TYPES.by_kind(found["apiVersion"], found["kind"])

    for sent in changed(found):
        before = copy.deepcopy(sent)
        assert outcome(lambda sent=sent: admit_create(type_, sent, context())) in (200, 400, 403, 422)
        assert sent == before


@by_kind
def test_an_update_is_admitted_or_refused_and_never_fails(found):
    type_ = TYPES.by_kind(found["apiVersion"], found["kind"])
    stored = admit_create(type_, found, context())

    for sent in changed(stored):
        assert outcome(lambda sent=sent: admit_update(type_, stored, sent)) in (200, 400, 422)


@by_kind
def test_every_object_has_a_row_in_its_table(found):
    type_ = TYPES.by_kind(found["apiVersion"], found["kind"])

    table = render_table(type_, changed(found), {}, 0.0, "None")

    assert {len(row["cells"]) for row in table["rows"]} == {len(table["columnDefinitions"])}
