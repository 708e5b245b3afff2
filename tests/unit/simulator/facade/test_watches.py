"""Watches: where they begin, what they select, how they end."""

from collections.abc import Callable

import pytest

from lamina.simulator.facade import object_store
from lamina.simulator.facade.api_messages import WatchResponse
from tests.unit.simulator.facade.api_client import CONFIG_MAPS, PODS, NotedFacade, a_config_map, a_pod_object, labelled
from tests.work import steps

INITIAL = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"


@pytest.fixture
def facade() -> NotedFacade:
    return NotedFacade()


def test_a_watch_begins_strictly_after_its_resource_version(facade):
    first = facade.made(PODS, a_pod_object("a"))
    facade.made(PODS, a_pod_object("b"))
    events = facade.watch(f"{PODS}?resourceVersion={first['metadata']['resourceVersion']}")
    facade.made(PODS, a_pod_object("c"))

    assert [("ADDED", "b"), ("ADDED", "c")] == events.seen


@pytest.mark.parametrize(
    "query", [pytest.param("", id="no version"), pytest.param("?resourceVersion=0", id="any version")]
)
def test_a_watch_without_a_version_begins_with_all_objects(facade, query):
    facade.made(PODS, a_pod_object("b"))
    facade.made(PODS, a_pod_object("a"))

    assert [("ADDED", "a"), ("ADDED", "b")] == facade.watch(PODS + query).seen


def test_an_object_that_begins_to_match_is_added_and_one_that_ceases_to_match_is_deleted(facade):
    """kube-scheduler learns from that DELETED that a pod has ended."""
    events = facade.watch(f"{PODS}?fieldSelector=status.phase!%3DSucceeded,status.phase!%3DFailed")
    facade.made(PODS, a_pod_object("p"))
    facade.bind("p", "n1")
    facade.patch(f"{PODS}/p/status", {"status": {"phase": "Running"}})
    facade.patch(f"{PODS}/p/status", {"status": {"phase": "Succeeded"}})
    facade.patch(f"{PODS}/p", {"metadata": {"labels": {"seen": "no"}}})
    facade.delete(f"{PODS}/p")

    assert [("ADDED", "p"), ("MODIFIED", "p"), ("MODIFIED", "p"), ("DELETED", "p")] == events.seen
    last = events.all[-1]["object"]
    assert "Running" == last["status"]["phase"], "the previous object"
    assert int(events.all[-2]["object"]["metadata"]["resourceVersion"]) < int(last["metadata"]["resourceVersion"])


def test_labels_select_as_fields_do(facade):
    events = facade.watch(f"{CONFIG_MAPS}?labelSelector=app%3Dweb")
    facade.made(CONFIG_MAPS, a_config_map("a"))
    facade.patch(f"{CONFIG_MAPS}/a", {"metadata": {"labels": {"app": "web"}}})
    facade.patch(f"{CONFIG_MAPS}/a", {"data": {"k": "v"}})
    facade.patch(f"{CONFIG_MAPS}/a", {"metadata": {"labels": {"app": "db"}}})
    facade.made(CONFIG_MAPS, labelled(a_config_map("b"), app="web"))
    facade.delete(f"{CONFIG_MAPS}/b")

    assert [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a"), ("ADDED", "b"), ("DELETED", "b")] == events.seen


def test_a_watch_of_a_namespace_does_not_see_others(facade):
    events = facade.watch("/api/v1/namespaces/kube-system/configmaps")
    facade.made(CONFIG_MAPS, a_config_map("a"))

    assert [] == events.seen


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/api/v1/watch/namespaces/default/configmaps/a", id="older form"),
        pytest.param(f"{CONFIG_MAPS}?fieldSelector=metadata.name%3Da", id="field selector"),
        pytest.param(f"{CONFIG_MAPS}/a", id="object"),
    ],
)
def test_one_object_can_be_watched(facade, path):
    events = facade.watch(path)
    facade.made(CONFIG_MAPS, a_config_map("b"))
    facade.made(CONFIG_MAPS, a_config_map("a"))

    assert [("ADDED", "a")] == events.seen


def test_a_streaming_list_ends_with_a_bookmark(facade):
    facade.made(PODS, a_pod_object("a"))
    events = facade.watch(f"{PODS}?{INITIAL}")
    facade.made(PODS, a_pod_object("b"))

    assert [("ADDED", "a"), ("BOOKMARK", ""), ("ADDED", "b")] == events.seen
    bookmark = events.all[1]["object"]
    assert {"k8s.io/initial-events-end": "true"} == bookmark["metadata"]["annotations"]
    assert ("Pod", "v1") == (bookmark["kind"], bookmark["apiVersion"])
    assert int(events.all[0]["object"]["metadata"]["resourceVersion"]) <= int(bookmark["metadata"]["resourceVersion"])


