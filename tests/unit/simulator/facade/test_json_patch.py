"""JSON patch: the operations of RFC 6902, where the API server is more lenient, and its refusals and limits."""

import pytest

from lamina.simulator.facade.patches.json_patch import MAX_COPIED_BYTES, MAX_OPERATIONS, apply_json_patch
from lamina.simulator.facade.patches.json_values import MAX_DEPTH, copy_json
from lamina.simulator.facade.patches.patch_error import PatchError

REFUSED = "the server rejected our request due to an error in our request: "


def operation(kind, path, **more):
    return {"op": kind, "path": path, **more}


@pytest.mark.parametrize(
    ("document", "operations", "patched"),
    [
        pytest.param({"a": 1}, [operation("add", "/b", value=2)], {"a": 1, "b": 2}, id="add a member"),
        pytest.param({"a": 1}, [operation("add", "/a", value=2)], {"a": 2}, id="add a member that exists"),
        pytest.param(
            {"a": {}}, [operation("add", "/a/b", value={"c": {}})], {"a": {"b": {"c": {}}}}, id="add a mapping"
        ),
        pytest.param({"a": [1, 3]}, [operation("add", "/a/1", value=2)], {"a": [1, 2, 3]}, id="insert an element"),
        pytest.param({"a": [1]}, [operation("add", "/a/-", value=[2])], {"a": [1, [2]]}, id="append a list"),
        pytest.param({"a": [1]}, [operation("add", "/a/1", value=2)], {"a": [1, 2]}, id="insert at the end"),
        pytest.param({"a": 1}, [operation("add", "/b", value=None)], {"a": 1, "b": None}, id="add null"),
        pytest.param({"a": 1, "b": 2}, [operation("remove", "/b")], {"a": 1}, id="remove a member"),
        pytest.param({"a": [1, 2, 3]}, [operation("remove", "/a/1")], {"a": [1, 3]}, id="remove an element"),
        pytest.param({"a": 1}, [operation("replace", "/a", value="x")], {"a": "x"}, id="replace a member"),
        pytest.param({"a": [1, 2]}, [operation("replace", "/a/0", value=9)], {"a": [9, 2]}, id="replace an element"),
        pytest.param({"a": 1}, [operation("replace", "", value={"b": 2})], {"b": 2}, id="replace the document"),
        pytest.param(
            {"a": {"x": 1, "y": 2}, "b": {}},
            [operation("move", "/b/z", **{"from": "/a/x"})],
            {"a": {"y": 2}, "b": {"z": 1}},
            id="move a member",
        ),
        pytest.param(
            {"a": [1, 2, 3]}, [operation("move", "/a/2", **{"from": "/a/0"})], {"a": [2, 3, 1]}, id="move an element"
        ),
        pytest.param(
            {"a": {"x": [1]}},
            [operation("copy", "/b", **{"from": "/a"})],
            {"a": {"x": [1]}, "b": {"x": [1]}},
            id="copy",
        ),
        pytest.param({"a": "x"}, [operation("test", "/a", value="x")], {"a": "x"}, id="test"),
        pytest.param(
            {"a": {"b": [1, None]}}, [operation("test", "", value={"a": {"b": [1.0, None]}})], None, id="test all"
        ),
        pytest.param({"a~b": {"c/d": 1}}, [operation("remove", "/a~0b/c~1d")], {"a~b": {}}, id="escaped names"),
        pytest.param({"~1": 1}, [operation("test", "/~01", value=1)], None, id="escapes are read from left to right"),
        pytest.param({"": {"": 1}}, [operation("replace", "//", value=2)], {"": {"": 2}}, id="empty names"),
        pytest.param({"a": 1}, [operation("add", "/b", value=1, more=2)], {"a": 1, "b": 1}, id="unknown member"),
        pytest.param({"a": 1}, [], {"a": 1}, id="no operation"),
        pytest.param(
            {"a": [{"n": 1}]},
            [operation("test", "/a/0/n", value=1), operation("add", "/a/0/m", value=2), operation("remove", "/a/0/n")],
            {"a": [{"m": 2}]},
            id="operations in sequence",
        ),
    ],
)
def test_an_operation_changes_the_document_as_the_rfc_says(document, operations, patched):
    assert apply_json_patch(document, operations) == (document if patched is None else patched)


@pytest.mark.parametrize(
    ("document", "operations", "patched"),
    [
        pytest.param({}, [operation("replace", "/a", value=1)], {"a": 1}, id="replace adds a missing member"),
        pytest.param({"a": [1, 2]}, [operation("remove", "/a/-1")], {"a": [1]}, id="negative index"),
        pytest.param({"a": [1, 2]}, [operation("add", "/a/-1", value=3)], {"a": [1, 2, 3]}, id="insert before the end"),
        pytest.param({}, [operation("test", "/a", value=None)], {}, id="a missing member is null"),
        pytest.param({}, [operation("copy", "/b", **{"from": "/a"})], {"b": None}, id="copy of a missing member"),
        pytest.param({}, [operation("add", "/a")], {"a": None}, id="a missing value is null"),
    ],
)
def test_the_api_server_is_more_lenient_than_the_rfc(document, operations, patched):
    assert apply_json_patch(document, operations) == patched


