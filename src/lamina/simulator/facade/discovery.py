"""
Discovery: which groups, versions and resources the façade serves, and which release it claims to be.

``/version``, ``/api``, ``/apis`` and the paths below them, in the plain form and in the aggregated form that newer
clients ask for. The answers depend on the registered types only.
"""

import re
from typing import Any, Final

from lamina.simulator.facade.kube_object import KubeObject
from lamina.simulator.facade.media_types import JSON, parse_accept
from lamina.simulator.facade.resource_types import ResourceType, ResourceTypes, join_group_version
from lamina.simulator.facade.served_document import ServedDocument, json_document

SERVER_VERSION: Final = "v1.36.3"
"""Release that the façade claims to be unless the caller names another one."""

_AGGREGATED_GROUP: Final = "apidiscovery.k8s.io"
_AGGREGATED_KIND: Final = "APIGroupDiscoveryList"
_AGGREGATED_VERSIONS: Final = ("v2", "v2beta1")
_RELEASE: Final = re.compile(r"v?(\d+)\.(\d+)")
_SUBRESOURCE_VERBS: Final = {
    "binding": ("create",),
    "eviction": ("create",),
    "finalize": ("update",),
}
# Group, version and kind of subresources whose objects are of another kind than the resource.
_SUBRESOURCE_KINDS: Final = {
    "binding": ("", "", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
    "scale": ("autoscaling", "v1", "Scale"),
}
_OTHER_PATHS: Final = ("/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version")


def discovery_response(
    path: str, accept: str, types: ResourceTypes, version: str = SERVER_VERSION
) -> ServedDocument | None:
    """
    Return the document for *path*; None if it is no path of discovery.

    *accept* is the request's Accept header, *version* the release that ``/version`` reports, such as ``v1.36.3``.
    """
    parts = [part for part in path.split("/") if part]
    match parts:
        case []:
            return json_document(_root_paths(types))
        case ["version"]:
            return json_document(version_info(version))
        case ["api"]:
            return _aggregated(accept, types, core=True) or json_document(
                {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
            )
        case ["apis"]:
            return _aggregated(accept, types, core=False) or json_document(_group_list(types))
        case ["api", "v1"]:
            return _resource_list("", "v1", types)
        case ["apis", group]:
            return _one_group(group, types)
        case ["apis", group, served]:
            return _resource_list(group, served, types)
    return None


def version_info(version: str) -> KubeObject:
    """Return the body of ``/version`` for a release such as ``v1.36.3``."""
    found = _RELEASE.match(version)
    major, minor = found.groups() if found else ("1", "0")
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(max(int(minor) - 1, 0)),
        "gitVersion": version if version.startswith("v") else f"v{version}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "linux/amd64",
    }


def _root_paths(types: ResourceTypes) -> KubeObject:
    paths = ["/api", "/api/v1", "/apis", *_OTHER_PATHS]
    for group, versions in types.served().items():
        if group:
            paths += [f"/apis/{group}", *(f"/apis/{group}/{version}" for version in versions)]
    return {"paths": sorted(paths)}


def _group_list(types: ResourceTypes) -> KubeObject:
    groups = [_group(group, list(versions)) for group, versions in types.served().items() if group]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def _one_group(group: str, types: ResourceTypes) -> ServedDocument | None:
    versions = types.served().get(group)
    if versions is None:
        return None
    return json_document({"kind": "APIGroup", "apiVersion": "v1", **_group(group, list(versions))})


def _group(group: str, versions: list[str]) -> KubeObject:
    listed = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": listed, "preferredVersion": listed[0]}


def _resource_list(group: str, version: str, types: ResourceTypes) -> ServedDocument | None:
    found = types.served().get(group, {}).get(version)
    if found is None:
        return None
    resources: list[KubeObject] = []
    for each in sorted(found, key=lambda found: found.resource):
        resources.append(_resource(each, group))
        resources += [_subresource(each, name) for name in each.subresources]
    listed = {"groupVersion": join_group_version(group, version), "resources": resources}
    return json_document({"kind": "APIResourceList", **({"apiVersion": "v1"} if group else {}), **listed})


def _names(found: ResourceType, group: str) -> dict[str, Any]:
    """Return short names and categories; a view has none, or ``kubectl get all`` would list its objects twice."""
    if group != found.group:
        return {}
    return {
        **({"shortNames": list(found.short_names)} if found.short_names else {}),
        **({"categories": list(found.categories)} if found.categories else {}),
    }


def _resource(found: ResourceType, group: str) -> KubeObject:
    return {
        "name": found.resource,
        "singularName": found.singular,
        "namespaced": found.namespaced,
        "kind": found.kind,
        "verbs": list(found.verbs),
        **_names(found, group),
    }


def _subresource(found: ResourceType, name: str) -> KubeObject:
    group, version, kind = _SUBRESOURCE_KINDS.get(name, ("", "", found.kind))
    return {
        "name": f"{found.resource}/{name}",
        "singularName": "",
        "namespaced": found.namespaced,
        **({"group": group, "version": version} if group else {}),
        "kind": kind,
        "verbs": list(_SUBRESOURCE_VERBS.get(name, ("get", "patch", "update"))),
    }


def _aggregated(accept: str, types: ResourceTypes, *, core: bool) -> ServedDocument | None:
    version = _wanted_aggregate(accept)
    if not version:
        return None
    items = [_aggregated_group(group, found) for group, found in types.served().items() if core == (not group)]
    body = {
        "kind": _AGGREGATED_KIND,
        "apiVersion": f"{_AGGREGATED_GROUP}/{version}",
        "metadata": {},
        "items": items,
    }
    return json_document(body, f"{JSON};g={_AGGREGATED_GROUP};v={version};as={_AGGREGATED_KIND}")


def _wanted_aggregate(accept: str) -> str:
    for each in parse_accept(accept):
        for version in _AGGREGATED_VERSIONS:
            if each.asks_for(_AGGREGATED_KIND, _AGGREGATED_GROUP, version):
                return version
        if each.is_json and "as" not in each.parameters:
            return ""
    return ""


def _aggregated_group(group: str, versions: dict[str, list[ResourceType]]) -> KubeObject:
    listed = [
        {
            "version": version,
            "resources": [
                _aggregated_resource(each, group) for each in sorted(found, key=lambda found: found.resource)
            ],
            "freshness": "Current",
        }
        for version, found in versions.items()
    ]
    return {"metadata": {"name": group} if group else {}, "versions": listed}


def _aggregated_resource(found: ResourceType, group: str) -> KubeObject:
    subresources = [
        {
            "subresource": name,
            "responseKind": _response_kind(*_SUBRESOURCE_KINDS.get(name, ("", "", found.kind))),
            "verbs": list(_SUBRESOURCE_VERBS.get(name, ("get", "patch", "update"))),
        }
        for name in found.subresources
    ]
    return {
        "resource": found.resource,
        "responseKind": _response_kind("", "", found.kind),
        "scope": "Namespaced" if found.namespaced else "Cluster",
        "singularResource": found.singular,
        "verbs": list(found.verbs),
        **_names(found, group),
        **({"subresources": subresources} if subresources else {}),
    }


def _response_kind(group: str, version: str, kind: str) -> KubeObject:
    """Return a kind; clients take group and version from the request if they are empty."""
    return {"group": group, "version": version, "kind": kind}
