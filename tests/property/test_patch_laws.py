"""
Laws of patches: what is applied twice, to itself, or in vain changes nothing more, and inputs are never changed.

Documents are small JSON objects, and pods and services with the lists that merge by key.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.simulator.facade.patches.field_set import FieldSet, field_set_from_json, field_set_to_json
from lamina.simulator.facade.patches.json_patch import apply_json_patch
from lamina.simulator.facade.patches.json_values import copy_json, json_equal
from lamina.simulator.facade.patches.merge_patch import apply_merge_patch
from lamina.simulator.facade.patches.patch_error import PatchError
from lamina.simulator.facade.patches.server_side_apply import apply_configuration, record_update
from lamina.simulator.facade.patches.strategic_merge import apply_strategic_merge

NOW = "2026-01-01T00:00:00Z"

names = st.sampled_from(["a", "b", "c", "d~e", "f/g", ""])
letters = st.sampled_from("abcd")
scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x", "y"])
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=12
)
documents = st.dictionaries(names, values, max_size=4)


def optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


def keyed(key: str, keys: st.SearchStrategy[Any], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    elements = st.fixed_dictionaries({key: keys}, optional=fields)
    return st.lists(elements, max_size=4, unique_by=lambda element: element[key])


maps = st.dictionaries(letters, st.sampled_from(["x", "y"]), max_size=3)
env = keyed("name", letters, value=letters)
ports = keyed("containerPort", st.integers(1, 4), name=letters)
containers = keyed("name", letters, image=letters, env=env, ports=ports, args=st.lists(letters, max_size=3))
metadata = optional(
    labels=maps, finalizers=st.lists(letters, max_size=3, unique=True), ownerReferences=keyed("uid", letters)
)
pod_specs = optional(
    containers=containers,
    volumes=keyed("name", letters, emptyDir=st.just({})),
    tolerations=st.lists(st.builds(lambda key: {"key": key}, letters), max_size=3),
    nodeSelector=maps,
    nodeName=letters,
)
statuses = optional(conditions=keyed("type", letters, status=letters), phase=letters)
pods = st.builds(
    lambda metadata, spec, status: {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", **metadata},
        "spec": spec,
        "status": status,
    },
    metadata,
    pod_specs,
    statuses,
)


def merged_pod(pod, patch):
    return apply_strategic_merge(pod, patch, "v1", "Pod")


def status_of(apply, document, patch):
    """Return the HTTP status of a patch."""
    try:
        return 200 if isinstance(apply(document, patch), dict) else 500
    except PatchError as error:
        return error.status_code


def without_managers(found):
    return {**found, "metadata": {name: value for name, value in found["metadata"].items() if name != "managedFields"}}


def pointers(value, pointer=""):
    """Return the pointer of every value in a document, except the document's own."""
    if isinstance(value, dict):
        parts = [(name.replace("~", "~0").replace("/", "~1"), inner) for name, inner in value.items()]
    else:
        parts = [(str(index), inner) for index, inner in enumerate(value)] if isinstance(value, list) else []
    for name, inner in parts:
        yield f"{pointer}/{name}", inner
        yield from pointers(inner, f"{pointer}/{name}")


# ------------------------------------------------------------------------------------------ merge patch, JSON patch


@given(documents, documents)
def test_a_merge_patch_applied_twice_is_one_applied_once(document, patch):
    once = apply_merge_patch(document, patch)

    assert json_equal(apply_merge_patch(once, patch), once)


@given(documents, documents)
def test_a_merge_patch_sets_every_scalar_and_removes_every_null(document, patch):
    merged = apply_merge_patch(document, patch)

    for name, value in patch.items():
        if value is None:
            assert name not in merged
        elif not isinstance(value, dict):
            assert json_equal(merged[name], value)


@given(documents)
def test_every_value_of_a_document_passes_its_test_and_may_replace_itself(document):
    operations = [
        operation
        for pointer, value in pointers(document)
        for operation in (
            {"op": "test", "path": pointer, "value": value},
            {"op": "replace", "path": pointer, "value": value},
        )
    ]

    assert json_equal(apply_json_patch(document, operations), document)


@given(documents, st.data())
def test_what_a_patch_added_another_removes(document, data):
    places = [pointer for pointer, value in pointers(document) if isinstance(value, dict)]
    place = data.draw(st.sampled_from(["", *places])) + "/new"

    added = apply_json_patch(document, [{"op": "add", "path": place, "value": 1}])

    assert json_equal(apply_json_patch(added, [{"op": "remove", "path": place}]), document)


@given(documents, st.data())
def test_a_value_moved_away_and_back_is_where_it_was(document, data):
    members = [pointer for pointer, _ in pointers(document)]
    pointer = data.draw(st.sampled_from(members)) if members else None
    there = {"op": "move", "from": pointer, "path": "/elsewhere"}
    back = {"op": "move", "from": "/elsewhere", "path": pointer}

    assert pointer is None or json_equal(apply_json_patch(document, [there, back]), document)