@pytest.mark.parametrize(
    ("document", "failing", "words"),
    [
        pytest.param(
            {"a": 1},
            operation("add", "/b/c", value=1),
            'add operation does not apply: doc is missing path: "/b/c": missing value',
            id="missing parent",
        ),
        pytest.param(
            {"a": 1},
            operation("add", "/a/b", value=1),
            "add operation does not apply: doc is missing path",
            id="scalar",
        ),
        pytest.param(
            {}, operation("add", "", value={}), "add operation does not apply: doc is missing path", id="root"
        ),
        pytest.param(
            {}, operation("add", "a", value=1), "add operation does not apply: doc is missing path", id="no /"
        ),
        pytest.param(
            {"a": []}, operation("add", "/a/1", value=1), "Unable to access invalid index: 1", id="index past the end"
        ),
        pytest.param({"a": []}, operation("add", "/a/x", value=1), "was not a proper array index: 'x'", id="no index"),
        pytest.param(
            {"a": []}, operation("replace", "/a/-", value=1), "not a proper array index: '-'", id="after the end"
        ),
        pytest.param({}, operation("remove", "/a"), "Unable to remove nonexistent key: a: missing value", id="remove"),
        pytest.param({"a": [1]}, operation("remove", "/a/1"), "Unable to access invalid index: 1", id="remove element"),
        pytest.param({"a": 1}, operation("test", "/a", value=2), "testing value /a failed: test failed", id="test"),
        pytest.param({"a": True}, operation("test", "/a", value=1), "testing value /a failed", id="true is not 1"),
        pytest.param({"a": "1"}, operation("test", "/a", value=1), "testing value /a failed", id="text is no number"),
        pytest.param(
            {"a": 1}, operation("move", "/a/b", **{"from": "/a"}), "doc is missing path", id="move into itself"
        ),
        pytest.param(
            {}, operation("move", "/b", **{"from": "/a"}), "Unable to remove nonexistent key: a", id="move nothing"
        ),
        pytest.param({}, operation("copy", "/b"), "copy operation failed to decode from", id="no source"),
        pytest.param({}, {"op": "add", "value": 1}, "add operation failed to decode path", id="no path"),
        pytest.param({}, operation("swap", "/a"), "Unexpected kind: swap", id="unknown operation"),
        pytest.param({}, {"path": "/a"}, "Unexpected kind: unknown", id="no operation"),
        pytest.param({}, operation("replace", "", value=[1]), "the patched document is not a JSON object", id="a list"),
        pytest.param({}, operation("replace", "", value=1), "value must be object or array", id="a scalar as document"),
    ],
)
def test_an_operation_that_fails_is_refused_with_422(document, failing, words):
    with pytest.raises(PatchError) as caught:
        apply_json_patch(document, [failing])

    assert (caught.value.status_code, caught.value.reason) == (422, "Invalid")
    assert caught.value.message.startswith(REFUSED)
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        pytest.param({}, "a JSON patch must be a list of operations", id="a mapping"),
        pytest.param(["x"], "operation 0 must be a JSON object", id="a word"),
        pytest.param([{"op": 1}], '"op" of operation 0 must be a string', id="number as operation"),
        pytest.param([{"op": "add", "path": []}], '"path" of operation 0 must be a string', id="list as path"),
    ],
)
def test_what_is_no_patch_is_refused_with_400(patch, words):
    with pytest.raises(PatchError) as caught:
        apply_json_patch({}, patch)

    assert (caught.value.status_code, caught.value.reason) == (400, "BadRequest")
    assert words in caught.value.message


def test_no_operation_takes_effect_if_one_fails():
    document = {"a": [1]}

    with pytest.raises(PatchError):
        apply_json_patch(document, [operation("add", "/a/-", value=2), operation("remove", "/b")])

    assert document == {"a": [1]}


def test_a_patch_and_a_document_are_never_changed():
    document, value = {"a": {"b": [1]}}, {"c": [2]}
    before = copy_json(document)

    patched = apply_json_patch(
        document,
        [operation("add", "/v", value=value), operation("add", "/v/c/-", value=3), operation("add", "/a/b/-", value=4)],
    )

    assert patched == {"a": {"b": [1, 4]}, "v": {"c": [2, 3]}}
    assert (document, value) == (before, {"c": [2]})


def test_a_patch_has_a_most_of_operations():
    with pytest.raises(PatchError, match="maximum operations in a JSON patch is 10000, got 10001") as caught:
        apply_json_patch({}, [operation("test", "/a", value=None)] * (MAX_OPERATIONS + 1))

    assert caught.value.status_code == 413


def test_copies_may_not_multiply_a_document():
    doubling = [operation("copy", f"/a/{number}", **{"from": "/a"}) for number in range(40)]

    with pytest.raises(PatchError, match=f"exceeding the limit {MAX_COPIED_BYTES}"):
        apply_json_patch({"a": {"x": "y" * 1000}}, doubling)


@pytest.mark.parametrize("kind", ["add", "replace"])
def test_a_patch_may_not_nest_deeper_than_the_limit(kind):
    value: object = None
    for _ in range(MAX_DEPTH):
        value = [value]

    with pytest.raises(PatchError, match="nested more than 64 levels") as caught:
        apply_json_patch({}, [operation(kind, "/a", value=value)])

    assert caught.value.status_code == 400


def test_copies_may_not_nest_deeper_than_the_limit():
    deeper = [operation("copy", "/a/a", **{"from": "/a"}) for _ in range(MAX_DEPTH)]

    with pytest.raises(PatchError, match="nested more than 64 levels"):
        apply_json_patch({"a": {}}, deeper)
