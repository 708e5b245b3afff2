"""
Nodes that exist in the API only: always Ready, with capacity for pods that never run.

They suffice for all tests that end with a binding. A pod on such a node stays Pending, because there is no kubelet.
"""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

from testbed.requests import Requests

THREADS: Final = 8
# A fixed time: the output of a test must not depend on when it ran.
SINCE: Final = "2025-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class Node:
    """The properties of a node; quantities are written as in Kubernetes."""

    name: str
    cpu: str = "8"
    memory: str = "16Gi"
    pods: int = 110
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()
    images: Sequence[Mapping[str, Any]] = ()
    """As in the node's status: `{"names": ["a:1"], "sizeBytes": 5}`."""
    resources: Mapping[str, str] = field(default_factory=dict)
    """Extended resources, such as `example.com/gpu`."""


def add(requests: Requests, nodes: Iterable[Node]) -> None:
    """Create *nodes*, several at a time."""
    with contextlib.closing(requests.another()) as shared, ThreadPoolExecutor(THREADS) as pool:
        for _ in pool.map(lambda node: add_one(shared, node), nodes):
            pass


def add_one(requests: Requests, node: Node) -> None:
    """Create a node as a kubelet would, then remove the not-ready taint, as a controller would."""
    requests.send("POST", "/api/v1/nodes", manifest(node))
    # Admission taints every new node as not ready; the node-lifecycle controller, which does not run here, would undo
    # it.
    taints = [dict(taint) for taint in node.taints] or None
    requests.send("PATCH", f"/api/v1/nodes/{node.name}", {"spec": {"taints": taints}})


def manifest(node: Node) -> dict[str, Any]:
    """Return the node's manifest with its status: kubelets register the same way."""
    room = {"cpu": node.cpu, "memory": node.memory, "pods": str(node.pods), **node.resources}
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "no kubelet: this node exists in the API only",
        "lastHeartbeatTime": SINCE,
        "lastTransitionTime": SINCE,
    }
    labels = {"kubernetes.io/hostname": node.name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.name, "labels": {**labels, **node.labels}},
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [ready],
            "images": [dict(image) for image in node.images],
            "nodeInfo": {
                "architecture": "amd64",
                "operatingSystem": "linux",
                "kubeletVersion": "v0.0.0-testbed",
                "containerRuntimeVersion": "none://0",
                "bootID": "",
                "kernelVersion": "",
                "kubeProxyVersion": "",
                "machineID": "",
                "osImage": "",
                "systemUUID": "",
            },
        },
    }
