"""Lines of a watch, as far as the watch needs them."""

import json

import pytest

from lamina.clients.kube import watch_events
from tests.unit.clients.kube.model_cluster import bookmark, line, status

POD = {"kind": "Pod", "metadata": {"name": "web", "namespace": "shop", "resourceVersion": "7"}, "spec": {}}


def body(data: bytes) -> bytes:
    event = watch_events.read_event(data)
    assert event is not None
    return watch_events.object_of(data, event)


def test_an_event_tells_what_happened_to_whom_and_which_version_that_was():
    data = line("MODIFIED", POD).rstrip()
    event = watch_events.read_event(data)

    assert event is not None
    assert ("MODIFIED", "shop/web", "7") == (event.type, event.object.name, event.object.version)
    assert POD == json.loads(watch_events.object_of(data, event))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b'{"type":"ADDED","object":%s}', id="as API servers write"),
        pytest.param(b'{ "type" : "ADDED", "object" : %s }', id="with spaces"),
        pytest.param(b'{"object":%s,"type":"ADDED"}', id="the object first"),
        pytest.param(b'{"type":"ADDED","object":%s} ', id="a space at the end"),
        pytest.param(b'{"kind":null,"type":"ADDED","object":%s}', id="something before"),
    ],
)
def test_the_object_is_found_however_the_line_is_written(data):
    data = data.replace(b"%s", json.dumps(POD).encode())
    event = watch_events.read_event(data)

    assert event is not None
    assert POD == json.loads(watch_events.object_of(data, event))


@pytest.mark.parametrize(
    ("metadata", "name", "version"),
    [
        pytest.param({"name": "n1", "resourceVersion": "7"}, "n1", "7", id="no namespaces"),
        pytest.param({"name": "n1", "namespace": None, "resourceVersion": None}, "n1", "", id="null"),
        pytest.param({"name": "n1"}, "n1", "", id="no version"),
    ],
)
def test_an_object_is_known_by_its_name(metadata, name, version):
    head = watch_events.read_head(json.dumps({"metadata": metadata}).encode())

    assert (name, version) == (head.name, head.version)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"{}", id="no metadata"),
        pytest.param(b'{"metadata":null}', id="null metadata"),
        pytest.param(b'{"metadata":{"namespace":"shop"}}', id="no name"),
        pytest.param(b'{"metadata":{"name":7}}', id="a number for a name"),
        pytest.param(b'{"metadata":', id="half"),
        pytest.param(b"[" * 100_000, id="nested without end"),
    ],
)
def test_an_object_that_does_not_say_whose_it_is_has_no_name(data):
    assert "" == watch_events.read_head(data).name


def test_an_event_whose_object_makes_no_sense_is_an_event_all_the_same():
    event = watch_events.read_event(b'{"type":"ADDED","object":{"metadata":{"name":7}}}')

    assert event is not None
    assert ("ADDED", "") == (event.type, event.object.name)


@pytest.mark.parametrize("data", [b"<html>", b'{"type":"ADDED"', b"7", b'{"type":7}', b"[" * 100_000, b"\xff"])
def test_what_is_no_event_is_told_from_one(data):
    assert watch_events.read_event(data) is None


def test_a_bookmark_of_a_real_server_has_null_where_an_object_has_fields():
    found = watch_events.read_bookmark(body(bookmark(12746)))

    assert found is not None
    assert ("12746", False) == (found.version, found.ends_list)


def test_the_bookmark_that_ends_a_list_says_so():
    assert watch_events.read_bookmark(body(bookmark(5, ends_list=True))).ends_list


@pytest.mark.parametrize(
    ("data", "code"),
    [
        pytest.param(json.dumps(status(410, "Expired")).encode(), 410, id="Status"),
        pytest.param(b'{"message":"x"}', 500, id="without a code"),
        pytest.param(b"[]", 500, id="something else"),
        pytest.param(b"null", 500, id="nothing"),
    ],
)
def test_an_error_event_becomes_an_error(data, code):
    assert code == watch_events.read_error("watch", data).status
