"""The store: one counter for all resources, a bounded log, and no change without a new version."""

from typing import Any

import pytest

from lamina.simulator.facade.kube_object import NamespacedName
from lamina.simulator.facade.object_store import ObjectStore, ObjectVersion, ResourceTable, StoreEvent

A, B = NamespacedName("ns", "a"), NamespacedName("ns", "b")


def an_object(key: NamespacedName, value: int = 0) -> dict[str, Any]:
    metadata = {"namespace": key.namespace, "name": key.name}
    return {"kind": "Thing", "apiVersion": "v1", "metadata": metadata, "value": value}


@pytest.fixture
def store() -> ObjectStore:
    return ObjectStore()


def heard(table: ResourceTable) -> list[tuple[str, str, int]]:
    found: list[tuple[str, str, int]] = []
    table.listeners[lambda event: found.append((event.type, event.new.key.name, event.revision))] = None
    return found


def test_every_change_of_any_resource_gets_the_next_version(store):
    pods, nodes = store.table("", "pods"), store.table("", "nodes")
    first = store.revision

    versions = [
        store.put(pods, A, an_object(A)).revision,
        store.put(nodes, B, an_object(B)).revision,
        store.put(pods, A, an_object(A, 1)).revision,
        store.delete(nodes, B).revision,
    ]

    assert [first + 1, first + 2, first + 3, first + 4] == versions
    assert str(first + 3) == pods.get(A).object["metadata"]["resourceVersion"]


def test_a_write_that_changes_nothing_has_no_version_and_no_event(store):
    table = store.table("", "pods")
    stored = store.put(table, A, an_object(A))
    events = heard(table)

    again = store.put(table, A, {**an_object(A), "metadata": {**an_object(A)["metadata"], "resourceVersion": "1"}})

    assert stored is again
    assert (stored.revision, []) == (store.revision, events)


def test_listeners_hear_of_creation_change_and_deletion_in_order(store):
    table = store.table("", "pods")
    events = heard(table)
    start = store.revision
    store.put(table, A, an_object(A))
    store.put(table, A, an_object(A, 1))
    store.delete(table, A)

    assert [("ADDED", "a", start + 1), ("MODIFIED", "a", start + 2), ("DELETED", "a", start + 3)] == events


def test_deleting_what_does_not_exist_does_nothing(store):
    assert store.delete(store.table("", "pods"), A) is None
    assert 1 == store.revision


def test_objects_are_sorted_by_namespace_and_name(store):
    table = store.table("", "pods")
    for namespace, name in (("z", "a"), ("b", "z"), ("b", "c")):
        store.put(table, NamespacedName(namespace, name), an_object(NamespacedName(namespace, name)))

    assert [("b", "c"), ("b", "z"), ("z", "a")] == [tuple(one.key) for one in table.all()]
    assert [("b", "c"), ("b", "z")] == [tuple(one.key) for one in table.all("b")]


def test_the_log_is_bounded_and_says_what_it_has_dropped():
    table = ResourceTable(length=2)
    versions = [ObjectVersion(A, an_object(A, number), number) for number in range(1, 5)]
    for number, version in enumerate(versions):
        old = versions[number - 1] if number else None
        table.record(StoreEvent("MODIFIED" if old else "ADDED", version, old))

    assert table.since(1) is None
    assert [3, 4] == [event.revision for event in table.since(2)]
    assert [] == list(table.since(4))


def test_an_older_state_is_computed_from_the_log(store):
    table = store.table("", "pods")
    store.put(table, A, an_object(A))
    then = store.revision
    store.put(table, A, an_object(A, 1))
    store.put(table, B, an_object(B))
    store.delete(table, A)

    assert [("a", 0)] == [(one.key.name, one.object["value"]) for one in table.at(then)]
    assert ["b"] == [one.key.name for one in table.at(store.revision)]


def test_a_state_that_the_log_does_not_reach_is_unknown():
    table = ResourceTable(length=1)
    table.record(StoreEvent("ADDED", ObjectVersion(A, an_object(A), 1), None))
    table.record(StoreEvent("ADDED", ObjectVersion(B, an_object(B), 2), None))

    assert table.at(0) is None
    assert ["a"] == [one.key.name for one in table.at(1)]


def test_an_item_of_a_list_has_no_kind_and_no_version(store):
    stored = store.put(store.table("", "pods"), A, {"value": 7, **an_object(A)})

    assert stored.listed.startswith(b'{"value":0,') or stored.listed.startswith(b'{"value":7,')
    assert b"Thing" not in stored.listed
    assert stored.encoded.startswith(b'{"kind":"Thing","apiVersion":"v1",')


def test_a_frame_is_encoded_once_for_all_watches(store):
    table = store.table("", "pods")
    events: list[StoreEvent] = []
    table.listeners[events.append] = None
    store.put(table, A, an_object(A))

    assert events[0].frame("ADDED") is events[0].frame("ADDED")


def test_a_deferred_action_follows_all_listeners_of_the_change_that_caused_it(store):
    table = store.table("", "pods")
    table.listeners[lambda event: store.defer(lambda: store.delete(table, B)) if event.new.key == A else None] = None
    events = heard(table)
    store.put(table, B, an_object(B))

    store.put(table, A, an_object(A))

    assert [("ADDED", "b"), ("ADDED", "a"), ("DELETED", "b")] == [one[:2] for one in events]
