"""The subresource ``scale``: the number of replicas of a workload, in a form that is the same for all kinds."""

from typing import Any

from lamina.simulator.facade.api_errors import bad_request, not_found
from lamina.simulator.facade.api_messages import ApiRequest, decode_body, decode_object
from lamina.simulator.facade.api_paths import ResourcePath
from lamina.simulator.facade.api_state import ApiState
from lamina.simulator.facade.kube_object import KubeObject, NamespacedName, part
from lamina.simulator.facade.object_store import ObjectVersion
from lamina.simulator.facade.patches.merge_patch import apply_merge_patch
from lamina.simulator.facade.pod_disruption import selector_text
from lamina.simulator.facade.resource_type import ResourceType, ScalePaths
from lamina.simulator.facade.write_options import write_options
from lamina.simulator.facade.write_verbs import WriteVerbs


class ScaleVerb:
    """Handles get, update and patch of the subresource ``scale``."""

    def __init__(self, state: ApiState, writes: WriteVerbs) -> None:
        """Scale objects of *state*; *writes* stores the results."""
        self._state = state
        self._writes = writes

    def get(self, type_: ResourceType, path: ResourcePath) -> KubeObject:
        """Return the scale of an object."""
        return _scale(self._find(type_, path).object, type_.scale or ScalePaths())

    def write(self, type_: ResourceType, path: ResourcePath, request: ApiRequest) -> KubeObject:
        """Change the scale of an object by PUT or PATCH; return its new scale."""
        old, paths = self._find(type_, path), type_.scale or ScalePaths()
        if request.method == "PUT":
            wanted = decode_object(request)
        else:
            patch = decode_body(request)
            if not isinstance(patch, dict):
                raise bad_request("a patch of scale must be a merge patch: a JSON object")
            wanted = apply_merge_patch(_scale(old.object, paths), patch)
        replicas = part(wanted, "spec").get("replicas", 0)
        if not isinstance(replicas, int) or replicas < 0:
            raise bad_request(f"spec.replicas: {replicas!r} is not a whole number of at least 0")
        new = _with_value(old.object, paths.spec_replicas.strip(".").split("."), replicas)
        main = ResourcePath(path.group, path.version, path.resource, path.namespace, path.name)
        metadata = {**new["metadata"], "resourceVersion": str(old.revision)}
        return _scale(
            self._writes.replace(type_, main, old, {**new, "metadata": metadata}, write_options(main, request)), paths
        )

    def _find(self, type_: ResourceType, path: ResourcePath) -> ObjectVersion:
        found = self._state.table(type_).get(NamespacedName(path.namespace, path.name))
        if found is None:
            raise not_found(type_.resource, type_.group, path.name)
        return found


def _scale(found: KubeObject, paths: ScalePaths) -> KubeObject:
    metadata, replicas = found["metadata"], _value(found, paths.spec_replicas)
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    selector = _value(found, paths.label_selector) if paths.label_selector else None
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in kept if name in metadata},
        "spec": {"replicas": replicas} if replicas else {},
        "status": {
            "replicas": _value(found, paths.status_replicas) or 0,
            "selector": selector or selector_text(part(part(found, "spec"), "selector")),
        },
    }


def _value(found: Any, path: str) -> Any:
    for name in path.strip(".").split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _with_value(found: KubeObject, names: list[str], value: Any) -> KubeObject:
    first, *rest = names
    return {**found, first: _with_value(part(found, first), rest, value) if rest else value}
