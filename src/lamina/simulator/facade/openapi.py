"""
OpenAPI documents: as much as kubectl needs for ``apply``, ``create``, ``diff`` and a short ``explain``.

kubectl reads two things in the documents of version 3. The PATCH operation of a kind lists the query parameter
``fieldValidation``, so kubectl leaves validation to the server. Its request body does not list strategic merge patch,
so kubectl computes patches from the types that are compiled into it: the schemas here have no patch keys.

The document of version 2 is empty. kubectl before 1.27 then skips its own validation.
"""

import hashlib
from typing import Any, Final

from lamina.simulator.facade.api_errors import StatusError
from lamina.simulator.facade.kube_object import KubeObject
from lamina.simulator.facade.media_types import JSON, parse_accept
from lamina.simulator.facade.resource_types import ResourceType, ResourceTypes
from lamina.simulator.facade.served_document import ServedDocument, json_document

_TITLE: Final = "Kubernetes"
_FORM: Final = "1"
"""Number of this module's form of documents; part of the hash, because kubectl caches documents by it."""
_PROTOBUF_V2: Final = "application/com.github.proto-openapi.spec.v2"
_WRITE_PARAMETERS: Final = ("dryRun", "fieldManager", "fieldValidation")
_PATCH_TYPES: Final = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")
_METADATA: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def openapi_response(path: str, accept: str, types: ResourceTypes, version: str) -> ServedDocument | None:
    """
    Return the document for *path*; None if it is no path of OpenAPI.

    *version* is the release that the façade claims to be, such as ``v1.36.3``. Raise `StatusError` 406 if the client
    accepts no form of the version 2 document.
    """
    parts = [part for part in path.split("/") if part]
    match parts:
        case ["openapi", "v2"]:
            return _version_2(accept, version)
        case ["openapi", "v3"]:
            return json_document({"paths": _index(types)})
        case ["openapi", "v3", "api", "v1"]:
            return json_document(_document("", "v1", types.served()[""]["v1"], version))
        case ["openapi", "v3", "apis", group, served]:
            found = types.served().get(group, {}).get(served)
            return None if found is None else json_document(_document(group, served, found, version))
    return None


def _version_2(accept: str, version: str) -> ServedDocument:
    for each in parse_accept(accept):
        if each.is_json:
            info = {"title": _TITLE, "version": version}
            return json_document({"swagger": "2.0", "info": info, "paths": {}, "definitions": {}})
        # kubectl names it "...v2@v1.0+protobuf", and the real server answers "...v2.v1.0+protobuf".
        if each.name.startswith(_PROTOBUF_V2) and each.name.endswith("+protobuf"):
            # Document{1: swagger, 2: Info{1: title, 2: version}, 8: Paths{}, 9: Definitions{}} of gnostic's OpenAPIv2.
            info_bytes = _field(1, _TITLE.encode()) + _field(2, version.encode())
            content = _field(1, b"2.0") + _field(2, info_bytes) + _field(8, b"") + _field(9, b"")
            return ServedDocument(content, f"{_PROTOBUF_V2}.v1.0+protobuf")
    accepted = f"{JSON}, {_PROTOBUF_V2}@v1.0+protobuf"
    raise StatusError(406, "NotAcceptable", f"only the following media types are accepted: {accepted}")


def _field(number: int, content: bytes) -> bytes:
    """Return a length-delimited protobuf field; the fields here are shorter than 128 bytes."""
    return bytes([number << 3 | 2, len(content)]) + content


