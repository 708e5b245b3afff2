"""
Deletion: grace periods of pods, finalizers, dependents, namespaces and collections.

    DELETE of a bound pod --> MODIFIED with deletionTimestamp --> kubelet stops it --> DELETED, by the cluster
    DELETE of another pod, or with a grace period of 0 --> MODIFIED with deletionTimestamp --> DELETED at once
    DELETE of anything else --> DELETED at once, or MODIFIED while it has finalizers

Watches always see both steps of a pod's deletion, as on a real server. A bound pod whose own grace period is 0 is also
removed by the cluster, at the same virtual time, after all schedulers have settled. On a real server a scheduler may see
the end of a victim before it has finished its preemption, which is a race in kube-scheduler.
"""

from collections.abc import Iterator
from typing import Final

from lamina.simulator.facade.api_errors import bad_request, conflict, not_found, success
from lamina.simulator.facade.api_messages import ApiRequest, decode_object
from lamina.simulator.facade.api_paths import ResourcePath
from lamina.simulator.facade.api_state import ApiState, shifted_timestamp
from lamina.simulator.facade.kube_object import KubeObject, NamespacedName, part, uid_of
from lamina.simulator.facade.object_store import ObjectVersion
from lamina.simulator.facade.read_verbs import selection_of
from lamina.simulator.facade.resource_type import ResourceType
from lamina.simulator.facade.response_form import form_of
from lamina.simulator.facade.watches import selected
from lamina.simulator.facade.write_options import is_dry_run
from lamina.simulator.facade.write_verbs import WORKLOADS

DEFAULT_GRACE: Final = 30
RETURNED: Final = frozenset(
    {
        "pods",
        "services",
        "serviceaccounts",
        "podtemplates",
        "resourcequotas",
        "persistentvolumes",
        "persistentvolumeclaims",
        "storageclasses",
        "volumeattachments",
        "csinodes",
        "csidrivers",
    }
)
"""Resources whose deletion is answered with the object instead of a Status."""
ENDED: Final = frozenset({"Succeeded", "Failed"})
NO_DEPENDENTS: Final = frozenset({"Pod", "Event", "Lease", "Endpoints", "EndpointSlice", "ConfigMap", "Secret"})
"""Kinds that own nothing, so that their deletion needs no search for dependents."""


class Deletion:
    """Handles delete and deletecollection of any resource."""

    def __init__(self, state: ApiState) -> None:
        """Delete from *state*."""
        self._state = state

    def delete(self, type_: ResourceType, path: ResourcePath, request: ApiRequest) -> tuple[int, KubeObject]:
        """Delete one object; return the HTTP status and the answer."""
        options = _options(request)
        found = self._state.table(type_).get(NamespacedName(path.namespace, path.name))
        if found is None:
            raise not_found(type_.resource, type_.group, path.name)
        _check_preconditions(type_, found, options)
        if is_dry_run(options.get("dryRun")):
            return 200, self._tried(type_, found, options)
        last = self.remove(type_, found, options)
        return 200, last.object if last is not None else self._answer(type_, found, found.object)

    def _tried(self, type_: ResourceType, found: ObjectVersion, options: KubeObject) -> KubeObject:
        """Return the answer to a deletion that is not performed."""
        if type_.kind == "Pod" and not type_.custom:
            grace = _grace(found.object, options)
            return found.object if grace is None else _marked(found.object, grace, self._state)
        metadata = found.object["metadata"]
        if metadata.get("finalizers"):
            return found.object if metadata.get("deletionTimestamp") else _marked(found.object, 0, self._state)
        return self._answer(type_, found, found.object)

    def _answer(self, type_: ResourceType, found: ObjectVersion, last: KubeObject) -> KubeObject:
        """Return the answer to the deletion of an object that is gone: its last state, or only its name."""
        if type_.resource in RETURNED and not type_.custom:
            return last
        details = {"name": found.key.name, "group": type_.group, "kind": type_.resource, "uid": uid_of(last)}
        return success({name: value for name, value in details.items() if value})

    def delete_collection(self, type_: ResourceType, path: ResourcePath, request: ApiRequest) -> KubeObject:
        """Delete the selected objects; return them as a list."""
        options = _options(request)
        selection = selection_of(type_, path, request.parameters())
        found = list(selected(self._state.table(type_), selection))
        if not is_dry_run(options.get("dryRun")):
            for one in found:
                self.remove(type_, one, options)
        metadata = {"resourceVersion": str(self._state.store.revision)}
        return form_of(type_, path.group, path.version, request, self._state.now).many(
            [one.object for one in found], metadata
        )

    def remove(self, type_: ResourceType, one: ObjectVersion, options: KubeObject) -> ObjectVersion | None:
        """Delete an object; return its last version if the answer shows it: it remains, or it is such a kind."""
        metadata = one.object["metadata"]
        waits = bool(metadata.get("finalizers"))
        if type_.kind == "Pod" and not type_.custom:
            return self._remove_pod(type_, one, options, waits=waits)
        if waits:
            return one if metadata.get("deletionTimestamp") else self._mark(type_, one, 0)
        last = self._gone(type_, one, options)
        return last if type_.resource in RETURNED and not type_.custom else None

    def finish(self, type_: ResourceType, one: ObjectVersion) -> None:
        """Remove an object that is being deleted and whose last finalizer is removed."""
        self._gone(type_, one, {})

    # -- pods --------------------------------------------------------------------------------------------------------

    def _remove_pod(
        self, type_: ResourceType, one: ObjectVersion, options: KubeObject, *, waits: bool
    ) -> ObjectVersion | None:
        pod, grace = one.object, _grace(one.object, options)
        if grace is None:
            return one
        marked = self._mark(type_, one, grace)
        if grace > 0:
            self._state.inputs.pod_deleted(marked.object, float(grace))
        elif _is_running(pod) and (waits or options.get("gracePeriodSeconds") is None):
            # Without grace by its own spec: a scheduler that preempts the pod must settle before the pod is gone.
            self._state.inputs.pod_deleted(marked.object, 0.0)
        elif not waits:
            return self._gone(type_, marked, options)
        return marked

    def _mark(self, type_: ResourceType, one: ObjectVersion, grace: int) -> ObjectVersion:
        """Write that an object is being deleted, and that it has *grace* seconds."""
        state = self._state
        return state.store.put(state.table(type_), one.key, _marked(one.object, grace, state))

    # -- consequences --------------------------------------------------------------------------------------------------

    def _gone(self, type_: ResourceType, one: ObjectVersion, options: KubeObject) -> ObjectVersion | None:
        """Delete an object and what depends on it; return its last version, with the version of the deletion."""
        state, found = self._state, one.object
        if type_.kind == "Namespace":
            self._empty(one.key.name)
        last = state.store.delete(state.table(type_), one.key)
        kind = "" if type_.custom else type_.kind
        if kind == "Pod":
            state.inputs.pod_removed(found)
        elif kind == "Node":
            state.inputs.node_deleted(one.key.name)
        elif kind in WORKLOADS:
            state.inputs.workload_deleted(found)
        elif kind == "CustomResourceDefinition":
            state.types.remove_custom(one.key.name)
        orphan = options.get("propagationPolicy") == "Orphan" or options.get("orphanDependents") is True
        if kind not in NO_DEPENDENTS and not orphan:
            self._collect(uid_of(found))
        return last

    def _collect(self, uid: str) -> None:
        """Delete the objects that the object with this uid owned, as the garbage collector does."""
        for type_, one in list(self._dependents(uid)):
            if self._state.table(type_).get(one.key) is one:
                self.remove(type_, one, {})

    def _dependents(self, uid: str) -> Iterator[tuple[ResourceType, ObjectVersion]]:
        for type_ in self._state.types.all():
            if type_.stored and type_.kind != "Event":
                for one in self._state.table(type_).all():
                    owners = one.object["metadata"].get("ownerReferences") or ()
                    if any(isinstance(owner, dict) and owner.get("uid") == uid for owner in owners):
                        yield type_, one

    def _empty(self, namespace: str) -> None:
        """Delete everything in a namespace; its running pods without their grace periods."""
        for type_ in self._state.types.all():
            if type_.stored and type_.namespaced:
                for one in list(self._state.table(type_).all(namespace)):
                    if self._state.table(type_).get(one.key) is not None:
                        self._gone(type_, one, {})


