"""
Shapes of the fields that admission and schedulers read: which are lists, objects, texts and numbers.

A field of another shape is refused before admission looks at it, with the path of the field. Fields that are not
listed here pass unchecked.
"""

from typing import Any, Final

from lamina.simulator.facade.api_errors import bad_request

_NAMES: Final = {str: "a string", int: "a whole number", bool: "true or false", list: "a list", dict: "an object"}
_TEXTS: Final = {"*": str}
_AMOUNTS: Final = {"*": None}
_RESOURCES: Final = {"limits": _AMOUNTS, "requests": _AMOUNTS, "claims": [{"name": str}]}
CLAIM_SPEC: Final = {"resources": _RESOURCES, "accessModes": [str], "volumeMode": str, "storageClassName": str}
"""Shape of the spec of a PersistentVolumeClaim."""
_LABEL_SELECTOR: Final = {
    "matchLabels": _TEXTS,
    "matchExpressions": [{"key": str, "operator": str, "values": [str]}],
}
_NODE_TERM: Final = {
    "matchExpressions": [{"key": str, "operator": str, "values": [str]}],
    "matchFields": [{"key": str, "operator": str, "values": [str]}],
}
_POD_TERM: Final = {
    "topologyKey": str,
    "labelSelector": _LABEL_SELECTOR,
    "namespaceSelector": _LABEL_SELECTOR,
    "namespaces": [str],
}
_POD_AFFINITY: Final = {
    "requiredDuringSchedulingIgnoredDuringExecution": [_POD_TERM],
    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": int, "podAffinityTerm": _POD_TERM}],
}
_PROBE: Final[dict[str, Any]] = {"httpGet": {}, "grpc": {}}
_CONTAINER: Final = {
    "name": str,
    "image": str,
    "imagePullPolicy": str,
    "restartPolicy": str,
    "command": [str],
    "args": [str],
    "ports": [{"name": str, "containerPort": int, "hostPort": int, "hostIP": str, "protocol": str}],
    "env": [{"name": str, "value": str, "valueFrom": {"fieldRef": {}}}],
    "resources": _RESOURCES,
    "volumeMounts": [{"name": str, "mountPath": str}],
    "livenessProbe": _PROBE,
    "readinessProbe": _PROBE,
    "startupProbe": _PROBE,
    "lifecycle": {"preStop": {"httpGet": {}}, "postStart": {"httpGet": {}}},
    "securityContext": {},
}
_VOLUME: Final = {
    "name": str,
    "configMap": {},
    "secret": {},
    "hostPath": {},
    "downwardAPI": {"items": [{"fieldRef": {}}]},
    "projected": {"sources": [{"serviceAccountToken": {}, "downwardAPI": {"items": [{"fieldRef": {}}]}}]},
    "ephemeral": {"volumeClaimTemplate": {"metadata": {}, "spec": CLAIM_SPEC}},
    "persistentVolumeClaim": {"claimName": str},
}
POD_SPEC: Final = {
    "containers": [_CONTAINER],
    "initContainers": [_CONTAINER],
    "ephemeralContainers": [{}],
    "volumes": [_VOLUME],
    "restartPolicy": str,
    "terminationGracePeriodSeconds": int,
    "activeDeadlineSeconds": int,
    "dnsPolicy": str,
    "nodeSelector": _TEXTS,
    "serviceAccountName": str,
    "serviceAccount": str,
    "nodeName": str,
    "hostNetwork": bool,
    "securityContext": {},
    "schedulerName": str,
    "priorityClassName": str,
    "priority": int,
    "preemptionPolicy": str,
    "overhead": _AMOUNTS,
    "resources": _RESOURCES,
    "schedulingGates": [{"name": str}],
    "readinessGates": [{"conditionType": str}],
    "tolerations": [{"key": str, "operator": str, "value": str, "effect": str, "tolerationSeconds": int}],
    "topologySpreadConstraints": [
        {"maxSkew": int, "topologyKey": str, "whenUnsatisfiable": str, "labelSelector": _LABEL_SELECTOR}
    ],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_NODE_TERM]},
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": int, "preference": _NODE_TERM}],
        },
        "podAffinity": _POD_AFFINITY,
        "podAntiAffinity": _POD_AFFINITY,
    },
}
"""Shape of a pod's spec."""
POD_TEMPLATE: Final = {"metadata": {"labels": _TEXTS, "annotations": _TEXTS}, "spec": POD_SPEC}
"""Shape of a workload's pod template."""
WORKLOAD_SPEC: Final = {
    "replicas": int,
    "selector": _LABEL_SELECTOR,
    "template": POD_TEMPLATE,
    "strategy": {"type": str, "rollingUpdate": {}},
    "updateStrategy": {"type": str, "rollingUpdate": {}},
    "volumeClaimTemplates": [{"metadata": {}, "spec": CLAIM_SPEC}],
    "parallelism": int,
    "completions": int,
    "backoffLimit": int,
    "suspend": bool,
    "manualSelector": bool,
}
"""Shape of the specs of Deployments, ReplicaSets, StatefulSets, DaemonSets and Jobs."""
NODE: Final = {
    "spec": {"unschedulable": bool, "providerID": str, "taints": [{"key": str, "value": str, "effect": str}]},
    "status": {
        "capacity": _AMOUNTS,
        "allocatable": _AMOUNTS,
        "conditions": [{"type": str, "status": str}],
        "addresses": [{}],
        "images": [{}],
    },
}
"""Shape of a node."""


SERVICE_SPEC: Final = {
    "type": str,
    "clusterIP": str,
    "selector": _TEXTS,
    "externalIPs": [str],
    "ports": [{"name": str, "protocol": str, "port": int, "nodePort": int}],
}
"""Shape of the spec of a Service."""
VOLUME_SPEC: Final = {"capacity": _AMOUNTS, "accessModes": [str], "storageClassName": str}
"""Shape of the spec of a PersistentVolume."""


def checked_shape(value: Any, shape: Any, kind: str, api_version: str, path: str = "spec") -> Any:
    """
    Return a copy of *value* without null fields, which mean the same as missing ones.

    Raises StatusError 400 with the path of the first field that has another shape.
    """
    if isinstance(shape, dict):
        return _checked_object(value, shape, kind, api_version, path)
    if isinstance(shape, list):
        if not isinstance(value, list):
            raise _refusal(value, list, kind, api_version, path)
        return [
            checked_shape(each, shape[0], kind, api_version, f"{path}[{index}]") for index, each in enumerate(value)
        ]
    if shape is not None and (not isinstance(value, shape) or (shape is int and isinstance(value, bool))):
        raise _refusal(value, shape, kind, api_version, path)
    return _copied(value)


def _checked_object(value: Any, shape: dict[str, Any], kind: str, api_version: str, path: str) -> Any:
    if not isinstance(value, dict):
        raise _refusal(value, dict, kind, api_version, path)
    every = shape.get("*")
    found = {}
    for name, inner in value.items():
        if inner is None:
            continue
        known = shape.get(name, every)
        found[name] = (
            _copied(inner) if known is None else checked_shape(inner, known, kind, api_version, f"{path}.{name}")
        )
    return found


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copied(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_copied(inner) for inner in value]
    return value


def _refusal(value: Any, wanted: type, kind: str, api_version: str, path: str) -> Exception:
    found = _NAMES.get(type(value), "null" if value is None else "a number")
    words = f"{path}: expected {_NAMES[wanted]}, found {found}"
    return bad_request(f'{kind} in version "{api_version}" cannot be handled as a {kind}: {words}')
