"""
Admission: what the API server does with an object between reading it and storing it.

    create:  check name and labels -> defaults and checks of the kind -> generation 1
    update:  defaults of the kind -> check immutable fields -> count the generation up if the spec changed

Objects of kinds without rules here pass unchanged. The functions return new objects and change none.
"""

from collections.abc import Callable
from typing import Final

from lamina.simulator.facade.admission_call import AdmissionCall, AdmissionContext
from lamina.simulator.facade.api_errors import bad_request
from lamina.simulator.facade.canonical_quantities import QuantityFormError
from lamina.simulator.facade.cluster_object_admission import (
    admit_disruption_budget,
    admit_namespace,
    admit_node,
    admit_priority_class,
    admit_resource_claim,
    admit_secret,
    admit_service,
    admit_storage_class,
    admit_volume,
    admit_volume_claim,
)
from lamina.simulator.facade.custom_resource_types import admit_definition
from lamina.simulator.facade.field_problems import FieldProblems
from lamina.simulator.facade.kube_object import KubeObject, part
from lamina.simulator.facade.label_rules import label_key_problems
from lamina.simulator.facade.name_rules import object_name_problems
from lamina.simulator.facade.object_fields import object_name
from lamina.simulator.facade.object_updates import check_update
from lamina.simulator.facade.pod_admission import admit_pod
from lamina.simulator.facade.pod_updates import significant
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

MAX_ANNOTATION_BYTES: Final = 256 * 1024
"""Size of all annotations of an object."""

_CREATE: Final[dict[tuple[str, str], Callable[[KubeObject, AdmissionCall], KubeObject]]] = {
    ("", "pods"): admit_pod,
    ("", "namespaces"): admit_namespace,
    ("", "nodes"): admit_node,
    ("", "services"): admit_service,
    ("", "secrets"): admit_secret,
    ("", "persistentvolumeclaims"): admit_volume_claim,
    ("", "persistentvolumes"): admit_volume,
    ("", "replicationcontrollers"): admit_replication_controller,
    ("apps", "deployments"): admit_deployment,
    ("apps", "replicasets"): admit_replica_set,
    ("apps", "statefulsets"): admit_stateful_set,
    ("apps", "daemonsets"): admit_daemon_set,
    ("batch", "jobs"): admit_job,
    ("batch", "cronjobs"): admit_cron_job,
    ("policy", "poddisruptionbudgets"): admit_disruption_budget,
    ("scheduling.k8s.io", "priorityclasses"): admit_priority_class,
    ("storage.k8s.io", "storageclasses"): admit_storage_class,
    ("resource.k8s.io", "resourceclaims"): admit_resource_claim,
    ("resource.k8s.io", "resourceclaimtemplates"): admit_resource_claim,
    ("apiextensions.k8s.io", "customresourcedefinitions"): lambda found, _: admit_definition(found),
}
# Built-in resources whose objects have a generation; custom resources all have one.
_WITH_GENERATION: Final = frozenset(
    {
        *(("", name) for name in ("pods", "podtemplates", "replicationcontrollers")),
        *(("apps", name) for name in ("deployments", "replicasets", "statefulsets", "daemonsets")),
        *(("batch", name) for name in ("jobs", "cronjobs")),
        *(("networking.k8s.io", name) for name in ("ingresses", "networkpolicies", "ingressclasses")),
        ("policy", "poddisruptionbudgets"),
        ("scheduling.k8s.io", "priorityclasses"),
        ("apiextensions.k8s.io", "customresourcedefinitions"),
        ("discovery.k8s.io", "endpointslices"),
        *(
            ("admissionregistration.k8s.io", name)
            for name in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
        ),
    }
)
# The generation of these counts changes of annotations too.
_COUNTS_ANNOTATIONS: Final = frozenset({("apps", "deployments")})

__all__ = ["AdmissionContext", "admit_create", "admit_update"]


def admit_create(
    type_: ResourceType, found: KubeObject, context: AdmissionContext, *, api_version: str = ""
) -> KubeObject:
    """
    Return a new object as the server stores it: with defaults, checked, and with generation 1.

    The object has its name and its uid already. *api_version* is the one of the request's path, if it is a legacy
    view with other defaults. Raises StatusError: 400 for a field of the wrong type, 403 for an unknown priority class,
    422 for values that are not allowed.
    """
    problems = FieldProblems()
    _check_metadata(type_, found, problems, new=True)
    handler = None if type_.custom else _CREATE.get((type_.group, type_.resource))
    if handler is not None:
        call = AdmissionCall(type_, context, problems, api_version or type_.api_version)
        try:
            found = handler(found, call)
        except QuantityFormError as error:
            raise _unreadable(type_, error) from error
    problems.raise_for(type_, object_name(found))
    if _has_generation(type_):
        found = {**found, "metadata": {**part(found, "metadata"), "generation": 1}}
    return found


def admit_update(type_: ResourceType, old: KubeObject, new: KubeObject) -> KubeObject:
    """
    Return the new version of an object as the server stores it; *old* is the stored one.

    Raises StatusError 422 if a field changes that may not change. Updates of the subresource ``status`` do not pass here.
    """
    problems = FieldProblems()
    _check_metadata(type_, new, problems, new=False)
    if not type_.custom:
        try:
            new = check_update(type_, old, new, problems)
        except QuantityFormError as error:
            raise _unreadable(type_, error) from error
    problems.raise_for(type_, object_name(new))
    if not _has_generation(type_):
        return new
    generation = part(old, "metadata").get("generation", 1)
    changed = _desired(type_, old) != _desired(type_, new)
    metadata = {**part(new, "metadata"), "generation": generation + 1 if changed else generation}
    return {**new, "metadata": metadata}


def _unreadable(type_: ResourceType, error: QuantityFormError) -> Exception:
    words = f'{type_.kind} in version "{type_.version}" cannot be handled as a {type_.kind}: {error}'
    return bad_request(words)


def _has_generation(type_: ResourceType) -> bool:
    return type_.custom or (type_.group, type_.resource) in _WITH_GENERATION


def _desired(type_: ResourceType, found: KubeObject) -> object:
    """Return the part of an object that its generation counts the changes of."""
    if type_.custom:
        ignored = {"metadata", "status"} if "status" in type_.subresources else {"metadata"}
        return {name: value for name, value in found.items() if name not in ignored}
    annotations = {}
    if (type_.group, type_.resource) in _COUNTS_ANNOTATIONS:
        annotations = part(part(found, "metadata"), "annotations")
    # An annotation with an empty value is not the same as a missing one.
    return significant(part(found, "spec")), annotations


def _check_metadata(type_: ResourceType, found: KubeObject, problems: FieldProblems, *, new: bool) -> None:
    metadata = part(found, "metadata")
    if new:
        name = object_name(found)
        for problem in object_name_problems(type_, name):
            problems.invalid("metadata.name", name, problem)
    problems.check_labels("metadata.labels", part(metadata, "labels"))
    annotations = part(metadata, "annotations")
    for key in annotations:
        for problem in label_key_problems(key.lower()):
            problems.invalid("metadata.annotations", key, problem)
    if sum(len(key) + len(str(value)) for key, value in annotations.items()) > MAX_ANNOTATION_BYTES:
        words = f"Too long: may not be more than {MAX_ANNOTATION_BYTES} bytes"
        problems.invalid("metadata.annotations", "", words)
