"""
Verbs that write: create and update, also of the subresource ``status``.

    request --decode--> check identity --admission--> store.put --> the cluster reacts (`ClusterInputs`)

What a client writes is stored as it was sent, with the server's defaults. Pods, nodes and workloads then act on the
simulated cluster; every other resource is only kept.
"""

from collections.abc import Callable, Collection
from typing import Final

from lamina.simulator.facade.admission import AdmissionContext, admit_create, admit_update
from lamina.simulator.facade.api_errors import (
    StatusError,
    already_exists,
    conflict,
    internal_error,
    invalid,
    not_found,
)
from lamina.simulator.facade.api_messages import ApiRequest, decode_object
from lamina.simulator.facade.api_paths import ResourcePath
from lamina.simulator.facade.api_state import ApiState
from lamina.simulator.facade.kube_object import KubeObject, NamespacedName, copy_object, part, text, uid_of
from lamina.simulator.facade.object_identity import (
    check_name,
    identified_object,
    require_name,
    require_version,
    uid_conflict,
)
from lamina.simulator.facade.object_store import ObjectVersion, is_unchanged, with_revision
from lamina.simulator.facade.patches.server_side_apply import record_update
from lamina.simulator.facade.pod_admission import add_default_tolerations
from lamina.simulator.facade.pod_defaults import default_pod_spec
from lamina.simulator.facade.resource_type import ResourceType
from lamina.simulator.facade.value_validation import FIXED_METADATA, validate_status, validate_update, validate_values
from lamina.simulator.facade.write_options import WriteOptions, write_options

MODIFIED: Final = "the object has been modified; please apply your changes to the latest version and try again"
CREATE_ON_UPDATE: Final = frozenset({"leases", "endpoints", "events", "services", "limitranges"})
"""Resources that a PUT may create."""
FORBIDDEN: Final = 403
LONGEST_PREFIX: Final = 58
"""Most characters of ``generateName`` that a generated name keeps."""
WORKLOADS: Final = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job"})
KEEPS_STATUS: Final = frozenset({"Node", "Event", "Lease"})
"""Kinds whose status a create may set; for others with a status subresource the server starts an empty one."""
SERVER_METADATA: Final = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds")
"""Metadata that an update cannot change."""
NOT_BY_STATUS: Final = {"Pod": ("ownerReferences",), "Deployment": ("labels",)}
"""Metadata that a write of the subresource ``status`` cannot change, by kind."""


