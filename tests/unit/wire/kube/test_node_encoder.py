"""Nodes as a kubelet reports them: labels, amounts, conditions."""

import msgspec
import pytest

from lamina.model.image import Platform
from lamina.model.taints import Taint
from lamina.testing import a_node
from lamina.wire.kube.node_encoder import encode_node
from lamina.wire.kube.node_ready import decode_ready

EPOCH = 1_772_000_000.0  # 2026-02-25T06:13:20Z


def conditions(node):
    return {one["type"]: one["status"] for one in node["status"]["conditions"]}


def test_a_node_has_the_fields_of_a_kubelets_report():
    node = a_node(
        "n1",
        cpu="3920m",
        memory="15Gi",
        more={"example.com/gpu": 2},
        labels={"zone": "a"},
        addresses=["10.0.0.1", "fd00::1", "host-1"],
        images={"app:1": 5},
        taints=[Taint("team", "shop")],
        unschedulable=True,
        uid="7c1d",
    )
    written = encode_node(node, EPOCH, created_at=1.0, heartbeat_at=5.0)
    status = written["status"]

    assert written["metadata"] == {
        "name": "n1",
        "uid": "7c1d",
        "creationTimestamp": "2026-02-25T06:13:21Z",
        "labels": {
            "kubernetes.io/hostname": "n1",
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "zone": "a",
        },
    }
    assert written["spec"] == {
        "taints": [{"key": "team", "value": "shop", "effect": "NoSchedule"}],
        "unschedulable": True,
    }
    assert status["allocatable"] == {"cpu": "3920m", "memory": "15Gi", "pods": "110", "example.com/gpu": "2"}
    assert status["capacity"] == status["allocatable"]
    assert [("InternalIP", "10.0.0.1"), ("InternalIP", "fd00::1"), ("Hostname", "host-1")] == [
        (one["type"], one["address"]) for one in status["addresses"]
    ]
    assert status["images"] == [{"names": ["app:1"], "sizeBytes": 5}]
    assert status["nodeInfo"]["kubeletVersion"] == "v1.36.3"
    assert {("2026-02-25T06:13:21Z", "2026-02-25T06:13:25Z")} == {
        (one["lastTransitionTime"], one["lastHeartbeatTime"]) for one in status["conditions"]
    }


def test_labels_and_node_info_name_the_platform():
    node = msgspec.structs.replace(a_node("n1"), platform=Platform("linux", "arm64"))
    written = encode_node(node)

    assert written["metadata"]["labels"]["kubernetes.io/arch"] == "arm64"
    assert written["status"]["nodeInfo"]["architecture"] == "arm64"


@pytest.mark.parametrize(
    ("taint", "ready", "disk", "is_ready"),
    [
        pytest.param("team", "True", "False", True, id="ready"),
        pytest.param("node.kubernetes.io/not-ready", "False", "False", False, id="not ready"),
        pytest.param("node.kubernetes.io/unreachable", "Unknown", "Unknown", False, id="unreachable"),
        pytest.param("node.kubernetes.io/disk-pressure", "True", "True", True, id="disk pressure"),
    ],
)
def test_conditions_follow_from_the_taints(taint, ready, disk, is_ready):
    written = encode_node(a_node("n1", taints=[Taint(taint)]))

    assert (ready, disk) == (conditions(written)["Ready"], conditions(written)["DiskPressure"])
    assert is_ready == decode_ready(msgspec.json.encode(written))