kinds = st.sampled_from(["add", "remove", "replace", "move", "copy", "test"])
paths = st.lists(st.sampled_from(["a", "b", "0", "1", "-", "-1"]), max_size=3).map(
    lambda parts: "".join(f"/{part}" for part in parts)
)
operations = st.fixed_dictionaries({"op": kinds, "path": paths, "from": paths, "value": values})


@given(documents, st.lists(operations, max_size=5))
def test_any_json_patch_is_applied_or_refused_and_changes_no_input(document, patch):
    before = copy_json([document, patch])

    assert status_of(apply_json_patch, document, patch) in (200, 422)
    assert [document, patch] == before


# ------------------------------------------------------------------------------------------------- strategic merge


@given(pods)
def test_a_pod_merged_with_itself_stays_the_same(pod):
    assert merged_pod(pod, pod) == pod


@given(pods, pods)
def test_a_strategic_merge_patch_applied_twice_is_one_applied_once(pod, patch):
    once = merged_pod(pod, patch)

    assert merged_pod(once, patch) == once


@given(pods, pods)
def test_a_strategic_merge_changes_no_input_and_loses_no_element(pod, patch):
    before = copy_json([pod, patch])

    merged = merged_pod(pod, patch)

    assert [pod, patch] == before
    for source in (pod, patch):
        wanted = {container["name"] for container in source["spec"].get("containers", [])}
        assert wanted <= {container["name"] for container in merged["spec"].get("containers", [])}


@given(pods, documents)
def test_any_strategic_merge_patch_is_applied_or_refused(pod, patch):
    assert status_of(merged_pod, pod, {"spec": patch, "metadata": patch}) in (200, 400, 422)


# ---------------------------------------------------------------------------------------------- server-side apply


@given(pods)
def test_an_applied_configuration_is_what_the_object_holds(pod):
    assert without_managers(apply_configuration(None, pod, manager="one", force=False, now=NOW)) == pod


@given(pods, pods)
def test_a_configuration_applied_twice_is_one_applied_once(first, second):
    live = apply_configuration(None, first, manager="one", force=False, now=NOW)
    once = apply_configuration(live, second, manager="two", force=True, now=NOW)

    assert apply_configuration(once, second, manager="two", force=False, now=NOW) == once


def leaves(value):
    """Return an object without empty mappings and lists: an applied mapping that loses all its fields goes too."""
    if isinstance(value, dict):
        found = {name: leaves(inner) for name, inner in value.items()}
        return {name: inner for name, inner in found.items() if inner not in ({}, [])}
    return [leaves(inner) for inner in value] if isinstance(value, list) else value


@given(pods, pods)
def test_the_only_manager_replaces_its_own_configuration(first, second):
    live = apply_configuration(None, first, manager="one", force=False, now=NOW)

    result = apply_configuration(live, second, manager="one", force=False, now=NOW)

    assert leaves(without_managers(result)) == leaves(second)


@given(pods, pods)
def test_a_manager_that_gives_up_everything_leaves_what_others_applied(first, second):
    nothing = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    live = apply_configuration(None, first, manager="one", force=False, now=NOW)
    both = apply_configuration(live, second, manager="two", force=True, now=NOW)

    left = apply_configuration(both, nothing, manager="one", force=False, now=NOW)

    assert leaves(merged_pod(left, second)) == leaves(left)
    assert "one" not in [entry["manager"] for entry in left["metadata"].get("managedFields", [])]


@given(pods, pods)
def test_an_update_leaves_no_field_with_two_managers(first, second):
    live = apply_configuration(None, first, manager="one", force=False, now=NOW)

    updated = record_update(live, second, manager="two", now=NOW)

    fields = [field_set_from_json(entry["fieldsV1"]) for entry in updated["metadata"].get("managedFields", [])]
    assert without_managers(updated) == second
    assert len(fields) < 2 or not (fields[0] & fields[1])


# --------------------------------------------------------------------------------------------------------- field sets

elements = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"'])
field_paths = st.lists(st.lists(elements, min_size=1, max_size=3).map(tuple), max_size=6)


def field_set(paths):
    found = FieldSet()
    for path in paths:
        found.insert(path)
    return found


@given(field_paths, field_paths)
def test_field_sets_are_sets_of_paths(left, right):
    one, two = field_set(left), field_set(right)

    assert set((one | two).paths()) == {*left, *right}
    assert set((one & two).paths()) == {*left} & {*right}
    assert set((one - two).paths()) == {*left} - {*right}
    assert bool(one) is bool(left)


@given(field_paths)
def test_a_field_set_is_written_and_read_as_the_same(paths):
    assert set(field_set_from_json(field_set_to_json(field_set(paths))).paths()) == {*paths}


@pytest.mark.parametrize("fields", [None, [], "x", {"f:a": None}, {"f:a": [1]}])
def test_fields_of_another_form_are_ignored(fields):
    assert not field_set_from_json(fields)
