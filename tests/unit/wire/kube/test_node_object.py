"""Nodes from Kubernetes JSON: each field the scheduler looks at, and what is wrong with those that cannot be read."""

import json

import pytest

from lamina.model.image import Platform
from lamina.model.node import Node, NodeImage
from lamina.model.taints import Taint
from lamina.wire.errors import WireError
from lamina.wire.kube.codec import decode_node

WHOLE = {
    "kind": "Node",
    "apiVersion": "v1",
    "metadata": {
        "name": "n1",
        "uid": "7c1d",
        "labels": {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "zone": "a"},
        "annotations": {"node.alpha.kubernetes.io/ttl": "0"},
        "creationTimestamp": "2026-03-01T12:30:05Z",
    },
    "spec": {
        "podCIDR": "10.0.0.0/24",
        "unschedulable": True,
        "taints": [
            {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": "2026-03-01T12:30:05Z"},
            {"key": "team", "value": "shop", "effect": "NoExecute"},
        ],
    },
    "status": {
        "capacity": {"cpu": "4", "memory": "16Gi"},
        "allocatable": {"cpu": "3920m", "memory": "15Gi", "ephemeral-storage": "47093746742", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
        "addresses": [{"type": "InternalIP", "address": "10.1.2.3"}, {"type": "Hostname", "address": "host-1"}, {}],
        "images": [
            {"names": ["docker.io/library/nginx@sha256:ab", "docker.io/library/nginx:1.27"], "sizeBytes": 72324501},
            {"names": None, "sizeBytes": 5},
            {"names": ["pause:3.10"]},
        ],
        "declaredFeatures": ["ExtendWebSocketsToKubelet", "RestartAllContainersOnContainerExits"],
        "nodeInfo": {"operatingSystem": "linux", "architecture": "arm64", "kubeletVersion": "v1.36.0"},
    },
}

EXPECTED = Node(
    name="n1",
    uid="7c1d",
    labels={"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "zone": "a"},
    annotations={"node.alpha.kubernetes.io/ttl": "0"},
    addresses=("10.1.2.3", "host-1"),
    taints=(Taint("node.kubernetes.io/unschedulable", "", "NoSchedule"), Taint("team", "shop", "NoExecute")),
    unschedulable=True,
    allocatable=(("cpu", 3920), ("ephemeral-storage", 47093746742), ("memory", 15 * 2**30), ("pods", 110)),
    images=(
        NodeImage(("docker.io/library/nginx@sha256:ab", "docker.io/library/nginx:1.27"), 72324501),
        NodeImage((), 5),
        NodeImage(("pause:3.10",), 0),
    ),
    platform=Platform("linux", "arm64"),
    declared_features=("ExtendWebSocketsToKubelet", "RestartAllContainersOnContainerExits"),
)


def test_a_node_is_read_field_by_field():
    assert EXPECTED == decode_node(json.dumps(WHOLE).encode())


def test_an_image_on_two_nodes_is_one_thing():
    first, second = decode_node(json.dumps(WHOLE).encode()), decode_node(json.dumps(WHOLE).encode())

    assert first.images[0] is second.images[0]
    assert first.allocatable is second.allocatable


@pytest.mark.parametrize(
    "document",
    [
        pytest.param({"metadata": {"name": "n1"}}, id="left out"),
        pytest.param({"metadata": {"name": "n1", "labels": None}, "spec": None, "status": None}, id="null"),
        pytest.param(
            {
                "metadata": {"name": "n1"},
                "spec": {"taints": None, "unschedulable": None},
                "status": {"allocatable": None, "images": None, "nodeInfo": None},
            },
            id="null further in",
        ),
    ],
)
def test_a_node_that_says_little_has_nothing_to_give(document):
    assert Node(name="n1") == decode_node(json.dumps(document).encode())


@pytest.mark.parametrize(
    ("labels", "info", "expected"),
    [
        pytest.param({}, {}, Platform("linux", "amd64"), id="unknown"),
        pytest.param({"kubernetes.io/os": "windows"}, {}, Platform("windows", "amd64"), id="only the label"),
        pytest.param({"kubernetes.io/arch": "s390x"}, {}, Platform("linux", "s390x"), id="only the other label"),
        pytest.param(
            {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"},
            {"operatingSystem": "windows", "architecture": "arm64"},
            Platform("windows", "arm64"),
            id="the kubelet knows better than the labels",
        ),
    ],
)
def test_the_platform_is_what_the_kubelet_says_and_before_that_what_the_labels_say(labels, info, expected):
    document = {"metadata": {"name": "n1", "labels": labels}, "status": {"nodeInfo": info}}

    assert expected == decode_node(json.dumps(document).encode()).platform


@pytest.mark.parametrize(
    ("document", "words"),
    [
        pytest.param({"kind": "Pod"}, "cannot read Node: this is a Pod; ask for nodes", id="a pod"),
        pytest.param(
            {"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "4 cores"}}},
            "cannot read Node n1: status.allocatable: '4 cores' is not a quantity",
            id="allocatable",
        ),
        pytest.param(
            {"metadata": {"name": "n1"}, "status": {"images": [{"sizeBytes": "big"}]}},
            "cannot read Node n1: status.images: Expected",
            id="image",
        ),
        pytest.param(
            {"metadata": {"name": "n1"}, "spec": {"taints": [{}]}},
            "cannot read Node n1: spec.taints: Object missing",
            id="taint without a key",
        ),
        pytest.param({"status": {"images": {}}}, "cannot read Node: Expected", id="images"),
    ],
)
def test_what_is_wrong_with_a_node_is_said_with_its_name_and_the_place(document, words):
    with pytest.raises(WireError) as refusal:
        decode_node(json.dumps(document).encode())

    assert str(refusal.value).startswith(words)