def _index(types: ResourceTypes) -> KubeObject:
    found: dict[str, Any] = {}
    for group, versions in types.served().items():
        for version, listed in versions.items():
            path = _prefix(group, version)[1:]
            found[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={_hash(listed)}"}
    return found


def _hash(listed: list[ResourceType]) -> str:
    """Return a text that differs whenever the document differs."""
    digest = hashlib.sha256(_FORM.encode())
    for each in sorted(listed, key=lambda found: found.resource):
        digest.update(repr((each.resource, each.kind, each.namespaced, each.verbs, each.subresources)).encode())
    return digest.hexdigest().upper()


def _prefix(group: str, version: str) -> str:
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


def _document(group: str, version: str, listed: list[ResourceType], release: str) -> KubeObject:
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {_METADATA: {"type": "object", "description": "Standard metadata of an object."}}
    for each in sorted(listed, key=lambda found: found.resource):
        kind = {"group": group, "version": version, "kind": each.kind}
        name = _schema_name(each, group, version)
        schemas[name] = _schema(each, kind)
        paths.update(_paths(each, _prefix(group, version), kind, name))
    return {
        "openapi": "3.0.0",
        "info": {"title": _TITLE, "version": release},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _schema_name(found: ResourceType, group: str, version: str) -> str:
    if found.custom:
        return ".".join([*reversed(group.split(".")), version, found.kind])
    return f"io.k8s.api.{group.partition('.')[0] or 'core'}.{version}.{found.kind}"


def _schema(found: ResourceType, kind: dict[str, str]) -> KubeObject:
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    properties: dict[str, Any] = {
        "apiVersion": {"type": "string", "description": "Group and version of the object."},
        "kind": {"type": "string", "description": "Kind of the object."},
        "metadata": {"allOf": [{"$ref": f"#/components/schemas/{_METADATA}"}], "default": {}},
        "spec": {**free, "description": "Desired state. The server does not describe its fields."},
    }
    if "status" in found.subresources:
        properties["status"] = {**free, "description": "Observed state. The server does not describe its fields."}
    return {
        "type": "object",
        "description": f"{found.kind} is served by a simulated cluster, which does not describe the fields.",
        "properties": properties,
        "x-kubernetes-preserve-unknown-fields": True,
        "x-kubernetes-group-version-kind": [kind],
    }


def _paths(found: ResourceType, prefix: str, kind: dict[str, str], schema: str) -> dict[str, Any]:
    collection = f"{prefix}/namespaces/{{namespace}}/{found.resource}" if found.namespaced else None
    collection = collection or f"{prefix}/{found.resource}"
    paths: dict[str, Any] = {collection: _operations(found, ("list", "create"), kind, schema)}
    if found.stored:
        one = f"{collection}/{{name}}"
        paths[one] = _operations(found, ("get", "update", "patch", "delete"), kind, schema)
        if found.namespaced:
            paths[f"{prefix}/{found.resource}"] = _operations(found, ("list",), kind, schema)
        if "status" in found.subresources:
            paths[f"{one}/status"] = _operations(found, ("get", "update", "patch"), kind, schema)
    return paths


_METHODS: Final = {
    "list": "get",
    "get": "get",
    "create": "post",
    "update": "put",
    "patch": "patch",
    "delete": "delete",
}


def _operations(found: ResourceType, verbs: tuple[str, ...], kind: dict[str, str], schema: str) -> KubeObject:
    return {_METHODS[verb]: _operation(verb, kind, schema) for verb in verbs if verb in found.verbs}


def _operation(verb: str, kind: dict[str, str], schema: str) -> KubeObject:
    reference = {"schema": {"$ref": f"#/components/schemas/{schema}"}}
    operation: dict[str, Any] = {
        "responses": {"200": {"description": "OK", "content": {JSON: reference}}},
        "x-kubernetes-action": {"create": "post", "update": "put"}.get(verb, verb),
        "x-kubernetes-group-version-kind": kind,
    }
    if verb in {"create", "update", "patch"}:
        names = (*_WRITE_PARAMETERS, "force") if verb == "patch" else _WRITE_PARAMETERS
        operation["parameters"] = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in names]
        if verb == "patch":
            content: dict[str, Any] = {each: {"schema": {"type": "object"}} for each in _PATCH_TYPES}
        else:
            content = {"*/*": reference}
        operation["requestBody"] = {"content": content, "required": True}
    return operation
