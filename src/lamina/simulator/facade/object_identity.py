"""
Whether the object that a client sent is the one that its path names: kind, namespace, name, uid and version.

Every object of a request passes `identified_object` first, which also gives it the form of its type.
"""

from typing import Final

from lamina.simulator.facade.api_errors import StatusError, bad_request, conflict, invalid
from lamina.simulator.facade.api_paths import ResourcePath
from lamina.simulator.facade.kube_object import KubeObject, part
from lamina.simulator.facade.paired_fields import with_paired_fields
from lamina.simulator.facade.resource_type import ResourceType
from lamina.simulator.facade.typed_objects import typed_object
from lamina.simulator.facade.write_options import WriteOptions

NEEDS_VERSION: Final = frozenset(
    {
        "leases",
        "poddisruptionbudgets",
        "csidrivers",
        "csinodes",
        "csistoragecapacities",
        "volumeattachments",
        "runtimeclasses",
        "customresourcedefinitions",
    }
)
"""Resources whose PUT must name a resource version; so must that of custom resources."""


def identified_object(type_: ResourceType, path: ResourcePath, found: KubeObject, options: WriteOptions) -> KubeObject:
    """Return a copy in the storage version and in the form of its type, after checking that the path names it."""
    kind = found.get("kind")
    if kind and kind != type_.kind:
        raise bad_request(f'{kind} in version "{found.get("apiVersion")}" cannot be handled as a {type_.kind}')
    return located_object(type_, path, shaped_object(type_, found, options))


def shaped_object(type_: ResourceType, found: KubeObject, options: WriteOptions) -> KubeObject:
    """Return an object in the form of its type. Raises StatusError 400 for a value of the wrong type."""
    if not type_.custom:
        return typed_object(found, type_.api_version, type_.kind, strict=options.strict)
    shaped = typed_object({"metadata": found.get("metadata") or {}}, "meta.k8s.io/v1", "PartialObjectMetadata")
    return {**found, "kind": type_.kind, "apiVersion": type_.api_version, "metadata": part(shaped, "metadata")}


def located_object(type_: ResourceType, path: ResourcePath, found: KubeObject) -> KubeObject:
    """Return an object with the namespace of its path, and new metadata. Raises StatusError 400 if it has another one."""
    metadata = dict(part(found, "metadata"))
    if type_.namespaced:
        if (metadata.get("namespace") or path.namespace) != path.namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        metadata["namespace"] = path.namespace
    else:
        metadata.pop("namespace", None)
    return {**with_paired_fields(type_, found), "metadata": metadata}


def require_name(path: ResourcePath, metadata: KubeObject) -> None:
    """Raise StatusError 400 if an object has no name, or another one than its path."""
    if not metadata.get("name"):
        raise bad_request(
            f"the name of the object ({path.name} based on URL) was undeterminable: name must be provided"
        )
    check_name(path, metadata)


def check_name(path: ResourcePath, metadata: KubeObject) -> None:
    """Raise StatusError 400 if an object has another name than its path."""
    name = metadata.get("name", path.name)
    if name != path.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({path.name})")


def require_version(type_: ResourceType, path: ResourcePath, metadata: KubeObject) -> None:
    """Raise StatusError 422 if an update of this resource must name a resource version and does not."""
    if (type_.custom or type_.resource in NEEDS_VERSION) and not metadata.get("resourceVersion"):
        words = "Invalid value: 0: must be specified for an update"
        problem = ("FieldValueInvalid", words, "metadata.resourceVersion")
        raise invalid(type_.resource, type_.group, path.name, [problem])


def uid_conflict(type_: ResourceType, name: str, wanted: str, current: str) -> StatusError:
    """Return the error for a write that expects another uid."""
    why = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {current}"
    return conflict(type_.resource, type_.group, name, why)
