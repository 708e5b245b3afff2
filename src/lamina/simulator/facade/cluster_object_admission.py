"""
Admission of objects that are neither pods nor workloads: namespaces, nodes, services, priorities, storage, claims.

Each function returns the object with the API server's defaults and reports what the server would refuse.
"""

import base64
from typing import Any, Final

from lamina.simulator.facade.admission_call import AdmissionCall
from lamina.simulator.facade.canonical_quantities import canonical_resource_list, exact_quantity
from lamina.simulator.facade.kube_object import KubeObject, part, text
from lamina.simulator.facade.object_fields import labels_of, mappings, object_name, with_labels
from lamina.simulator.facade.object_shapes import CLAIM_SPEC, NODE, SERVICE_SPEC, VOLUME_SPEC, checked_shape
from lamina.simulator.facade.pod_admission import PREEMPT_LOWER, SYSTEM_PRIORITIES
from lamina.simulator.facade.pod_defaults import default_claim_spec
from lamina.simulator.facade.pod_placement_validation import EFFECTS

LARGEST_PRIORITY: Final = 1_000_000_000
"""Largest priority that a user may define."""
NOT_READY: Final = "node.kubernetes.io/not-ready"
NAME_LABEL: Final = "kubernetes.io/metadata.name"


def admit_namespace(namespace: KubeObject, _: AdmissionCall) -> KubeObject:
    """Return a Namespace with its label, its finalizer and its phase."""
    spec = {**part(namespace, "spec"), "finalizers": ["kubernetes"]}
    return {**with_name_label(namespace), "spec": spec, "status": {"phase": "Active"}}


def with_name_label(namespace: KubeObject) -> KubeObject:
    """Return a namespace with the label that repeats its name."""
    return with_labels(namespace, {**labels_of(namespace), NAME_LABEL: object_name(namespace)})


def admit_node(node: KubeObject, call: AdmissionCall) -> KubeObject:
    """Return a Node whose allocatable resources default to its capacity; tainted if the context says so."""
    shaped = {name: node.get(name) or {} for name in ("spec", "status")}
    checked: KubeObject = checked_shape(shaped, NODE, "Node", "v1", "node")
    spec, status = checked["spec"], checked["status"]
    for name in ("capacity", "allocatable"):
        if name in status:
            status[name] = canonical_resource_list(status[name])
    for name, amount in part(status, "capacity").items():
        status.setdefault("allocatable", {}).setdefault(name, amount)
    for name in ("capacity", "allocatable"):
        for resource, amount in part(status, name).items():
            if exact_quantity(amount) < 0:
                words = "must be greater than or equal to 0"
                call.problems.invalid(f"status.{name}.{resource}", amount, words)
    for index, taint in enumerate(mappings(spec, "taints")):
        # The real server says "metadata" here too.
        call.problems.check_supported(f"metadata.taints[{index}].effect", text(taint, "effect"), EFFECTS)
    if call.context.new_nodes_not_ready and all(text(each, "key") != NOT_READY for each in mappings(spec, "taints")):
        spec["taints"] = [*spec.get("taints", ()), {"key": NOT_READY, "effect": "NoSchedule"}]
    return {**node, "spec": spec, "status": status}


def admit_priority_class(priority_class: KubeObject, call: AdmissionCall) -> KubeObject:
    """Return a PriorityClass with its preemption policy."""
    name, value = object_name(priority_class), priority_class.get("value", 0)
    policy = text(priority_class, "preemptionPolicy") or PREEMPT_LOWER
    if name.startswith("system-"):
        if SYSTEM_PRIORITIES.get(name) != value:
            problem = f"{name} is not a known system priority class"
            if name in SYSTEM_PRIORITIES:
                problem = f"value of {name} PriorityClass must be {SYSTEM_PRIORITIES[name]}"
            words = f"priority class names with 'system-' prefix are reserved for system use only. error: {problem}"
            call.problems.forbidden("metadata.name", words)
    elif isinstance(value, int) and value > LARGEST_PRIORITY:
        words = f"maximum allowed value of a user defined priority is {LARGEST_PRIORITY}"
        call.problems.forbidden("value", words)
    call.problems.check_supported("preemptionPolicy", policy, (PREEMPT_LOWER, "Never"))
    return {**priority_class, "value": value, "preemptionPolicy": policy}


