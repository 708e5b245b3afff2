"""
Subresources of pods: binding and eviction.

A binding sets the pod's node and its condition PodScheduled=True, as the API server does. The server does not check
that the node exists. An eviction is a deletion that PodDisruptionBudgets may refuse.
"""

from collections.abc import Iterator
from typing import Final

from lamina.simulator.facade.api_errors import (
    StatusError,
    bad_request,
    conflict,
    internal_error,
    not_found,
    success,
    too_many_requests,
)
from lamina.simulator.facade.api_messages import ApiRequest, decode_object
from lamina.simulator.facade.api_paths import ResourcePath
from lamina.simulator.facade.api_state import ApiState
from lamina.simulator.facade.deletion import Deletion
from lamina.simulator.facade.kube_object import KubeObject, part, text, uid_of
from lamina.simulator.facade.object_store import ObjectVersion
from lamina.simulator.facade.pod_disruption import blocking_budget
from lamina.simulator.facade.pod_status import with_condition

EVICTED: Final = ("EvictionByEvictionAPI", "Eviction API: evicting")
"""Reason and message of the condition of evicted pods."""


class PodSubresources:
    """Handles bindings and evictions."""

    def __init__(self, state: ApiState, deletion: Deletion) -> None:
        """Act on the pods of *state*."""
        self._state = state
        self._deletion = deletion
        self._pods = state.built_in("", "pods")

    def bind(self, path: ResourcePath, request: ApiRequest) -> KubeObject:
        """Bind a pod, named by the path or by the body, to a node."""
        binding = decode_object(request)
        metadata = part(binding, "metadata")
        name = text(metadata, "name")
        if path.name and name and name != path.name:
            raise bad_request("name in URL does not match name in Binding object")
        name = path.name or name
        node = _target(part(binding, "target"))
        stored = self._find(path.namespace, name)
        if not path.name:
            # A real server ignores the uid of a binding that is posted to the namespace.
            metadata = {key: value for key, value in metadata.items() if key != "uid"}
        self._check_bindable(stored, metadata)
        pod = _bound(stored.object, node, metadata, self._state.timestamp())
        bound = self._state.store.put(self._state.table(self._pods), stored.key, pod)
        self._state.inputs.pod_bound(bound.object, node)
        return success(code=201)

    def _check_bindable(self, stored: ObjectVersion, metadata: KubeObject) -> None:
        name, pod = stored.key.name, stored.object
        uid, revision = metadata.get("uid"), metadata.get("resourceVersion")
        if uid and uid != uid_of(pod):
            raise self._conflict(
                name, f"Precondition failed: UID in precondition: {uid}, UID in object meta: {uid_of(pod)}"
            )
        if revision and str(revision) != str(stored.revision):
            raise self._conflict(
                name,
                f"Precondition failed: ResourceVersion in precondition: {revision}, "
                f"ResourceVersion in object meta: {stored.revision}",
            )
        if pod["metadata"].get("deletionTimestamp"):
            raise self._conflict(name, f"pod {name} is being deleted, cannot be assigned to a host")
        spec = part(pod, "spec")
        if spec.get("nodeName"):
            raise self._conflict(name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
        if spec.get("schedulingGates"):
            raise self._conflict(name, f"pod {name} has non-empty .spec.schedulingGates")

    def _conflict(self, name: str, why: str) -> StatusError:
        return conflict("pods/binding", "", name, why)

    def evict(self, path: ResourcePath, request: ApiRequest) -> KubeObject:
        """Delete a pod, unless a PodDisruptionBudget allows no further disruption."""
        eviction = decode_object(request)
        name = text(part(eviction, "metadata"), "name")
        if name and name != path.name:
            raise bad_request("name in URL does not match name in Eviction object")
        stored = self._find(path.namespace, path.name)
        options = part(eviction, "deleteOptions")
        uid = part(options, "preconditions").get("uid")
        if uid and uid != uid_of(stored.object):
            why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {uid_of(stored.object)}"
            raise conflict("pods", "", path.name, why)
        budget = blocking_budget(stored.object, self._budgets(path.namespace), self._siblings(path.namespace))
        if budget:
            message = "Cannot evict pod as it would violate the pod's disruption budget."
            cause = ("DisruptionBudget", f"The disruption budget {budget} allows no further disruptions", "")
            raise too_many_requests(message, 10, [cause])
        if options.get("dryRun") != ["All"]:
            status = with_condition(
                part(stored.object, "status"), "DisruptionTarget", "True", self._state.timestamp(), *EVICTED
            )
            pod = {**stored.object, "status": status}
            stored = self._state.store.put(self._state.table(self._pods), stored.key, pod)
            self._deletion.remove(self._pods, stored, options)
        return success(code=201)

    def _find(self, namespace: str, name: str) -> ObjectVersion:
        stored = self._state.get("", "pods", namespace, name)
        if stored is None:
            raise not_found("pods", "", name)
        return stored

    def _budgets(self, namespace: str) -> Iterator[KubeObject]:
        return (one.object for one in self._state.store.table("policy", "poddisruptionbudgets").all(namespace))

    def _siblings(self, namespace: str) -> Iterator[KubeObject]:
        return (one.object for one in self._state.table(self._pods).all(namespace))


def _bound(pod: KubeObject, node: str, metadata: KubeObject, now: str) -> KubeObject:
    """Return a pod that is bound to *node*, with the annotations and labels of the binding's metadata."""
    merged = dict(pod["metadata"])
    for name in ("annotations", "labels"):
        if metadata.get(name):
            merged[name] = {**(merged.get(name) or {}), **metadata[name]}
    status = with_condition(part(pod, "status"), "PodScheduled", "True", now)
    status.pop("nominatedNodeName", None)
    return {**pod, "metadata": merged, "spec": {**part(pod, "spec"), "nodeName": node}, "status": status}


def _target(target: KubeObject) -> str:
    """Return the node of a binding. Raises StatusError 500, as a real server does."""
    problems = []
    if target.get("kind") not in {None, "", "Node"}:
        problems.append(f'target.kind: Unsupported value: "{target["kind"]}": supported values: "Node", "<empty>"')
    if not text(target, "name"):
        problems.append("target.name: Required value")
    if problems:
        raise internal_error(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return text(target, "name")