def _grace(pod: KubeObject, options: KubeObject) -> int | None:
    """Return the seconds that a pod has to stop; None if it is being deleted already and they do not become fewer."""
    asked: int | None = options.get("gracePeriodSeconds")
    earlier: int | None = pod["metadata"].get("deletionGracePeriodSeconds")
    if earlier is not None:
        return None if asked is None or asked >= earlier else asked
    if not _is_running(pod):
        return 0
    if asked is None:
        asked = int(part(pod, "spec").get("terminationGracePeriodSeconds", DEFAULT_GRACE))
    return asked


def _marked(found: KubeObject, grace: int, state: ApiState) -> KubeObject:
    """Return an object that is being deleted and has *grace* seconds."""
    metadata = dict(found["metadata"])
    earlier = metadata.get("deletionGracePeriodSeconds")
    if earlier is None:
        metadata["deletionTimestamp"] = state.timestamp(grace)
        if metadata.get("generation"):
            metadata["generation"] += 1
    else:
        metadata["deletionTimestamp"] = shifted_timestamp(metadata["deletionTimestamp"], grace - earlier)
    metadata["deletionGracePeriodSeconds"] = grace
    return {**found, "metadata": metadata}


def _is_running(pod: KubeObject) -> bool:
    """Return whether a kubelet has the pod."""
    return bool(part(pod, "spec").get("nodeName")) and part(pod, "status").get("phase") not in ENDED


def _options(request: ApiRequest) -> KubeObject:
    """Return the DeleteOptions of a request: its body, then its query parameters."""
    options = decode_object(request) if request.body.strip() else {}
    if options.get("kind", "DeleteOptions") != "DeleteOptions":
        # Some old clients send the object itself.
        options = {}
    parameters = request.parameters()
    if "dryRun" in parameters:
        options = {**options, "dryRun": parameters["dryRun"]}
    grace = parameters.get("gracePeriodSeconds", options.get("gracePeriodSeconds"))
    if grace is not None:
        try:
            options = {**options, "gracePeriodSeconds": max(0, int(grace))}
        except (TypeError, ValueError):
            raise bad_request(f"gracePeriodSeconds: {grace!r} is not a whole number") from None
    if "propagationPolicy" in parameters:
        options = {**options, "propagationPolicy": parameters["propagationPolicy"]}
    return options


def _check_preconditions(type_: ResourceType, one: ObjectVersion, options: KubeObject) -> None:
    wanted = part(options, "preconditions")
    uid, revision = wanted.get("uid"), wanted.get("resourceVersion")
    current = uid_of(one.object)
    if uid and uid != current:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {current}"
        raise conflict(type_.resource, type_.group, one.key.name, why)
    if revision and str(revision) != str(one.revision):
        why = (
            f"Precondition failed: ResourceVersion in precondition: {revision}, "
            f"ResourceVersion in object meta: {one.revision}"
        )
        raise conflict(type_.resource, type_.group, one.key.name, why)