def test_a_streaming_list_of_nothing_has_only_the_bookmark(facade):
    assert [("BOOKMARK", "")] == facade.watch(f"{PODS}?{INITIAL}").seen


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("sendInitialEvents=true", id="no match"),
        pytest.param("sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=1", id="exact match"),
        pytest.param("resourceVersionMatch=NotOlderThan&resourceVersion=1", id="match of an ordinary watch"),
    ],
)
def test_a_streaming_list_that_would_be_ignored_is_refused(facade, query):
    """A client that asked for it would wait for the bookmark for ever; after 422 it lists instead."""
    status, found = facade.send("GET", f"{PODS}?watch=true&{query}")

    assert (422, "Invalid") == (status, found["reason"])


def test_a_version_that_is_not_kept_any_more_is_gone(facade, monkeypatch):
    monkeypatch.setattr(object_store.ResourceTable.__init__, "__defaults__", (3,))
    for number in range(6):
        facade.made(CONFIG_MAPS, a_config_map(f"c{number}"))
    status, found = facade.send("GET", f"{CONFIG_MAPS}?watch=true&resourceVersion=2")

    assert (410, "Expired") == (status, found["reason"])


def test_a_version_from_the_future_is_not_answered_with_silence(facade):
    status, found = facade.send("GET", f"{PODS}?watch=true&resourceVersion=99999")

    assert (504, "Timeout") == (status, found["reason"])
    assert "ResourceVersionTooLarge" == found["details"]["causes"][0]["reason"]


@pytest.mark.parametrize(
    ("query", "seconds"),
    [
        pytest.param("", 1800.0, id="server's limit"),
        pytest.param("&timeoutSeconds=431", 431.0, id="client's limit"),
        pytest.param("&timeoutSeconds=999999999", 86400.0, id="at most a day"),
    ],
)
def test_a_watch_ends_when_its_client_wants(facade, query, seconds):
    answer = facade.answer("GET", f"{PODS}?watch=true{query}")

    assert isinstance(answer, WatchResponse)
    assert seconds == answer.seconds


def test_a_closed_watch_hears_nothing(facade):
    events = facade.watch(PODS)
    events.watch.close()
    events.watch.close()
    facade.made(PODS, a_pod_object("a"))

    assert [] == events.seen


def test_a_write_that_changes_nothing_is_not_seen(facade):
    facade.made(CONFIG_MAPS, a_config_map("a", k="v"))
    events = facade.watch(f"{CONFIG_MAPS}?resourceVersion={facade.revision}")
    facade.patch(f"{CONFIG_MAPS}/a", {"data": {"k": "v"}})
    facade.put(f"{CONFIG_MAPS}/a", a_config_map("a", k="v"))

    assert [] == events.seen


def test_watches_get_the_form_that_they_ask_for(facade):
    accept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    answer = facade.answer("GET", f"{PODS}?watch=true", accept=accept)
    lines: list[bytes] = []
    answer.open(lines.append)
    facade.made(PODS, a_pod_object("a"))

    assert 1 == len(lines)
    assert b'"kind":"PartialObjectMetadata"' in lines[0]
    assert b"containers" not in lines[0]


def test_watches_that_begin_together_share_the_bytes_of_all_objects(facade):
    for number in range(3):
        facade.made(CONFIG_MAPS, a_config_map(f"c{number}"))
    sent: list[bytes] = []
    for _ in range(3):
        opened(facade, f"{CONFIG_MAPS}?watch=true", sent.append)

    assert 3 == len(sent)
    assert sent[0] is sent[1] is sent[2]
    assert 3 == sent[0].count(b"\n")


def test_shared_bytes_are_those_of_the_present_state_and_of_the_namespace(facade):
    facade.made(CONFIG_MAPS, a_config_map("a"))
    other = "/api/v1/namespaces/kube-system/configmaps"

    assert [("ADDED", "a")] == facade.watch(CONFIG_MAPS).seen
    assert [] == facade.watch(other).seen
    facade.made(CONFIG_MAPS, a_config_map("b"))
    assert [("ADDED", "a"), ("ADDED", "b")] == facade.watch(CONFIG_MAPS).seen
    facade.delete(f"{CONFIG_MAPS}/a")
    assert [("ADDED", "b")] == facade.watch(CONFIG_MAPS).seen
    assert [("ADDED", "b")] == facade.watch("/api/v1/configmaps").seen


def test_the_work_of_another_watch_does_not_grow_with_the_objects():
    def work(objects: int) -> int:
        facade = NotedFacade()
        for number in range(objects):
            facade.made(CONFIG_MAPS, a_config_map(f"c{number}"))
        opened(facade, f"{CONFIG_MAPS}?watch=true", len)
        return steps(lambda: opened(facade, f"{CONFIG_MAPS}?watch=true", len))

    assert work(10) == work(500)


def test_the_work_of_a_write_is_the_same_for_every_further_watch():
    def work(watches: int) -> int:
        facade = NotedFacade()
        for _ in range(watches):
            opened(facade, f"{CONFIG_MAPS}?watch=true", len)
        return steps(lambda: facade.made(CONFIG_MAPS, a_config_map("a")))

    few, more, many = work(10), work(20), work(110)
    assert many - more == 9 * (more - few)


def opened(facade: NotedFacade, path: str, send: Callable[[bytes], object]) -> None:
    """Open a watch without decoding what it sends."""
    answer = facade.answer("GET", path)
    assert isinstance(answer, WatchResponse)
    answer.open(send)
