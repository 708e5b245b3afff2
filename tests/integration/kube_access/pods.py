"""Pods on a control plane without kubelets."""

from typing import Any

from lamina.clients.kube.event import ObjectReference
from lamina.clients.kube.pod_writes import PodKey


def add_pod(bed, namespace: str, name: str, **spec: Any) -> PodKey:
    """Create a pod that no scheduler looks at."""
    spec = {"schedulerName": "nobody", "containers": [{"name": "c", "image": "x"}], **spec}
    body = {"metadata": {"name": name, "labels": {"app": name}}, "spec": spec}
    made = bed.api("POST", f"/api/v1/namespaces/{namespace}/pods", body)
    return PodKey(namespace, name, made["metadata"]["uid"])


def get_pod(bed, pod: PodKey) -> dict[str, Any]:
    found: dict[str, Any] = bed.api("GET", pod.path)
    return found


def condition(bed, pod: PodKey, kind: str) -> dict[str, Any]:
    """One condition of a pod."""
    found = [one for one in get_pod(bed, pod)["status"].get("conditions", []) if one["type"] == kind]
    (only,) = found
    return dict(only)


def reference(bed, pod: PodKey) -> ObjectReference:
    version = get_pod(bed, pod)["metadata"]["resourceVersion"]
    return ObjectReference("Pod", pod.name, pod.namespace, pod.uid, "v1", version)
