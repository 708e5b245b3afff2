"""
Admission of workloads: Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs, CronJobs, ReplicationControllers.

Each function returns the workload with the API server's defaults and reports what the server would refuse.
"""

from typing import Any, Final

from lamina.simulator.facade.admission_call import AdmissionCall
from lamina.simulator.facade.field_problems import FieldProblems
from lamina.simulator.facade.kube_object import KubeObject, part, text, uid_of
from lamina.simulator.facade.object_fields import labels_of, mappings, object_name, with_labels
from lamina.simulator.facade.object_shapes import POD_TEMPLATE, WORKLOAD_SPEC, checked_shape
from lamina.simulator.facade.pod_defaults import default_claim_spec, default_pod_spec
from lamina.simulator.facade.pod_validation import validate_pod_spec
from lamina.simulator.facade.workload_selectors import check_selector

_QUARTER: Final = "25%"
_HISTORY: Final = 10
_BACKOFF: Final = 6
_PROGRESS_SECONDS: Final = 600
_UID_LABEL: Final = "batch.kubernetes.io/controller-uid"
_NAME_LABEL: Final = "batch.kubernetes.io/job-name"
_TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
# Versions in which a workload without a selector selects the labels of its template.
_DEFAULTS_SELECTOR: Final = frozenset({"extensions/v1beta1", "apps/v1beta1"})


def admit_deployment(deployment: KubeObject, call: AdmissionCall) -> KubeObject:
    """Return a Deployment with defaults."""
    spec, deployment = _workload_spec(deployment, call)
    spec.setdefault("replicas", 1)
    strategy = spec.setdefault("strategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", _QUARTER)
        rolling.setdefault("maxSurge", _QUARTER)
    spec.setdefault("revisionHistoryLimit", _HISTORY)
    spec.setdefault("progressDeadlineSeconds", _PROGRESS_SECONDS)
    _validate_replicas(spec, call.problems)
    return {**deployment, "spec": spec, "status": part(deployment, "status")}


def admit_replica_set(replica_set: KubeObject, call: AdmissionCall) -> KubeObject:
    """Return a ReplicaSet with defaults."""
    spec, replica_set = _workload_spec(replica_set, call)
    spec.setdefault("replicas", 1)
    _validate_replicas(spec, call.problems)
    return {**replica_set, "spec": spec, "status": part(replica_set, "status") or {"replicas": 0}}


