"""Discovery: groups, versions and resources in the plain and in the aggregated form, and the server's version."""

import msgspec
import pytest

from lamina.simulator.facade.discovery import discovery_response, version_info
from lamina.simulator.facade.gang_resources import gang_custom_resources
from lamina.simulator.facade.media_types import parse_accept
from lamina.simulator.facade.resource_types import ResourceTypes

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
# What kubectl sends.
MODERN = f"{AGGREGATED.format('v2')},{AGGREGATED.format('v2beta1')},application/json"


def types():
    found = ResourceTypes()
    found.add_customs(gang_custom_resources())
    return found


def discover(path, accept="application/json"):
    found = discovery_response(path, accept, types())
    return None if found is None else msgspec.json.decode(found.content)


def test_the_version_is_that_of_the_release():
    assert version_info("v1.36.3")["gitVersion"] == "v1.36.3"
    assert (version_info("v1.36.3")["major"], version_info("v1.36.3")["minor"]) == ("1", "36")
    assert version_info("1.30")["gitVersion"] == "v1.30"
    assert discover("/version")["minor"] == "36"


def test_the_core_group_has_one_version():
    assert discover("/api")["versions"] == ["v1"]
    assert discover("/api/") == discover("/api")


def test_groups_come_in_the_order_of_the_real_server_and_views_at_the_end():
    names = [group["name"] for group in discover("/apis")["groups"]]

    assert names[:3] == ["apiregistration.k8s.io", "apps", "events.k8s.io"]
    assert names.index("scheduling.volcano.sh") > names.index("resource.k8s.io")
    assert names[-1] == "extensions"


def test_a_group_prefers_its_best_version():
    group = discover("/apis/apps")

    assert group["kind"] == "APIGroup"
    assert [version["version"] for version in group["versions"]] == ["v1", "v1beta2", "v1beta1"]
    assert group["preferredVersion"] == {"groupVersion": "apps/v1", "version": "v1"}


def test_a_resource_is_listed_with_its_subresources():
    listed = {each["name"]: each for each in discover("/apis/apps/v1")["resources"]}

    assert listed["deployments"] == {
        "name": "deployments",
        "singularName": "deployment",
        "namespaced": True,
        "kind": "Deployment",
        "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        "shortNames": ["deploy"],
        "categories": ["all"],
    }
    assert listed["deployments/scale"] == {
        "name": "deployments/scale",
        "singularName": "",
        "namespaced": True,
        "group": "autoscaling",
        "version": "v1",
        "kind": "Scale",
        "verbs": ["get", "patch", "update"],
    }


def test_bindings_and_evictions_can_only_be_created():
    listed = {each["name"]: each for each in discover("/api/v1")["resources"]}

    assert {name: listed[name]["verbs"] for name in ("bindings", "pods/binding", "pods/eviction")} == {
        "bindings": ["create"],
        "pods/binding": ["create"],
        "pods/eviction": ["create"],
    }
    assert (listed["pods/eviction"]["group"], listed["pods/eviction"]["kind"]) == ("policy", "Eviction")


def test_a_view_has_no_short_names_and_no_categories_so_that_get_all_lists_objects_once():
    listed = {each["name"]: each for each in discover("/apis/extensions/v1beta1")["resources"]}

    assert sorted(name for name in listed if "/" not in name) == [
        "daemonsets",
        "deployments",
        "ingresses",
        "networkpolicies",
        "replicasets",
    ]
    assert not any("shortNames" in each or "categories" in each for each in listed.values())


@pytest.mark.parametrize("path", ["/apis/nope", "/apis/apps/v9", "/api/v2", "/api/v1/pods", "/healthz"])
def test_other_paths_are_no_discovery(path):
    assert discover(path) is None


def test_the_root_lists_paths():
    paths = discover("/")["paths"]

    assert {"/api/v1", "/apis/apps/v1", "/openapi/v3", "/version"} <= set(paths)


@pytest.mark.parametrize("path", ["/api", "/apis"])
@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        pytest.param(MODERN, AGGREGATED.format("v2"), id="a new client"),
        pytest.param(AGGREGATED.format("v2beta1"), AGGREGATED.format("v2beta1"), id="only v2beta1"),
        pytest.param(f"application/json,{AGGREGATED.format('v2')}", "application/json", id="plain first"),
        pytest.param(f"{AGGREGATED.format('v2')};q=0.5,application/json", "application/json", id="plain preferred"),
        pytest.param(AGGREGATED.format("v9"), "application/json", id="unknown version"),
        pytest.param("", "application/json", id="no header"),
    ],
)
def test_the_accept_header_chooses_the_form(path, accept, content_type):
    found = discovery_response(path, accept, types())

    assert found.content_type == content_type
    kind = msgspec.json.decode(found.content)["kind"]
    assert (kind == "APIGroupDiscoveryList") == ("apidiscovery" in content_type)


def test_both_forms_list_the_same_resources():
    aggregated = {
        (group["metadata"].get("name", ""), version["version"], resource["resource"], resource["scope"] == "Namespaced")
        for path in ("/api", "/apis")
        for group in discover(path, MODERN)["items"]
        for version in group["versions"]
        for resource in version["resources"]
    }
    plain = {
        (group, version, each["name"], each["namespaced"])
        for group, versions in types().served().items()
        for version in versions
        for each in discover(f"/apis/{group}/{version}" if group else f"/api/{version}")["resources"]
        if "/" not in each["name"]
    }

    assert aggregated == plain


def test_an_aggregated_resource_has_its_subresources_with_their_kinds():
    apps = next(each for each in discover("/apis", MODERN)["items"] if each["metadata"]["name"] == "apps")
    sets = next(each for each in apps["versions"][0]["resources"] if each["resource"] == "replicasets")

    assert sets["responseKind"] == {"group": "", "version": "", "kind": "ReplicaSet"}
    assert [(each["subresource"], each["responseKind"]["kind"]) for each in sets["subresources"]] == [
        ("scale", "Scale"),
        ("status", "ReplicaSet"),
    ]


@pytest.mark.parametrize(
    ("accept", "names"),
    [
        pytest.param("", ["application/json"], id="empty"),
        pytest.param("text/html;q=0.1, */*", ["*/*", "text/html"], id="by quality"),
        pytest.param("a/b;q=0, c/d", ["c/d"], id="quality 0 is not wanted"),
        pytest.param("a/b;q=x", ["a/b"], id="unreadable quality"),
        pytest.param(",, ;", ["application/json"], id="only punctuation"),
    ],
)
def test_an_accept_header_is_sorted_by_preference(accept, names):
    assert [each.name for each in parse_accept(accept)] == names
