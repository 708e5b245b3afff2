"""
What a kubelet adds to the object of its node: addresses, and the Lease in ``kube-node-lease``.

Addresses are numbered in the order in which nodes join; nothing listens there. A Lease is not renewed, and neither are
the heartbeats in a node's conditions: an object of the façade changes only when something happens.
"""

from typing import Final

from lamina.simulator.facade.api_state import ApiState
from lamina.simulator.facade.kube_object import KubeObject, NamespacedName, part, uid_of

NAMESPACE: Final = "kube-node-lease"
FIRST_ADDRESS: Final = (172 << 24) + (16 << 16)
ADDRESSES: Final = 1 << 20
"""Number of addresses in 172.16.0.0/12."""
LEASE_SECONDS: Final = 40
"""Default of the kubelet's ``nodeLeaseDurationSeconds``."""


def with_addresses(node: KubeObject, number: int) -> KubeObject:
    """Return a node's object with the addresses of the node that joined as the *number*-th, unless it has some."""
    status = part(node, "status")
    if status.get("addresses"):
        return node
    name = node["metadata"]["name"]
    addresses = [{"type": "InternalIP", "address": node_address(number)}, {"type": "Hostname", "address": name}]
    return {**node, "status": {**status, "addresses": addresses}}


def node_address(number: int) -> str:
    """Return the address of the node that joined as the *number*-th."""
    value = FIRST_ADDRESS + number % ADDRESSES
    return ".".join(str(value >> shift & 255) for shift in (24, 16, 8, 0))


def internal_address(node: KubeObject) -> str:
    """Return the internal address of a node's object; empty if it has none."""
    for one in part(node, "status").get("addresses") or ():
        if isinstance(one, dict) and one.get("type") == "InternalIP":
            return str(one.get("address", ""))
    return ""


def write_lease(state: ApiState, node: KubeObject) -> None:
    """Write the Lease of a node that joined, if there is none."""
    name = node["metadata"]["name"]
    table, key = state.store.table("coordination.k8s.io", "leases"), NamespacedName(NAMESPACE, name)
    if table.get(key) is not None:
        return
    now = state.timestamp()
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid_of(node)}
    metadata = {"name": name, "namespace": NAMESPACE, "uid": state.uid(), "creationTimestamp": now}
    spec = {"holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": f"{now[:-1]}.000000Z"}
    state.store.put(
        table,
        key,
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {**metadata, "ownerReferences": [owner]},
            "spec": spec,
        },
    )


def remove_lease(state: ApiState, name: str) -> None:
    """Remove the Lease of a node that left, if it is there."""
    state.store.delete(state.store.table("coordination.k8s.io", "leases"), NamespacedName(NAMESPACE, name))
