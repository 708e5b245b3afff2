"""Merge patch: the rules of RFC 7386."""

import pytest

from lamina.simulator.facade.patches.json_values import MAX_DEPTH
from lamina.simulator.facade.patches.merge_patch import apply_merge_patch
from lamina.simulator.facade.patches.patch_error import PatchError


@pytest.mark.parametrize(
    ("document", "patch", "merged"),
    [
        pytest.param({"a": "b"}, {"a": "c"}, {"a": "c"}, id="replace"),
        pytest.param({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}, id="add"),
        pytest.param({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}, id="remove"),
        pytest.param({"a": "b"}, {"b": None}, {"a": "b"}, id="remove what is missing"),
        pytest.param({"a": ["b"]}, {"a": "c"}, {"a": "c"}, id="a list becomes a scalar"),
        pytest.param({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}, id="a scalar becomes a list"),
        pytest.param({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}, id="nested"),
        pytest.param({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}, id="lists are replaced"),
        pytest.param({"e": None}, {"a": 1}, {"e": None, "a": 1}, id="a null of the document stays"),
        pytest.param({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}, id="no nulls in a new mapping"),
        pytest.param({"a": [1, 2]}, {"a": {"b": 1, "c": None}}, {"a": {"b": 1}}, id="a list becomes a mapping"),
        pytest.param({}, {"a": [{"b": None}]}, {"a": [{"b": None}]}, id="nulls inside lists stay"),
    ],
)
def test_a_patch_is_merged_as_the_rfc_says(document, patch, merged):
    assert apply_merge_patch(document, patch) == merged


@pytest.mark.parametrize("patch", [[], None, "x", 1])
def test_a_patch_that_is_no_object_is_refused_with_400(patch):
    with pytest.raises(PatchError, match="must be a JSON object") as caught:
        apply_merge_patch({}, patch)

    assert caught.value.status_code == 400


def test_a_patch_and_a_document_are_never_changed():
    document, patch = {"a": {"b": 1}}, {"a": {"b": None, "c": {"d": None}}}

    assert apply_merge_patch(document, patch) == {"a": {"c": {}}}
    assert (document, patch) == ({"a": {"b": 1}}, {"a": {"b": None, "c": {"d": None}}})


def test_a_patch_may_not_nest_deeper_than_the_limit():
    patch: dict[str, object] = {}
    for _ in range(MAX_DEPTH):
        patch = {"a": patch}

    with pytest.raises(PatchError, match="nested more than 64 levels"):
        apply_merge_patch({}, patch)
