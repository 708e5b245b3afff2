"""
Admission of new pods: defaults, priority, default tolerations, validation and the first status.

The order is that of the API server: defaults, then the admission plugins that change the pod, then validation.
"""

from typing import Any, Final

from lamina.simulator.facade.admission_call import AdmissionCall, AdmissionContext
from lamina.simulator.facade.api_errors import forbidden
from lamina.simulator.facade.kube_object import KubeObject, text
from lamina.simulator.facade.object_fields import mappings, object_name
from lamina.simulator.facade.object_shapes import POD_SPEC, checked_shape
from lamina.simulator.facade.pod_defaults import DEFAULT_ACCOUNT, default_pod_spec
from lamina.simulator.facade.pod_qos import qos_class
from lamina.simulator.facade.pod_validation import validate_pod_spec

TOLERATION_SECONDS: Final = 300
"""How long a pod stays on a node that is not ready or unreachable, unless it says otherwise."""
SYSTEM_PRIORITIES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""Priority classes that every cluster has."""
SCHEDULING_GATED: Final = "SchedulingGated"
GATED_MESSAGE: Final = "Scheduling is blocked due to non-empty scheduling gates"
PREEMPT_LOWER: Final = "PreemptLowerPriority"

_TAINTS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def admit_pod(pod: KubeObject, call: AdmissionCall) -> KubeObject:
    """Return a new pod as the server stores it. Raises StatusError 403 if its priority class does not exist."""
    spec: KubeObject = checked_shape(pod.get("spec") or {}, POD_SPEC, "Pod", "v1")
    default_pod_spec(spec)
    if not spec.get("serviceAccountName"):
        spec["serviceAccountName"] = spec["serviceAccount"] = DEFAULT_ACCOUNT
    set_priority(spec, object_name(pod), call.context)
    add_default_tolerations(spec)
    validate_pod_spec(spec, "spec", call.problems)
    if call.problems:
        return pod
    status: KubeObject = {"phase": "Pending"}
    if mappings(spec, "schedulingGates"):
        status["conditions"] = [_gated_condition(call.context)]
    status["qosClass"] = qos_class(spec)
    return {**pod, "spec": spec, "status": status}


def _gated_condition(context: AdmissionContext) -> KubeObject:
    return {
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": None,
        "lastTransitionTime": context.timestamp(),
        "reason": SCHEDULING_GATED,
        "message": GATED_MESSAGE,
    }


def set_priority(spec: KubeObject, pod_name: str, context: AdmissionContext) -> None:
    """Set priority and preemption policy from the pod's priority class, or from the default class if it names none."""
    name = text(spec, "priorityClassName")
    found = context.priority_class(name) if name else context.default_priority_class()
    if name and found is None:
        if name not in SYSTEM_PRIORITIES:
            raise forbidden("pods", "", pod_name, f"no PriorityClass with name {name} was found")
        found = {"metadata": {"name": name}, "value": SYSTEM_PRIORITIES[name]}
    if found is not None:
        spec["priorityClassName"] = object_name(found)
    priority: Any = 0 if found is None else found.get("value", 0)
    policy = PREEMPT_LOWER if found is None else text(found, "preemptionPolicy") or PREEMPT_LOWER
    computed = "priority admission controller computed {} from the given PriorityClass name"
    if spec.get("priority", priority) != priority:
        why = f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
        raise forbidden("pods", "", pod_name, why + computed.format(priority))
    if spec.get("preemptionPolicy", policy) != policy:
        why = f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec; "
        raise forbidden("pods", "", pod_name, why + computed.format(policy))
    spec["priority"], spec["preemptionPolicy"] = priority, policy


def add_default_tolerations(spec: KubeObject) -> None:
    """Let the pod tolerate a node that is not ready or unreachable for some minutes, unless it has its own rule."""
    present = [text(each, "key") for each in mappings(spec, "tolerations") if text(each, "effect") in ("NoExecute", "")]
    added = [
        {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATION_SECONDS}
        for taint in _TAINTS
        if taint not in present and "" not in present
    ]
    if added:
        spec["tolerations"] = [*spec.get("tolerations", ()), *added]
