"""
The API as a function: a request in, a response or an open watch out.

    path --+-- /healthz, /livez, /readyz
           +-- /metrics
           +-- /version, /api, /apis, /openapi    discovery
           +-- /api/v1/…, /apis/GROUP/VERSION/…    verbs on resources

Every problem of a request is answered with a Status object. A request never raises.
"""

from collections.abc import Callable
from typing import Final

from lamina.simulator.facade.api_errors import StatusError, method_not_allowed, no_such_path
from lamina.simulator.facade.api_messages import (
    ApiRequest,
    FacadeResponse,
    WatchResponse,
    decode_object,
    error_response,
    flag,
    json_response,
)
from lamina.simulator.facade.api_paths import ResourcePath, path_parts, resource_path
from lamina.simulator.facade.api_state import ApiState
from lamina.simulator.facade.deletion import Deletion
from lamina.simulator.facade.discovery import SERVER_VERSION, discovery_response
from lamina.simulator.facade.kube_object import KubeObject, part
from lamina.simulator.facade.openapi import openapi_response
from lamina.simulator.facade.patch_verb import PatchVerb
from lamina.simulator.facade.pod_subresources import PodSubresources
from lamina.simulator.facade.read_verbs import ReadVerbs
from lamina.simulator.facade.resource_type import ResourceType, join_group_version
from lamina.simulator.facade.response_form import form_of
from lamina.simulator.facade.scale_verb import ScaleVerb
from lamina.simulator.facade.write_verbs import WriteVerbs

HEALTH: Final = frozenset({"healthz", "livez", "readyz"})
TEXT: Final = "text/plain; charset=utf-8"
METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

ApiAnswer = FacadeResponse | WatchResponse


class ApiHandler:
    """Answers the requests of all clients."""

    def __init__(self, state: ApiState, metrics: Callable[[], bytes] = bytes) -> None:
        """Serve *state*; *metrics* returns the text of ``/metrics``."""
        self._state = state
        self._metrics = metrics
        deletion = Deletion(state)
        self._deletion = deletion
        self._reads = ReadVerbs(state)
        self._writes = WriteVerbs(state, deletion.finish)
        self._patches = PatchVerb(state, self._writes)
        self._scales = ScaleVerb(state, self._writes)
        self._pods = PodSubresources(state, deletion)

    def handle(self, request: ApiRequest) -> ApiAnswer:
        """Answer one request."""
        try:
            return self._route(request)
        except StatusError as error:
            return error_response(error)

    def _route(self, request: ApiRequest) -> ApiAnswer:
        parts = path_parts(request.path)
        first = parts[0] if parts else ""
        if first in HEALTH:
            return FacadeResponse(200, b"ok", TEXT)
        if parts == ["metrics"]:
            return FacadeResponse(200, self._metrics(), METRICS_TYPE)
        if request.method in {"GET", "HEAD"}:
            path = "/" + "/".join(parts)
            if first == "openapi":
                document = openapi_response(path, request.accept, self._state.types, SERVER_VERSION)
            else:
                document = discovery_response(path, request.accept, self._state.types)
            if document is not None:
                return FacadeResponse(200, document.content, document.content_type)
        return self._resource(resource_path(parts), request)

    def _resource(self, path: ResourcePath, request: ApiRequest) -> ApiAnswer:
        type_ = self._state.types.find(path.group, path.version, path.resource)
        if type_ is None or (path.namespace and not type_.namespaced):
            raise no_such_path()
        if path.subresource and path.subresource not in type_.subresources:
            raise no_such_path()
        if request.method in {"GET", "HEAD"}:
            return self._read(type_, path, request)
        if type_.namespaced and not path.namespace and (path.name or request.method == "POST"):
            raise method_not_allowed(type_.resource, type_.group, request.method)
        status, found = self._write(type_, path, request)
        return self._shown(type_, path, request, status, found)

    def _read(self, type_: ResourceType, path: ResourcePath, request: ApiRequest) -> ApiAnswer:
        if not type_.stored:
            raise method_not_allowed(type_.resource, type_.group, request.method)
        if path.watch or flag(request.parameters(), "watch"):
            return self._reads.watch(type_, path, request)
        if not path.name:
            return self._reads.list_all(type_, path, request)
        if path.subresource == "scale":
            return json_response(self._scales.get(type_, path))
        if path.subresource not in {"", "status"}:
            raise method_not_allowed(type_.resource, type_.group, request.method)
        return self._reads.get(type_, path, request)

    def _write(self, type_: ResourceType, path: ResourcePath, request: ApiRequest) -> tuple[int, KubeObject]:
        if request.method == "POST":
            return self._post(type_, path, request)
        match request.method, path.subresource:
            case (("PUT" | "PATCH"), "scale") if path.name:
                return 200, self._scales.write(type_, path, request)
            case "PUT", ("" | "status" | "finalize") if path.name:
                return self._writes.update(type_, path, request)
            case "PATCH", ("" | "status") if path.name:
                return self._patches.patch(type_, path, request)
            case "DELETE", "":
                if path.name:
                    return self._deletion.delete(type_, path, request)
                return 200, self._deletion.delete_collection(type_, path, request)
        raise method_not_allowed(type_.resource, type_.group, request.method)

    def _post(self, type_: ResourceType, path: ResourcePath, request: ApiRequest) -> tuple[int, KubeObject]:
        if path.subresource == "binding":
            return 201, self._pods.bind(path, request)
        if path.subresource == "eviction":
            return 201, self._pods.evict(path, request)
        if path.name:
            raise method_not_allowed(type_.resource, type_.group, request.method)
        if not type_.stored:
            return 201, self._review(type_, path, request)
        return 201, self._writes.create(type_, path, request)

    def _review(self, type_: ResourceType, path: ResourcePath, request: ApiRequest) -> KubeObject:
        """Answer a create of something that is not stored: a binding, or a question about permissions."""
        if type_.kind == "Binding":
            return self._pods.bind(path, request)
        return {
            **decode_object(request),
            "apiVersion": join_group_version(path.group, path.version),
            "kind": type_.kind,
            "status": _review_status(type_.kind),
        }

    def _shown(
        self, type_: ResourceType, path: ResourcePath, request: ApiRequest, status: int, found: KubeObject
    ) -> FacadeResponse:
        """Return a written object in the form that the client asked for."""
        if found.get("kind") == type_.kind and found.get("apiVersion") == type_.api_version and part(found, "metadata"):
            form = form_of(type_, path.group, path.version, request, self._state.now)
            if not form.plain:
                return json_response(form.one(found), status)
        return json_response(found, status)


def _review_status(kind: str) -> KubeObject:
    """Return the answer to a question about the user or permissions: one user, who may do everything."""
    user: KubeObject = {"username": "lamina", "groups": ["system:masters", "system:authenticated"]}
    match kind:
        case "TokenReview":
            return {"authenticated": True, "user": user}
        case "SelfSubjectReview":
            return {"userInfo": user}
        case "SelfSubjectRulesReview":
            return {
                "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                "incomplete": False,
            }
    return {"allowed": True, "reason": "the façade allows everything"}
