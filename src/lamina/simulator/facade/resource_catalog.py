"""
The built-in resources: names, short names, categories and subresources as Kubernetes 1.36 has them.

Legacy versions are those that Kubernetes removed and that old schedulers still ask for. No live cluster of 1.25 or
newer serves them.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from lamina.simulator.facade.resource_type import CREATE_ONLY, STANDARD_VERBS, ResourceType, ScalePaths

_ALL: Final = ("all",)
_EXTENSIONS: Final = ("api-extensions",)
_STATUS: Final = ("status",)
_SCALE: Final = ("scale", "status")
_EXTENSIONS_V1BETA1: Final = (("extensions", "v1beta1"),)
_NO_COLLECTION_DELETE: Final = tuple(verb for verb in STANDARD_VERBS if verb != "deletecollection")


def _define(  # noqa: PLR0913 - one row of a table
    kind: str,
    resource: str,
    short_names: str = "",
    *,
    namespaced: bool = True,
    categories: tuple[str, ...] = (),
    subresources: tuple[str, ...] = (),
    verbs: tuple[str, ...] = STANDARD_VERBS,
    versions: tuple[str, ...] = ("v1",),
    views: tuple[tuple[str, str], ...] = (),
) -> ResourceType:
    """Return a type without its group, which `built_in_types` adds."""
    return ResourceType(
        group="",
        version=versions[0],
        resource=resource,
        kind=kind,
        namespaced=namespaced,
        singular=kind.lower(),
        list_kind=f"{kind}List",
        versions=versions,
        views=views,
        short_names=tuple(short_names.split()),
        categories=categories,
        subresources=subresources,
        verbs=verbs,
        scale=ScalePaths() if "scale" in subresources else None,
    )


_CORE: Final = (
    _define("Binding", "bindings", verbs=CREATE_ONLY),
    _define("ConfigMap", "configmaps", "cm"),
    _define("Endpoints", "endpoints", "ep"),
    _define("Event", "events", "ev"),
    _define("LimitRange", "limitranges", "limits"),
    _define(
        "Namespace",
        "namespaces",
        "ns",
        namespaced=False,
        subresources=("finalize", "status"),
        verbs=_NO_COLLECTION_DELETE,
    ),
    _define("Node", "nodes", "no", namespaced=False, subresources=_STATUS),
    _define("PersistentVolumeClaim", "persistentvolumeclaims", "pvc", subresources=_STATUS),
    _define("PersistentVolume", "persistentvolumes", "pv", namespaced=False, subresources=_STATUS),
    _define("Pod", "pods", "po", categories=_ALL, subresources=("binding", "eviction", "status")),
    _define("PodTemplate", "podtemplates"),
    _define("ReplicationController", "replicationcontrollers", "rc", categories=_ALL, subresources=_SCALE),
    _define("ResourceQuota", "resourcequotas", "quota", subresources=_STATUS),
    _define("Secret", "secrets"),
    _define("ServiceAccount", "serviceaccounts", "sa"),
    _define("Service", "services", "svc", categories=_ALL, subresources=_STATUS),
)
_APPS_VERSIONS: Final = ("v1", "v1beta2", "v1beta1")
_APPS: Final = (
    _define("ControllerRevision", "controllerrevisions", versions=_APPS_VERSIONS),
    _define(
        "DaemonSet",
        "daemonsets",
        "ds",
        categories=_ALL,
        subresources=_STATUS,
        versions=("v1", "v1beta2"),
        views=_EXTENSIONS_V1BETA1,
    ),
    _define(
        "Deployment",
        "deployments",
        "deploy",
        categories=_ALL,
        subresources=_SCALE,
        versions=_APPS_VERSIONS,
        views=_EXTENSIONS_V1BETA1,
    ),
    _define(
        "ReplicaSet",
        "replicasets",
        "rs",
        categories=_ALL,
        subresources=_SCALE,
        versions=("v1", "v1beta2"),
        views=_EXTENSIONS_V1BETA1,
    ),
    _define("StatefulSet", "statefulsets", "sts", categories=_ALL, subresources=_SCALE, versions=_APPS_VERSIONS),
)
_V1_V1BETA1: Final = ("v1", "v1beta1")
_SCHEDULING_VERSIONS: Final = ("v1", "v1beta1", "v1alpha1")
_RESOURCE_VERSIONS: Final = ("v1", "v1beta2", "v1beta1")
_NETWORKING: Final = (
    _define("IngressClass", "ingressclasses", namespaced=False, versions=_V1_V1BETA1),
    _define("Ingress", "ingresses", "ing", subresources=_STATUS, versions=_V1_V1BETA1, views=_EXTENSIONS_V1BETA1),
    _define("NetworkPolicy", "networkpolicies", "netpol", views=_EXTENSIONS_V1BETA1),
)
_RBAC: Final = (
    _define("ClusterRoleBinding", "clusterrolebindings", namespaced=False, versions=_V1_V1BETA1),
    _define("ClusterRole", "clusterroles", namespaced=False, versions=_V1_V1BETA1),
    _define("RoleBinding", "rolebindings", versions=_V1_V1BETA1),
    _define("Role", "roles", versions=_V1_V1BETA1),
)
_STORAGE: Final = (
    _define("CSIDriver", "csidrivers", namespaced=False, versions=_V1_V1BETA1),
    _define("CSINode", "csinodes", namespaced=False, versions=_V1_V1BETA1),
    _define("CSIStorageCapacity", "csistoragecapacities", versions=_V1_V1BETA1),
    _define("StorageClass", "storageclasses", "sc", namespaced=False, versions=_V1_V1BETA1),
    _define("VolumeAttachment", "volumeattachments", namespaced=False, subresources=_STATUS, versions=_V1_V1BETA1),
    _define("VolumeAttributesClass", "volumeattributesclasses", "vac", namespaced=False, versions=_V1_V1BETA1),
)
_ADMISSION: Final = tuple(
    _define(kind, resource, namespaced=False, categories=_EXTENSIONS)
    for kind, resource in (
        ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
        ("ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
        ("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
        ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
    )
)
_RESOURCE: Final = (
    _define("DeviceClass", "deviceclasses", namespaced=False, versions=_RESOURCE_VERSIONS),
    # kube-scheduler 1.37 waits for this list; 1.36 serves it as v1beta2 only.
    _define("DeviceTaintRule", "devicetaintrules", namespaced=False, subresources=_STATUS, versions=("v1", "v1beta2")),
    _define("ResourceClaim", "resourceclaims", subresources=_STATUS, versions=_RESOURCE_VERSIONS),
    _define("ResourceClaimTemplate", "resourceclaimtemplates", versions=_RESOURCE_VERSIONS),
    _define("ResourceSlice", "resourceslices", namespaced=False, versions=_RESOURCE_VERSIONS),
)
_BATCH: Final = (
    _define("CronJob", "cronjobs", "cj", categories=_ALL, subresources=_STATUS, versions=_V1_V1BETA1),
    _define("Job", "jobs", categories=_ALL, subresources=_STATUS),
)
_AUTHENTICATION: Final = (
    _define("SelfSubjectReview", "selfsubjectreviews", namespaced=False, verbs=CREATE_ONLY),
    _define("TokenReview", "tokenreviews", namespaced=False, verbs=CREATE_ONLY),
)
_AUTHORIZATION: Final = (
    _define("LocalSubjectAccessReview", "localsubjectaccessreviews", verbs=CREATE_ONLY),
    _define("SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False, verbs=CREATE_ONLY),
    _define("SelfSubjectRulesReview", "selfsubjectrulesreviews", namespaced=False, verbs=CREATE_ONLY),
    _define("SubjectAccessReview", "subjectaccessreviews", namespaced=False, verbs=CREATE_ONLY),
)
_CUSTOM_RESOURCE_DEFINITION: Final = _define(
    "CustomResourceDefinition",
    "customresourcedefinitions",
    "crd crds",
    namespaced=False,
    categories=_EXTENSIONS,
    subresources=_STATUS,
    versions=_V1_V1BETA1,
)
_HORIZONTAL_POD_AUTOSCALER: Final = _define(
    "HorizontalPodAutoscaler",
    "horizontalpodautoscalers",
    "hpa",
    categories=_ALL,
    subresources=_STATUS,
    versions=("v2", "v1"),
)
_CERTIFICATE_SIGNING_REQUEST: Final = _define(
    "CertificateSigningRequest", "certificatesigningrequests", "csr", namespaced=False, subresources=_STATUS
)
_API_SERVICE: Final = _define(
    "APIService", "apiservices", namespaced=False, categories=_EXTENSIONS, subresources=_STATUS
)
_POD_DISRUPTION_BUDGET: Final = _define(
    "PodDisruptionBudget", "poddisruptionbudgets", "pdb", subresources=_STATUS, versions=_V1_V1BETA1
)
_PRIORITY_CLASS: Final = _define(
    "PriorityClass", "priorityclasses", "pc", namespaced=False, versions=_SCHEDULING_VERSIONS
)
_RUNTIME_CLASS: Final = _define("RuntimeClass", "runtimeclasses", namespaced=False, versions=_V1_V1BETA1)

# In the order of the real server's /apis, which decides which group kubectl prefers for a plural name.
_GROUPS: Final = (
    ("", _CORE),
    ("apiregistration.k8s.io", (_API_SERVICE,)),
    ("apps", _APPS),
    ("events.k8s.io", (_define("Event", "events", "ev", versions=_V1_V1BETA1),)),
    ("authentication.k8s.io", _AUTHENTICATION),
    ("authorization.k8s.io", _AUTHORIZATION),
    ("autoscaling", (_HORIZONTAL_POD_AUTOSCALER,)),
    ("batch", _BATCH),
    ("certificates.k8s.io", (_CERTIFICATE_SIGNING_REQUEST,)),
    ("networking.k8s.io", _NETWORKING),
    ("policy", (_POD_DISRUPTION_BUDGET,)),
    ("rbac.authorization.k8s.io", _RBAC),
    ("storage.k8s.io", _STORAGE),
    ("admissionregistration.k8s.io", _ADMISSION),
    ("apiextensions.k8s.io", (_CUSTOM_RESOURCE_DEFINITION,)),
    ("scheduling.k8s.io", (_PRIORITY_CLASS,)),
    ("coordination.k8s.io", (_define("Lease", "leases", versions=_V1_V1BETA1),)),
    ("node.k8s.io", (_RUNTIME_CLASS,)),
    ("discovery.k8s.io", (_define("EndpointSlice", "endpointslices", versions=_V1_V1BETA1),)),
    ("resource.k8s.io", _RESOURCE),
)
# Versions that Kubernetes 1.36 serves; all others are legacy.
_CURRENT: Final = frozenset({"v1", "v2"})


def built_in_types(*, legacy: bool = True) -> Iterator[ResourceType]:
    """Yield the built-in types in the order of discovery; without *legacy*, only the versions of Kubernetes 1.36."""
    for group, types in _GROUPS:
        for found in types:
            versions = found.versions if legacy else tuple(each for each in found.versions if each in _CURRENT)
            views = found.views if legacy else ()
            yield msgspec.structs.replace(found, group=group, versions=versions, views=views)
