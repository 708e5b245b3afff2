"""
Updates of objects: defaults of the new version, and fields that may not change.

A client may send an object without the defaults that the server added, so they are filled in again before the new
version is compared with the stored one.
"""

from collections.abc import Callable
from typing import Any, Final

from lamina.simulator.facade.admission_call import AdmissionCall, AdmissionContext
from lamina.simulator.facade.cluster_object_admission import admit_secret, with_name_label
from lamina.simulator.facade.field_problems import FieldProblems
from lamina.simulator.facade.kube_object import KubeObject, part, text
from lamina.simulator.facade.pod_updates import significant, updated_pod_spec
from lamina.simulator.facade.resource_type import ResourceType
from lamina.simulator.facade.workload_admission import (
    admit_cron_job,
    admit_daemon_set,
    admit_deployment,
    admit_job,
    admit_replica_set,
    admit_replication_controller,
    admit_stateful_set,
)

_WORKLOADS: Final[dict[tuple[str, str], Callable[[KubeObject, AdmissionCall], KubeObject]]] = {
    ("", "replicationcontrollers"): admit_replication_controller,
    ("apps", "deployments"): admit_deployment,
    ("apps", "replicasets"): admit_replica_set,
    ("apps", "statefulsets"): admit_stateful_set,
    ("apps", "daemonsets"): admit_daemon_set,
    ("batch", "cronjobs"): admit_cron_job,
}
_STATEFUL_SET_CHANGES: Final = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
_ONLY_THESE_CHANGE: Final = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
# Defaults of workloads need no knowledge about the cluster.
_NO_CONTEXT: Final = AdmissionContext(
    now=lambda: 0.0,
    priority_class=lambda _: None,
    default_priority_class=lambda: None,
    namespace_exists=lambda _: True,
)


def check_update(type_: ResourceType, old: KubeObject, new: KubeObject, problems: FieldProblems) -> KubeObject:
    """Return the new version of a built-in object with defaults; report changes that the server refuses."""
    key = (type_.group, type_.resource)
    if key in _WORKLOADS:
        call = AdmissionCall(type_, _NO_CONTEXT, problems, type_.api_version)
        new = _WORKLOADS[key](_with_old_selector(old, new), call)
        _check_workload(type_, part(old, "spec"), part(new, "spec"), problems)
        return new
    match key:
        case ("", "pods"):
            return {**new, "spec": updated_pod_spec(old, new, problems)}
        case ("batch", "jobs"):
            return _updated_job(type_, old, new, problems)
        case ("", "namespaces"):
            return with_name_label(new)
        case ("", "nodes"):
            _check_node(old, new, problems)
        case ("scheduling.k8s.io", "priorityclasses"):
            return _updated_priority_class(old, new, problems)
        case ("", "configmaps" | "secrets"):
            return _updated_data(type_, old, new, problems)
    return new


def _with_old_selector(old: KubeObject, new: KubeObject) -> KubeObject:
    """Return *new* with the stored selector if it has none: a legacy version does not have to name it."""
    spec = part(new, "spec")
    if spec.get("selector") is not None or "selector" not in part(old, "spec"):
        return new
    return {**new, "spec": {**spec, "selector": old["spec"]["selector"]}}


def _check_workload(type_: ResourceType, before: KubeObject, spec: KubeObject, problems: FieldProblems) -> None:
    if type_.resource == "statefulsets":
        old, new = significant(before), significant(spec)
        if any(old.get(name) != new.get(name) for name in {*old, *new} - set(_STATEFUL_SET_CHANGES)):
            problems.forbidden("spec", _ONLY_THESE_CHANGE)
    elif type_.resource in ("deployments", "replicasets", "daemonsets") and _differ(before, spec, "selector"):
        problems.immutable("spec.selector", spec.get("selector"))


def _differ(before: KubeObject, after: KubeObject, name: str) -> bool:
    cleaned: list[Any] = [significant({name: found.get(name)}) for found in (before, after)]
    return bool(cleaned[0] != cleaned[1])


def _updated_job(type_: ResourceType, old: KubeObject, new: KubeObject, problems: FieldProblems) -> KubeObject:
    before = part(old, "spec")
    sent = dict(part(new, "spec"))
    generated = sent.get("selector") is None or sent["selector"] == before.get("selector")
    if generated:
        # What was generated is generated again, with the same uid.
        sent.pop("selector", None)
    call = AdmissionCall(type_, _NO_CONTEXT, problems, type_.api_version)
    if before.get("manualSelector") is True and generated:
        sent["selector"] = before.get("selector")
    new = admit_job({**new, "spec": sent}, call)
    spec = part(new, "spec")
    elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    if _differ(before, spec, "completions") and not elastic:
        problems.immutable("spec.completions", spec.get("completions"))
    for name in ("selector", "completionMode"):
        if _differ(before, spec, name):
            problems.immutable(f"spec.{name}", spec.get(name))
    if _differ(before, spec, "template") and before.get("suspend") is not True:
        problems.immutable("spec.template", spec.get("template"))
    return new


def _check_node(old: KubeObject, new: KubeObject, problems: FieldProblems) -> None:
    before, after = text(part(old, "spec"), "providerID"), text(part(new, "spec"), "providerID")
    if before and before != after:
        words = 'node updates may not change providerID except from "" to valid'
        problems.forbidden("spec.providerID", words)


def _updated_priority_class(old: KubeObject, new: KubeObject, problems: FieldProblems) -> KubeObject:
    policy = text(new, "preemptionPolicy") or old.get("preemptionPolicy")
    if new.get("value", 0) != old.get("value", 0):
        problems.forbidden("value", "may not be changed in an update.")
    if policy != old.get("preemptionPolicy"):
        problems.immutable("preemptionPolicy", policy)
    return {**new, "preemptionPolicy": policy}


def _updated_data(type_: ResourceType, old: KubeObject, new: KubeObject, problems: FieldProblems) -> KubeObject:
    if type_.resource == "secrets":
        new = admit_secret(new, AdmissionCall(type_, _NO_CONTEXT, problems, type_.api_version))
    if old.get("immutable") is True:
        words = "field is immutable when `immutable` is set"
        if new.get("immutable") is not True:
            problems.forbidden("immutable", words)
        for name in ("data", "binaryData"):
            if part(old, name) != part(new, name):
                problems.forbidden(name, words)
    return new
