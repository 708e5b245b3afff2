"""
Encoder of nodes: the v1 Node, as a JSON object, that `codec.decode_node` decodes to the same node.

The result has the fields that a kubelet would report. What is lost or changed on the way back:

- Missing well-known labels (host name, operating system, architecture) are added, because every kubelet sets them.
- The variant of the platform has no field in a v1 Node.
- Empty addresses are omitted.

The model has no capacity, so it equals the allocatable amounts. Conditions follow from the taints that the node
controller would derive from them. Callers must not change a result in place, because nodes share equal parts.
"""

import ipaddress
from functools import lru_cache
from typing import Any, Final

from lamina.model.node import Node, NodeImage
from lamina.model.taints import Taint
from lamina.wire.kube.encoded_values import ENTRIES, encode_amounts, encode_timestamp
from lamina.wire.kube.node_object import ARCHITECTURE_LABEL, OS_LABEL
from lamina.wire.kube.pod_containers_encoder import EncodedObject

HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
KUBELET_VERSION: Final = "v1.36.3"

# Condition, its taint, and the kubelet's reason while it is false and while it is true.
_PRESSURES: Final = (
    (
        "MemoryPressure",
        "node.kubernetes.io/memory-pressure",
        ("KubeletHasSufficientMemory", "KubeletHasInsufficientMemory"),
    ),
    ("DiskPressure", "node.kubernetes.io/disk-pressure", ("KubeletHasNoDiskPressure", "KubeletHasDiskPressure")),
    ("PIDPressure", "node.kubernetes.io/pid-pressure", ("KubeletHasSufficientPID", "KubeletHasInsufficientPID")),
)
_NODE_INFO: Final = {
    "machineID": "",
    "systemUUID": "",
    "bootID": "",
    "kernelVersion": "",
    "osImage": "",
    "containerRuntimeVersion": "containerd://2.2.0",
    "kubeletVersion": KUBELET_VERSION,
    "kubeProxyVersion": "",
}


def encode_node(
    node: Node, epoch: float = 0.0, *, created_at: float = 0.0, heartbeat_at: float | None = None
) -> dict[str, Any]:
    """
    Return *node* as a v1 Node; *epoch* is the Unix time of the model's time 0.

    *created_at* and *heartbeat_at* (by default the same) are times of the model. Raises ValueError for a time that no
    date can express.
    """
    created = encode_timestamp(epoch + created_at)
    metadata: EncodedObject = {
        "name": node.name,
        "uid": node.uid,
        "creationTimestamp": created,
        "labels": {
            HOSTNAME_LABEL: node.name,
            OS_LABEL: node.platform.os,
            ARCHITECTURE_LABEL: node.platform.architecture,
            **node.labels,
        },
    }
    if node.annotations:
        metadata["annotations"] = node.annotations
    spec: EncodedObject = {}
    if node.taints:
        spec["taints"] = _taints(node.taints)
    if node.unschedulable:
        spec["unschedulable"] = True
    beat = created if heartbeat_at is None else encode_timestamp(epoch + heartbeat_at)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "spec": spec,
        "status": _status(node, created, beat),
    }


def _status(node: Node, created: str, beat: str) -> EncodedObject:
    amounts = encode_amounts(node.allocatable)
    written: EncodedObject = {
        "capacity": amounts,
        "allocatable": amounts,
        "conditions": _conditions({taint.key for taint in node.taints}, created, beat),
        "nodeInfo": {
            **_NODE_INFO,
            "operatingSystem": node.platform.os,
            "architecture": node.platform.architecture,
        },
    }
    if node.addresses:
        written["addresses"] = [_address(one) for one in node.addresses if one]
    if node.declared_features:
        written["declaredFeatures"] = list(node.declared_features)
    if node.images:
        written["images"] = [_image(one) for one in node.images]
    return written


@lru_cache(ENTRIES)
def _taints(taints: tuple[Taint, ...]) -> list[EncodedObject]:
    return [{"key": one.key, "effect": one.effect, **({"value": one.value} if one.value else {})} for one in taints]


@lru_cache(ENTRIES)
def _image(image: NodeImage) -> EncodedObject:
    return {"names": list(image.names), "sizeBytes": image.size}


@lru_cache(ENTRIES)
def _address(text: str) -> EncodedObject:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return {"type": "Hostname", "address": text}
    return {"type": "InternalIP", "address": text}


def _conditions(taints: set[str], created: str, beat: str) -> list[EncodedObject]:
    """Return the kubelet's conditions; all of them are unknown for a node that does not report any more."""
    if UNREACHABLE in taints:
        kinds = [*(kind for kind, _, _ in _PRESSURES), "Ready"]
        return [_condition(kind, "Unknown", "NodeStatusUnknown", (created, beat)) for kind in kinds]
    written = []
    for kind, taint, reasons in _PRESSURES:
        under = taint in taints
        written.append(_condition(kind, str(under), reasons[under], (created, beat)))
    ready = NOT_READY not in taints
    reason = "KubeletReady" if ready else "KubeletNotReady"
    return [*written, _condition("Ready", str(ready), reason, (created, beat))]


def _condition(kind: str, status: str, reason: str, times: tuple[str, str]) -> EncodedObject:
    since, beat = times
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "lastHeartbeatTime": beat,
        "lastTransitionTime": since,
    }