class WriteVerbs:
    """Handles create and update of any resource."""

    def __init__(self, state: ApiState, finish: Callable[[ResourceType, ObjectVersion], None]) -> None:
        """Write to *state*; *finish* removes an object that was waiting for its last finalizer."""
        self._state = state
        self._finish = finish
        self._context = AdmissionContext(
            now=lambda: state.now,
            priority_class=state.priority_class,
            default_priority_class=state.default_priority_class,
            namespace_exists=state.namespace_exists,
        )

    # -- create ------------------------------------------------------------------------------------------------------

    def create(self, type_: ResourceType, path: ResourcePath, request: ApiRequest) -> KubeObject:
        """Create an object; return it as stored."""
        return self.create_object(type_, path, decode_object(request), write_options(path, request))

    def create_object(
        self, type_: ResourceType, path: ResourcePath, found: KubeObject, options: WriteOptions
    ) -> KubeObject:
        """Create *found*, which the caller may not use afterwards."""
        state = self._state
        found = identified_object(type_, path, found, options)
        if not options.applied:
            found["metadata"].pop("managedFields", None)
        if type_.namespaced and not state.namespace_exists(path.namespace):
            raise not_found("namespaces", "", path.namespace)
        metadata = self._new_metadata(type_, found)
        found["metadata"] = metadata
        if "status" in type_.subresources and type_.kind not in KEEPS_STATUS:
            found = _without(found, ("status",)) if type_.custom else {**found, "status": {}}
        found = admit_create(type_, found, self._context, api_version=options.api_version)
        validate_values(type_, found, new=True)
        if metadata.get("resourceVersion") and not options.dry_run:
            raise internal_error("resourceVersion should not be set on objects to be created")
        key = NamespacedName(path.namespace, metadata["name"])
        table = state.table(type_)
        present = table.get(key)
        if present is not None:
            deleting = bool(present.object["metadata"].get("deletionTimestamp"))
            raise already_exists(type_.resource, type_.group, key.name, deleting=deleting)
        if options.dry_run:
            return found
        # The cluster refuses what it cannot read, so it is asked before the object is stored.
        self._react(type_, found, new=True)
        return state.store.put(table, key, found).object

    def _nameless(self, type_: ResourceType, found: KubeObject) -> StatusError:
        """Return the error for an object without a name; admission's refusals come first."""
        try:
            admit_create(type_, {**found, "metadata": {**found["metadata"], "name": "unknown"}}, self._context)
        except StatusError as error:
            if error.code == FORBIDDEN:
                return error
        problem = ("FieldValueRequired", "Required value: name or generateName is required", "metadata.name")
        return invalid(type_.kind, type_.group, "", [problem])

    def _new_metadata(self, type_: ResourceType, found: KubeObject) -> KubeObject:
        """Return the metadata of a new object: with a name, a uid and a time."""
        state, metadata = self._state, dict(found["metadata"])
        if not metadata.get("name"):
            prefix = text(metadata, "generateName")
            if not prefix:
                raise self._nameless(type_, found)
            metadata["name"] = prefix[:LONGEST_PREFIX] + state.name_suffix()
        for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
            metadata.pop(name, None)
        metadata.update(uid=state.uid(), creationTimestamp=state.timestamp())
        return metadata

    # -- update ------------------------------------------------------------------------------------------------------

    def update(self, type_: ResourceType, path: ResourcePath, request: ApiRequest) -> tuple[int, KubeObject]:
        """Replace an object, or only its status; return the HTTP status and the stored object."""
        options = write_options(path, request)
        found = identified_object(type_, path, decode_object(request), options)
        metadata = found["metadata"]
        require_name(path, metadata)
        old = self._state.table(type_).get(NamespacedName(path.namespace, path.name))
        if old is not None:
            if metadata.get("uid") and metadata["uid"] != uid_of(old.object):
                raise uid_conflict(type_, path.name, metadata["uid"], uid_of(old.object))
            return 200, self.replace(type_, path, old, found, options)
        if type_.resource not in CREATE_ON_UPDATE or path.subresource:
            raise not_found(type_.resource, type_.group, path.name)
        if metadata.get("uid"):
            raise uid_conflict(type_, path.name, metadata["uid"], "")
        found["metadata"] = {name: value for name, value in metadata.items() if name != "resourceVersion"}
        return 201, self.create_object(type_, path, found, options)

    def replace(
        self, type_: ResourceType, path: ResourcePath, old: ObjectVersion, found: KubeObject, options: WriteOptions
    ) -> KubeObject:
        """Store a new version of *old*, which `identified_object` returned; return it as stored."""
        metadata = found["metadata"]
        check_name(path, metadata)
        require_version(type_, path, metadata)
        revision = metadata.get("resourceVersion")
        if revision and str(revision) != str(old.revision):
            raise conflict(type_.resource, type_.group, path.name, MODIFIED)
        if path.subresource == "status" and type_.kind == "Pod":
            metadata = _without(metadata, FIXED_METADATA)
        validate_update(type_, old.object, {**found, "metadata": metadata})
        found["metadata"] = {**_without(metadata, SERVER_METADATA), **_only(old.object["metadata"], SERVER_METADATA)}
        if path.subresource == "status":
            found = _with_status(type_, old.object, found)
            validate_status(type_, old.object, found)
        else:
            if "status" in type_.subresources:
                found = _with_field(found, "status", old.object)
            if not is_unchanged(old.object, found):
                found = admit_update(type_, _with_defaults(type_, old.object), found)
                validate_values(type_, found, new=False)
        if not options.applied:
            found = self._managed(old.object, found, path, options)
        if options.dry_run:
            return with_revision(found, old.revision)
        return self._stored(type_, old, found)

    def _managed(self, old: KubeObject, found: KubeObject, path: ResourcePath, options: WriteOptions) -> KubeObject:
        """Return the new version with managedFields; only objects that a client applied once have them."""
        if "managedFields" not in old["metadata"]:
            return {**found, "metadata": _without(found["metadata"], ("managedFields",))}
        now = self._state.timestamp()
        return record_update(old, found, manager=options.manager, now=now, subresource=path.subresource)

    def _stored(self, type_: ResourceType, old: ObjectVersion, found: KubeObject) -> KubeObject:
        before = old.object["metadata"]
        if before.get("deletionGracePeriodSeconds") == 0 and not found["metadata"].get("finalizers"):
            # Its last finalizer is gone: it is deleted and not stored again.
            self._finish(type_, old)
            return with_revision(found, old.revision)
        if not is_unchanged(old.object, found):
            # Before it is stored, because the cluster refuses what it cannot read.
            self._react(type_, found, new=False)
        return self._state.store.put(self._state.table(type_), old.key, found).object

    # -- both --------------------------------------------------------------------------------------------------------

    def _react(self, type_: ResourceType, found: KubeObject, *, new: bool) -> None:
        """Let the cluster react to what a client wrote."""
        inputs = self._state.inputs
        kind = "" if type_.custom else type_.kind
        if kind == "Pod":
            if new:
                inputs.pod_created(found)
            elif (message := refusal_message(found)) is not None:
                inputs.pod_refused(found, message)
        elif kind == "Node":
            inputs.node_written(found)
        elif kind in WORKLOADS:
            inputs.workload_written(found)
        elif kind == "CustomResourceDefinition":
            self._state.types.add_custom(found)


