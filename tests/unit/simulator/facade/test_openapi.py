"""OpenAPI documents: what kubectl looks up before it applies or creates an object."""

import msgspec
import pytest

from lamina.simulator.facade.api_errors import StatusError
from lamina.simulator.facade.gang_resources import gang_custom_resources
from lamina.simulator.facade.openapi import openapi_response
from lamina.simulator.facade.resource_types import ResourceTypes

VERSION = "v1.36.3"
PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


def types():
    found = ResourceTypes()
    found.add_customs(gang_custom_resources())
    return found


def document(path, registered=None):
    found = openapi_response(path, "application/json", registered or types(), VERSION)
    return None if found is None else msgspec.json.decode(found.content)


def patches(kind, path):
    """Every PATCH operation of a kind: kubectl takes any of them."""
    return [
        operations["patch"]
        for operations in document(path)["paths"].values()
        if operations.get("patch", {}).get("x-kubernetes-group-version-kind") == kind
    ]


def test_the_index_names_a_document_for_every_group_and_version():
    index = document("/openapi/v3")["paths"]

    assert len(index) == sum(len(versions) for versions in types().served().values())
    for path, entry in index.items():
        url, _, query = entry["serverRelativeURL"].partition("?")
        assert url == f"/openapi/v3/{path}"
        assert query.startswith("hash=")
        assert document(url)["openapi"] == "3.0.0"


@pytest.mark.parametrize(
    ("path", "group", "version", "kind"),
    [
        pytest.param("/openapi/v3/api/v1", "", "v1", "Pod", id="core"),
        pytest.param("/openapi/v3/apis/apps/v1", "apps", "v1", "Deployment", id="group"),
        pytest.param("/openapi/v3/apis/extensions/v1beta1", "extensions", "v1beta1", "Deployment", id="view"),
        pytest.param(
            "/openapi/v3/apis/scheduling.volcano.sh/v1beta1",
            "scheduling.volcano.sh",
            "v1beta1",
            "PodGroup",
            id="custom",
        ),
    ],
)
def test_every_patch_of_a_kind_lets_the_server_validate_fields(path, group, version, kind):
    found = patches({"group": group, "version": version, "kind": kind}, path)

    assert found
    for operation in found:
        assert {"fieldValidation", "dryRun"} <= {each["name"] for each in operation["parameters"]}


def test_no_patch_offers_strategic_merge_so_that_kubectl_uses_its_own_types():
    for operation in patches({"group": "apps", "version": "v1", "kind": "Deployment"}, "/openapi/v3/apis/apps/v1"):
        assert "application/strategic-merge-patch+json" not in operation["requestBody"]["content"]


def test_explain_finds_the_kind_of_a_resource_and_its_schema():
    found = document("/openapi/v3/api/v1")
    kind = found["paths"]["/api/v1/namespaces/{namespace}/pods"]["get"]["x-kubernetes-group-version-kind"]
    schemas = [
        name
        for name, schema in found["components"]["schemas"].items()
        if kind in schema.get("x-kubernetes-group-version-kind", ())
    ]

    assert schemas == ["io.k8s.api.core.v1.Pod"]


def test_the_hash_of_a_document_changes_with_its_resources():
    registered = types()
    path = "apis/lamina.dev/v1alpha1"
    before = document("/openapi/v3", registered)["paths"]

    registered.remove_custom("imagelayers.lamina.dev")
    after = document("/openapi/v3", registered)["paths"]

    assert before[path] != after[path]
    assert before["apis/apps/v1"] == after["apis/apps/v1"]


def test_the_document_of_version_2_is_empty():
    assert document("/openapi/v2")["paths"] == {}


def test_the_document_of_version_2_in_protobuf_has_a_swagger_version_and_a_title():
    found = openapi_response("/openapi/v2", PROTOBUF, types(), VERSION)

    # Fields 1 and 2 of the document, then empty paths and definitions (8 and 9).
    assert (
        found.content == b"\x0a\x032.0" + b"\x12\x15" + b"\x0a\x0aKubernetes" + b"\x12\x07v1.36.3" + b"\x42\x00\x4a\x00"
    )
    assert found.content_type == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


def test_a_client_that_accepts_neither_form_is_refused():
    with pytest.raises(StatusError) as error:
        openapi_response("/openapi/v2", "text/html", types(), VERSION)

    assert error.value.code == 406


@pytest.mark.parametrize("path", ["/openapi", "/openapi/v3/apis/nope/v1", "/openapi/v3/apis/apps/v9", "/api/v1"])
def test_other_paths_have_no_document(path):
    assert document(path) is None
