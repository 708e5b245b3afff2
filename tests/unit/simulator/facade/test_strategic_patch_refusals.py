"""Strategic merge patch: nulls, fields without rules, and patches that are refused."""

from typing import Any

import pytest

from lamina.simulator.facade.patches.json_values import MAX_DEPTH
from lamina.simulator.facade.patches.patch_error import PatchError
from lamina.simulator.facade.patches.strategic_merge import apply_strategic_merge, supports_strategic_merge

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "finalizers": ["f1", "f2"]},
    "spec": {
        "containers": [{"name": "web", "image": "web:1"}],
        "volumes": [{"name": "data", "emptyDir": {}}],
        "nodeSelector": {"zone": "z1"},
    },
}


def merged(document, patch):
    return apply_strategic_merge(document, patch, document["apiVersion"], document["kind"])


@pytest.mark.parametrize("removed", ["volumes", "nodeSelector", "missing"])
def test_null_removes_a_field(removed):
    spec = merged(POD, {"spec": {removed: None}})["spec"]

    assert spec.keys() == {"containers", "volumes", "nodeSelector"} - {removed}


def test_fields_without_rules_are_merged_like_in_a_merge_patch():
    patch = {"spec": {"new": {"a": [1], "b": None}}, "extra": {"$patch": "delete"}}

    assert merged(POD, patch)["spec"]["new"] == {"a": [1]}
    assert "extra" not in merged(POD, patch)


def test_a_null_in_the_document_is_replaced():
    document = {"apiVersion": "v1", "kind": "Pod", "spec": {"volumes": None}, "status": None}

    assert merged(document, {"spec": {"volumes": [{"name": "v"}]}})["spec"] == {"volumes": [{"name": "v"}]}


def test_elements_with_one_key_are_both_kept():
    ports = [{"containerPort": 53, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"}]
    document = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "a", "ports": ports}]}}

    result = merged(document, {"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 80}]}]}})

    assert result["spec"]["containers"] == [{"name": "a", "ports": [{"containerPort": 80}, *ports]}]


@pytest.mark.parametrize(
    ("patch", "code", "words"),
    [
        pytest.param([], 400, "must be a JSON object", id="a list"),
        pytest.param({"spec": {"$retainKeys": "x"}}, 400, "invalid patch format of retainKeys", id="retainKeys"),
        pytest.param(
            {"spec": {"$retainKeys": ["volumes"], "nodeName": "n"}},
            400,
            "invalid patch format of retainKeys",
            id="a field that retainKeys does not list",
        ),
        pytest.param(
            {"metadata": {"$deleteFromPrimitiveList/finalizers": "f1"}},
            400,
            "invalid patch format of primitive list",
            id="deleteFromPrimitiveList",
        ),
        pytest.param(
            {"spec": {"$setElementOrder/containers": {}}},
            400,
            "invalid patch format of setElementOrder list",
            id="setElementOrder",
        ),
        pytest.param(
            {"spec": {"$setElementOrder/containers": [{"name": "web"}], "containers": [{"name": "other"}]}},
            422,
            "doesn't match $setElementOrder list",
            id="an element that setElementOrder does not list",
        ),
        pytest.param(
            {"spec": {"containers": [{"image": "x"}]}}, 422, "does not contain declared merge key: name", id="no key"
        ),
        pytest.param({"spec": {"containers": ["x"]}}, 422, "is no mapping: 'x'", id="element that is no mapping"),
        pytest.param({"spec": {"containers": [{"name": {}}]}}, 422, "which is no scalar", id="key that is a mapping"),
        pytest.param({"metadata": {"finalizers": [{}]}}, 422, "which is no scalar", id="mapping in a list of scalars"),
        pytest.param({"spec": {"$patch": "merge"}}, 422, "unknown patch type: merge", id="unknown directive"),
        pytest.param(
            {"spec": {"containers": [{"$patch": "merge"}]}}, 422, "merging lists cannot yet be specified", id="merge"
        ),
        pytest.param({"spec": {"containers": [{"$patch": "x"}]}}, 422, "unknown patch type: x", id="unknown in a list"),
        pytest.param(
            {"spec": {"containers": [{"$patch": "delete"}]}}, 422, "does not contain declared merge key", id="delete"
        ),
    ],
)
def test_a_bad_patch_is_refused(patch, code, words):
    with pytest.raises(PatchError) as caught:
        merged(POD, patch)

    assert caught.value.status_code == code
    assert words in caught.value.message


def test_a_patch_may_not_nest_deeper_than_the_limit():
    patch: dict[str, object] = {}
    for _ in range(MAX_DEPTH):
        patch = {"a": patch}

    with pytest.raises(PatchError, match="nested more than 64 levels"):
        merged(POD, patch)


@pytest.mark.parametrize(
    ("api_version", "kind", "supported"),
    [
        pytest.param("v1", "Pod", True, id="pod"),
        pytest.param("apps/v1", "Deployment", True, id="deployment"),
        pytest.param("events.k8s.io/v1", "Event", True, id="event"),
        pytest.param("v1", "ConfigMap", True, id="kind without rules of its own"),
        pytest.param("lamina.dev/v1", "NodeLayers", False, id="custom resource"),
        pytest.param("scheduling.volcano.sh/v1beta1", "PodGroup", False, id="custom resource of a scheduler"),
        pytest.param("metrics.k8s.io/v1", "NodeMetrics", False, id="custom resource below k8s.io"),
    ],
)
def test_only_built_in_kinds_support_strategic_merge(api_version, kind, supported):
    assert supports_strategic_merge(api_version, kind) is supported