def refusal_message(pod: KubeObject) -> str | None:
    """Return the message of the condition PodScheduled=False; None if the pod has no such condition."""
    if part(pod, "spec").get("nodeName"):
        return None
    for condition in part(pod, "status").get("conditions") or ():
        if isinstance(condition, dict) and condition.get("type") == "PodScheduled":
            return text(condition, "message") if condition.get("status") == "False" else None
    return None


def _with_defaults(type_: ResourceType, old: KubeObject) -> KubeObject:
    """Return a stored object with the server's defaults, which pods of the scenario do not have."""
    if type_.custom or type_.kind != "Pod":
        return old
    spec = copy_object(part(old, "spec"))
    default_pod_spec(spec)
    add_default_tolerations(spec)
    return {**old, "spec": spec}


def _with_status(type_: ResourceType, old: KubeObject, new: KubeObject) -> KubeObject:
    """Return *old* with the status of *new*, and with those metadata that a write of the status may change."""
    if type_.custom:
        return _with_field(old, "status", new)
    kept = NOT_BY_STATUS.get(type_.kind, ())
    metadata = {**_without(new["metadata"], kept), **_only(old["metadata"], kept)}
    return _with_field({**old, "metadata": metadata}, "status", new)


def _with_field(found: KubeObject, name: str, source: KubeObject) -> KubeObject:
    """Return *found* with the field *name* of *source*, or without it."""
    kept = {key: value for key, value in found.items() if key != name}
    if name in source:
        kept[name] = source[name]
    return kept


def _only(found: KubeObject, names: Collection[str]) -> KubeObject:
    return {name: value for name, value in found.items() if name in names}


def _without(found: KubeObject, names: Collection[str]) -> KubeObject:
    return {name: value for name, value in found.items() if name not in names}