def admit_stateful_set(stateful_set: KubeObject, call: AdmissionCall) -> KubeObject:
    """Return a StatefulSet with defaults."""
    spec, stateful_set = _workload_spec(stateful_set, call)
    spec.setdefault("replicas", 1)
    if not spec.get("podManagementPolicy"):
        spec["podManagementPolicy"] = "OrderedReady"
    strategy = spec.setdefault("updateStrategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        strategy.setdefault("rollingUpdate", {}).setdefault("partition", 0)
    spec.setdefault("revisionHistoryLimit", _HISTORY)
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    if isinstance(retention, dict):
        for name in ("whenDeleted", "whenScaled"):
            retention.setdefault(name, "Retain")
    for claim in mappings(spec, "volumeClaimTemplates"):
        claim.setdefault("kind", "PersistentVolumeClaim")
        claim.setdefault("apiVersion", "v1")
        default_claim_spec(claim.setdefault("spec", {}))
        claim.setdefault("status", {"phase": "Pending"})
    _validate_replicas(spec, call.problems)
    status = part(stateful_set, "status") or {"replicas": 0, "availableReplicas": 0}
    return {**stateful_set, "spec": spec, "status": status}


def admit_daemon_set(daemon_set: KubeObject, call: AdmissionCall) -> KubeObject:
    """Return a DaemonSet with defaults."""
    spec, daemon_set = _workload_spec(daemon_set, call)
    strategy = spec.setdefault("updateStrategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    spec.setdefault("revisionHistoryLimit", _HISTORY)
    # The real server does not ask for a selector here, only for one that matches.
    check_selector(spec, call.problems, may_be_missing=True)
    _validate_template(spec, call.problems)
    metadata = part(daemon_set, "metadata")
    annotations = {_TEMPLATE_GENERATION: "1", **part(metadata, "annotations")}
    counts = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")
    return {
        **daemon_set,
        "metadata": {**metadata, "annotations": annotations},
        "spec": spec,
        "status": part(daemon_set, "status") or dict.fromkeys(counts, 0),
    }


def admit_replication_controller(controller: KubeObject, call: AdmissionCall) -> KubeObject:
    """Return a ReplicationController with defaults; its selector is a map of labels."""
    shape = {"replicas": int, "template": POD_TEMPLATE}
    spec: KubeObject = checked_shape(controller.get("spec") or {}, shape, "ReplicationController", "v1")
    template = _default_template(spec)
    spec.setdefault("replicas", 1)
    labels = labels_of(template)
    if labels and not part(spec, "selector"):
        spec["selector"] = dict(labels)
    if labels and not labels_of(controller):
        controller = with_labels(controller, dict(labels))
    call.problems.check_not_negative("spec.replicas", spec.get("replicas"))
    if not part(spec, "selector"):
        call.problems.required("spec.selector")
    _validate_template(spec, call.problems)
    return {**controller, "spec": spec, "status": part(controller, "status") or {"replicas": 0}}


def admit_job(job: KubeObject, call: AdmissionCall) -> KubeObject:
    """Return a Job with defaults, a generated selector and the labels that connect it with its pods."""
    spec, job = _workload_spec(job, call)
    template = spec["template"]
    default_job_spec(spec)
    if spec["manualSelector"] is not True:
        uid, name = uid_of(job), object_name(job)
        generated = {_UID_LABEL: uid, _NAME_LABEL: name, "controller-uid": uid, "job-name": name}
        template["metadata"] = {
            **part(template, "metadata"),
            "labels": dict(sorted({**labels_of(template), **generated}.items())),
        }
        own = part(spec, "selector")
        spec["selector"] = {**own, "matchLabels": {**part(own, "matchLabels"), _UID_LABEL: uid}}
        if own:
            call.problems.invalid("spec.selector", spec["selector"], "`selector` not auto-generated")
    else:
        check_selector(spec, call.problems)
    if not labels_of(job):
        job = with_labels(job, dict(labels_of(template)))
    validate_job_spec(spec, "spec", call.problems)
    return {**job, "spec": spec, "status": part(job, "status")}


def default_job_spec(spec: KubeObject) -> None:
    """Fill in the defaults of a Job's spec."""
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 2**31 - 1 if "backoffLimitPerIndex" in spec else _BACKOFF)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")


def validate_job_spec(spec: KubeObject, path: str, problems: FieldProblems) -> None:
    """Report what the server refuses in a Job's spec."""
    for name in ("parallelism", "completions", "backoffLimit"):
        problems.check_not_negative(f"{path}.{name}", spec.get(name))
    problems.check_labels(f"{path}.template.labels", labels_of(part(spec, "template")))
    pod_spec = part(part(spec, "template"), "spec")
    validate_pod_spec(pod_spec, f"{path}.template.spec", problems)
    policy = text(pod_spec, "restartPolicy")
    if policy == "Always":
        problems.required(f"{path}.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')


def admit_cron_job(cron_job: KubeObject, call: AdmissionCall) -> KubeObject:
    """Return a CronJob with defaults."""
    shape = {"schedule": str, "jobTemplate": {"metadata": {}, "spec": WORKLOAD_SPEC}}
    spec: KubeObject = checked_shape(cron_job.get("spec") or {}, shape, "CronJob", call.api_version)
    if not spec.get("concurrencyPolicy"):
        spec["concurrencyPolicy"] = "Allow"
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    job = spec.setdefault("jobTemplate", {})
    job.setdefault("metadata", {})
    _default_template(job.setdefault("spec", {}))
    if not text(spec, "schedule"):
        call.problems.required("spec.schedule")
    validate_job_spec(job["spec"], "spec.jobTemplate.spec", call.problems)
    return {**cron_job, "spec": spec, "status": part(cron_job, "status")}


def _workload_spec(found: KubeObject, call: AdmissionCall) -> tuple[KubeObject, KubeObject]:
    """Return the spec with a default template, and the workload, with labels and selector that legacy versions add."""
    spec: KubeObject = checked_shape(found.get("spec") or {}, WORKLOAD_SPEC, call.type.kind, call.api_version)
    labels = labels_of(_default_template(spec))
    if call.api_version in _DEFAULTS_SELECTOR and labels:
        spec.setdefault("selector", {"matchLabels": dict(labels)})
        if not labels_of(found):
            found = with_labels(found, dict(labels))
    return spec, found


def _default_template(spec: KubeObject) -> KubeObject:
    template: KubeObject = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    default_pod_spec(template.setdefault("spec", {}), template=True)
    return template


def _validate_replicas(spec: KubeObject, problems: FieldProblems) -> None:
    problems.check_not_negative("spec.replicas", spec.get("replicas"))
    check_selector(spec, problems)
    _validate_template(spec, problems)


def _validate_template(spec: KubeObject, problems: FieldProblems) -> None:
    template: Any = part(spec, "template")
    problems.check_labels("spec.template.labels", labels_of(template))
    pod_spec = part(template, "spec")
    validate_pod_spec(pod_spec, "spec.template.spec", problems)
    policy = text(pod_spec, "restartPolicy")
    if policy in ("OnFailure", "Never"):
        problems.unsupported("spec.template.spec.restartPolicy", policy, ("Always",))