def admit_service(service: KubeObject, call: AdmissionCall) -> KubeObject:
    """Return a Service with defaults. The façade allocates no addresses."""
    spec = _own_spec(service, SERVICE_SPEC)
    spec["type"] = text(spec, "type") or "ClusterIP"
    spec["sessionAffinity"] = text(spec, "sessionAffinity") or "None"
    headless = text(spec, "clusterIP") == "None"
    if spec["type"] != "ExternalName":
        spec.setdefault("ipFamilies", ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")
        spec.setdefault("internalTrafficPolicy", "Cluster")
        if text(spec, "clusterIP"):
            spec.setdefault("clusterIPs", [spec["clusterIP"]])
    ports = []
    for port in mappings(spec, "ports"):
        with_protocol = {**port, "protocol": text(port, "protocol") or "TCP"}
        ports.append({**with_protocol, "targetPort": port.get("targetPort") or port.get("port")})
    if ports:
        spec["ports"] = ports
    elif not headless and spec["type"] != "ExternalName":
        call.problems.required("spec.ports")
    return {**service, "spec": spec, "status": part(service, "status") or {"loadBalancer": {}}}


def admit_disruption_budget(budget: KubeObject, call: AdmissionCall) -> KubeObject:
    """Return a PodDisruptionBudget with an empty status."""
    spec = part(budget, "spec")
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        words = "minAvailable and maxUnavailable cannot be both set"
        call.problems.invalid("spec", spec, words)
    counts = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    return {**budget, "status": part(budget, "status") or dict.fromkeys(counts, 0)}


def admit_storage_class(storage_class: KubeObject, call: AdmissionCall) -> KubeObject:
    """Return a StorageClass with defaults; the scheduler refuses classes without a binding mode."""
    if not text(storage_class, "provisioner"):
        call.problems.required("provisioner")
    return {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate", **storage_class}


def admit_volume_claim(claim: KubeObject, _: AdmissionCall) -> KubeObject:
    """Return a PersistentVolumeClaim with defaults."""
    spec = _own_spec(claim, CLAIM_SPEC)
    default_claim_spec(spec)
    return {**claim, "spec": spec, "status": part(claim, "status") or {"phase": "Pending"}}


def admit_volume(volume: KubeObject, _: AdmissionCall) -> KubeObject:
    """Return a PersistentVolume with defaults, available at once: the façade has no volume controller."""
    spec = _own_spec(volume, VOLUME_SPEC)
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    if "capacity" in spec:
        spec["capacity"] = canonical_resource_list(spec["capacity"])
    return {**volume, "spec": spec, "status": part(volume, "status") or {"phase": "Available"}}


def admit_secret(secret: KubeObject, _: AdmissionCall) -> KubeObject:
    """Return a Secret with its plain-text entries encoded."""
    data = dict(part(secret, "data"))
    for key, value in part(secret, "stringData").items():
        data[key] = base64.b64encode(str(value).encode()).decode()
    kept = {key: value for key, value in secret.items() if key != "stringData"}
    return {**kept, **({"data": data} if data else {}), "type": text(secret, "type") or "Opaque"}


def admit_resource_claim(claim: KubeObject, _: AdmissionCall) -> KubeObject:
    """Return a ResourceClaim, or a template of one, whose device requests have an allocation mode."""
    spec = _own_spec(claim, {})
    inner = spec.get("spec") if claim.get("kind") == "ResourceClaimTemplate" else spec
    for request in mappings(part(inner or {}, "devices"), "requests"):
        exact: Any = request.get("exactly")
        if isinstance(exact, dict):
            exact.setdefault("allocationMode", "ExactCount")
            if exact["allocationMode"] == "ExactCount":
                exact.setdefault("count", 1)
    return {**claim, "spec": spec}


def _own_spec(found: KubeObject, shape: dict[str, Any]) -> KubeObject:
    """Return a copy of the spec that may be changed. Raises StatusError 400 if it has another shape."""
    spec: KubeObject = checked_shape(found.get("spec") or {}, shape, text(found, "kind"), text(found, "apiVersion"))
    return spec
