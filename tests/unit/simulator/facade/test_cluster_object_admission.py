"""Admission of objects that are neither pods nor workloads; expected values are those of a real server of 1.36."""

import pytest

from tests.unit.simulator.facade.admission_objects import admit, cluster_object, context, refusal


def test_a_namespace_has_a_label_with_its_name():
    found = admit(cluster_object("Namespace", name="team"))

    assert found["metadata"]["labels"] == {"kubernetes.io/metadata.name": "team"}
    assert (found["spec"], found["status"]) == ({"finalizers": ["kubernetes"]}, {"phase": "Active"})


def test_a_node_can_allocate_its_capacity():
    found = admit(
        cluster_object("Node", status={"capacity": {"cpu": "4000m", "pods": 110}, "allocatable": {"pods": 9}})
    )

    assert found["status"]["capacity"] == {"cpu": "4", "pods": "110"}
    assert found["status"]["allocatable"] == {"cpu": "4", "pods": "9"}
    assert "taints" not in found["spec"]


def test_a_new_node_is_tainted_if_the_context_says_so():
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    other = {"key": "k", "effect": "NoExecute"}

    found = admit(cluster_object("Node", spec={"taints": [other]}), context(new_nodes_not_ready=True))

    assert found["spec"]["taints"] == [other, taint]
    assert admit(found, context(new_nodes_not_ready=True))["spec"]["taints"] == [other, taint]


@pytest.mark.parametrize(
    ("found", "message"),
    [
        pytest.param(
            cluster_object("Namespace", name="a.b"),
            'Namespace "a.b" is invalid: metadata.name: Invalid value: "a.b": must not contain dots',
            id="namespace",
        ),
        pytest.param(
            cluster_object("Node", spec={"taints": [{"key": "a", "effect": "x"}]}),
            'Node "x" is invalid: metadata.taints[0].effect: Unsupported value: "x": supported values: "NoSchedule", '
            '"PreferNoSchedule", "NoExecute"',
            id="taint",
        ),
        pytest.param(
            cluster_object("PriorityClass", "scheduling.k8s.io/v1", value=2_000_000_000),
            'PriorityClass.scheduling.k8s.io "x" is invalid: value: Forbidden: maximum allowed value of a user defined '
            "priority is 1000000000",
            id="priority",
        ),
        pytest.param(
            cluster_object("PriorityClass", "scheduling.k8s.io/v1", name="system-x", value=1),
            'PriorityClass.scheduling.k8s.io "system-x" is invalid: metadata.name: Forbidden: priority class names with '
            "'system-' prefix are reserved for system use only. error: system-x is not a known system priority class",
            id="system class",
        ),
        pytest.param(
            cluster_object("Service", spec={}), 'Service "x" is invalid: spec.ports: Required value', id="service"
        ),
    ],
)
def test_other_objects_are_refused_in_the_words_of_the_server(found, message):
    assert refusal(found).message == message


@pytest.mark.parametrize(
    ("found", "stored"),
    [
        pytest.param(
            cluster_object("PriorityClass", "scheduling.k8s.io/v1", value=5),
            {"value": 5, "preemptionPolicy": "PreemptLowerPriority"},
            id="priority class",
        ),
        pytest.param(
            cluster_object("Secret", stringData={"a": "b"}), {"data": {"a": "Yg=="}, "type": "Opaque"}, id="secret"
        ),
        pytest.param(
            cluster_object("StorageClass", "storage.k8s.io/v1", provisioner="p"),
            {"provisioner": "p", "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
            id="storage class",
        ),
        pytest.param(
            cluster_object("PersistentVolumeClaim", spec={"resources": {"requests": {"storage": "1024Mi"}}}),
            {
                "spec": {"resources": {"requests": {"storage": "1Gi"}}, "volumeMode": "Filesystem"},
                "status": {"phase": "Pending"},
            },
            id="claim",
        ),
        pytest.param(
            cluster_object("Service", spec={"ports": [{"port": 80}]}),
            {
                "spec": {
                    "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
                    "type": "ClusterIP",
                    "sessionAffinity": "None",
                    "ipFamilies": ["IPv4"],
                    "ipFamilyPolicy": "SingleStack",
                    "internalTrafficPolicy": "Cluster",
                },
                "status": {"loadBalancer": {}},
            },
            id="service",
        ),
        pytest.param(
            cluster_object(
                "ResourceClaim",
                "resource.k8s.io/v1",
                spec={"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "g"}}]}},
            ),
            {
                "spec": {
                    "devices": {
                        "requests": [
                            {
                                "name": "r",
                                "exactly": {"deviceClassName": "g", "allocationMode": "ExactCount", "count": 1},
                            }
                        ]
                    }
                }
            },
            id="resource claim",
        ),
        pytest.param(cluster_object("ConfigMap", data={"a": "b"}), {"data": {"a": "b"}}, id="anything else"),
    ],
)
def test_other_objects_get_the_defaults_of_the_server(found, stored):
    admitted = admit(found)

    assert {name: admitted[name] for name in admitted if name not in ("apiVersion", "kind", "metadata")} == stored


def test_roles_may_have_names_that_no_other_object_may_have():
    assert admit(cluster_object("ClusterRole", "rbac.authorization.k8s.io/v1", name="system:node"))
    assert "may not contain '/'" in refusal(cluster_object("Role", "rbac.authorization.k8s.io/v1", name="a/b")).message


def test_a_definition_is_reported_as_established():
    spec = {
        "group": "example.com",
        "version": "v1alpha1",
        "scope": "Cluster",
        "names": {"plural": "widgets", "kind": "Widget"},
        "validation": {"openAPIV3Schema": {"type": "object"}},
        "additionalPrinterColumns": [{"name": "A", "JSONPath": ".a"}],
    }

    found = admit(
        cluster_object("CustomResourceDefinition", "apiextensions.k8s.io/v1", name="widgets.example.com", spec=spec)
    )

    assert found["spec"]["versions"] == [
        {
            "name": "v1alpha1",
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": {"type": "object"}},
            "additionalPrinterColumns": [{"name": "A", "jsonPath": ".a"}],
        }
    ]
    assert "version" not in found["spec"]
    assert {each["type"]: each["status"] for each in found["status"]["conditions"]} == {
        "NamesAccepted": "True",
        "Established": "True",
    }
    assert found["status"]["storedVersions"] == ["v1alpha1"]
    assert found["metadata"]["generation"] == 1
