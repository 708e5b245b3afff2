"""
Kubernetes objects of parity cases: nodes, placed pods and the pod under test, as the API server would store them.

Objects are small on purpose: they have the fields that a scheduler reads, and the defaults that the API server sets.
Kinds and API versions are added where an object enters the façade (`parity.recording`).
"""

from typing import Any, Final

KubeJson = dict[str, Any]

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
RACK: Final = "rack"
CREATED: Final = "2026-01-01T00:00:00Z"
SCHEDULER: Final = "default-scheduler"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def node_object(name: str, allocatable: dict[str, str], labels: dict[str, str], **parts: Any) -> KubeJson:
    """Return a node; *parts* may be ``taints``, ``unschedulable`` and ``images``."""
    spec = {key: parts[key] for key in ("taints", "unschedulable") if parts.get(key)}
    status: KubeJson = {"allocatable": allocatable, "capacity": allocatable}
    if parts.get("images"):
        status["images"] = [{"names": [one], "sizeBytes": size} for one, size in parts["images"].items()]
    metadata = {"name": name, "uid": f"node-{name}", "creationTimestamp": CREATED, "labels": labels}
    return {"metadata": metadata, "spec": spec, "status": status}


def container_object(name: str, requests: dict[str, str], image: str = "app:1", **parts: Any) -> KubeJson:
    """Return a container; *parts* are further fields of it."""
    resources = parts.pop("resources", None) or ({"requests": requests} if requests else {})
    return {"name": name, "image": image, "resources": resources, **parts}


def pod_object(name: str, containers: list[KubeJson], **parts: Any) -> KubeJson:
    """
    Return a pod. *parts* are fields of the spec, except ``namespace``, ``labels``, ``owner`` and ``status``.

    The owner is a kind and a name; an API version other than apps/v1 may follow.

    The uid is the name, so that recordings and replays name pods equally.
    """
    metadata: KubeJson = {
        "name": name,
        "namespace": parts.pop("namespace", "default"),
        "uid": name,
        "creationTimestamp": CREATED,
    }
    if labels := parts.pop("labels", None):
        metadata["labels"] = labels
    if owner := parts.pop("owner", None):
        kind, owner_name, version = (*owner, "apps/v1")[:3]
        metadata["ownerReferences"] = [
            {"apiVersion": version, "kind": kind, "name": owner_name, "uid": f"uid-{owner_name}", "controller": True}
        ]
    status = parts.pop("status", {"phase": "Pending"})
    spec = {"containers": containers, "schedulerName": SCHEDULER, "priority": 0, **parts}
    return {"metadata": metadata, "spec": spec, "status": status}


def node_name(node: KubeJson) -> str:
    """Return the name of a node."""
    found: str = node["metadata"]["name"]
    return found


def pod_key(pod: KubeJson) -> str:
    """Return namespace and name of a pod, as logs write them."""
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def expression(key: str, operator: str, *values: str) -> KubeJson:
    """Return one requirement of a selector."""
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def running_status(start: str = CREATED) -> KubeJson:
    """Return the status of a pod that runs since *start*."""
    return {"phase": "Running", "startTime": start}
