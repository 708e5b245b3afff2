"""
Builders of Kubernetes objects for retold cases: as the API server would store them, with their kind.

Upstream's builders give a node room for 32 pods and nothing else, so nodes here have the same unless a case says more.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tests.parity.case_objects import CREATED, REQUIRED, SCHEDULER, KubeJson, expression

NAMESPACE: Final = "default"
PODS: Final = "32"
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
HOSTNAME: Final = "kubernetes.io/hostname"


def with_kind(kind: str, version: str, name: str, namespace: str = "", **parts: Any) -> KubeJson:
    """Return an object; *parts* are its fields, except ``labels`` and ``annotations``."""
    metadata: KubeJson = {"name": name, "uid": f"{kind.lower()}-{name}", "creationTimestamp": CREATED}
    if namespace:
        metadata["namespace"] = namespace
    for key in ("labels", "annotations"):
        if found := parts.pop(key, None):
            metadata[key] = dict(found)
    return {"kind": kind, "apiVersion": version, "metadata": metadata, **parts}


def node(
    name: str,
    labels: Mapping[str, str] | None = None,
    *,
    taints: Sequence[KubeJson] = (),
    images: Sequence[KubeJson] = (),
    **room: str,
) -> KubeJson:
    """Return a node; *room* is its allocatable, besides the number of pods."""
    allocatable = {"pods": PODS, **room}
    status: KubeJson = {"allocatable": allocatable, "capacity": allocatable}
    if images:
        status["images"] = list(images)
    spec = {"taints": list(taints)} if taints else {}
    return with_kind("Node", "v1", name, labels=labels, spec=spec, status=status)


def taint(key: str, value: str = "", effect: str = "NoSchedule") -> KubeJson:
    """Return a taint."""
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


def toleration(key: str, value: str = "", effect: str = "") -> KubeJson:
    """Return a toleration of exactly this taint, or of all effects without one."""
    written = {"key": key, "operator": "Equal" if value else "Exists"}
    return {**written, **({"value": value} if value else {}), **({"effect": effect} if effect else {})}


def namespace(name: str, **labels: str) -> KubeJson:
    """Return a namespace."""
    return with_kind("Namespace", "v1", name, labels=labels)


def pod(
    name: str,
    labels: Mapping[str, str] | None = None,
    *,
    on: str = "",
    started: int = 0,
    requests: Mapping[str, str] | None = None,
    claims: Sequence[str] = (),
    inside: str = NAMESPACE,
    **spec: Any,
) -> KubeJson:
    """
    Return a pod. With *on* it runs there, since *started* seconds after its creation; *spec* has further fields.

    The API server adds the requirements of ``matchLabelKeys`` and ``mismatchLabelKeys`` to selectors, and so does this.
    """
    resources = {"requests": dict(requests)} if requests else {}
    status: KubeJson = {"phase": "Pending"}
    if on:
        status = {"phase": "Running", "startTime": f"2026-01-01T00:{started // 60:02}:{started % 60:02}Z"}
        status["conditions"] = [{"type": "Ready", "status": "True"}]
        spec["nodeName"] = on
    if claims:
        spec["volumes"] = [{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in claims]
    container = {"name": "container", "image": "pause:1", "resources": resources}
    spec = {"containers": [container], "schedulerName": SCHEDULER, "priority": 0, **spec}
    _merge_label_keys(spec, labels or {})
    found = with_kind("Pod", "v1", name, inside, labels=labels, spec=spec, status=status)
    found["metadata"]["uid"] = name
    return found


def pods_on(labels: Mapping[str, str], **nodes: str) -> list[KubeJson]:
    """Return equal running pods, by pod and node; each started a second after the one before."""
    return [pod(name, labels, on=where, started=number) for number, (name, where) in enumerate(nodes.items())]


def term(topology: str, *requirements: KubeJson, **parts: Any) -> KubeJson:
    """Return a term of affinity between pods; *parts* are further fields."""
    return {"topologyKey": topology, "labelSelector": {"matchExpressions": list(requirements)}, **parts}


def pod_affinity(*terms: KubeJson, anti: Sequence[KubeJson] = ()) -> KubeJson:
    """Return ``affinity`` with required terms about other pods."""
    found = {"podAffinity": {REQUIRED: list(terms)}} if terms else {}
    return {**found, "podAntiAffinity": {REQUIRED: list(anti)}} if anti else found


def node_affinity(*requirements: KubeJson, field: str = "matchExpressions") -> KubeJson:
    """Return ``affinity`` that requires a node with these labels, or these fields."""
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{field: list(requirements)}]}}}


def spread(skew: int, topology: str, selector: KubeJson | None = None, **parts: Any) -> KubeJson:
    """Return a topology spread constraint; by default a hard one about pods with the label ``foo``."""
    return {
        "maxSkew": skew,
        "topologyKey": topology,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchExpressions": [expression("foo", "Exists")]} if selector is None else selector,
        **parts,
    }


def budget(name: str, labels: Mapping[str, str], *, least: int, healthy: int) -> KubeJson:
    """Return a disruption budget, with the status that the disruption controller would write."""
    status = {
        "currentHealthy": healthy,
        "desiredHealthy": least,
        "expectedPods": healthy,
        "disruptionsAllowed": max(0, healthy - least),
        "observedGeneration": 1,
    }
    spec = {"minAvailable": least, "selector": {"matchLabels": dict(labels)}}
    return with_kind("PodDisruptionBudget", "policy/v1", name, NAMESPACE, spec=spec, status=status)


def _merge_label_keys(spec: KubeJson, labels: Mapping[str, str]) -> None:
    affinity = spec.get("affinity", {})
    terms = [
        *affinity.get("podAffinity", {}).get(REQUIRED, ()),
        *affinity.get("podAntiAffinity", {}).get(REQUIRED, ()),
        *spec.get("topologySpreadConstraints", ()),
    ]
    for one in terms:
        wanted = one["labelSelector"].setdefault("matchExpressions", [])
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
            wanted += [expression(key, operator, labels[key]) for key in one.get(field, ()) if key in labels]
