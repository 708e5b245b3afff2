"""Deletion: two steps for pods, finalizers, preconditions, dependents, namespaces, collections."""

from typing import Any

import pytest

from tests.unit.simulator.facade.api_client import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NODES,
    PODS,
    NotedFacade,
    a_config_map,
    a_deployment,
    a_node_object,
    a_pod_object,
    labelled,
)


@pytest.fixture
def facade() -> NotedFacade:
    return NotedFacade()


@pytest.fixture
def bound(facade: NotedFacade) -> NotedFacade:
    """A façade with a running pod p."""
    facade.made(PODS, a_pod_object("p"))
    facade.bind("p", "n1")
    facade.patch(f"{PODS}/p/status", {"status": {"phase": "Running"}})
    facade.inputs.take()
    return facade


def held(found: dict[str, Any]) -> dict[str, Any]:
    return {**found, "metadata": {**found["metadata"], "finalizers": ["example.com/hold"]}}


# --------------------------------------------------------------------------------------------------------------- pods


def test_a_running_pod_is_marked_and_stopped_by_its_kubelet(bound):
    bound.now = 100.0
    events = bound.watch(f"{PODS}?resourceVersion={bound.revision}")
    status, found = bound.delete(f"{PODS}/p")

    assert 200 == status
    # 100 s + 30 s of grace
    assert ("2026-01-01T00:02:10Z", 30) == (
        found["metadata"]["deletionTimestamp"],
        found["metadata"]["deletionGracePeriodSeconds"],
    )
    assert [("MODIFIED", "p")] == events.seen
    assert [("stopping", "p", "30")] == bound.inputs.take()
    assert ["p"] == bound.names(PODS)


@pytest.mark.parametrize(
    ("query", "body", "grace"),
    [
        pytest.param("", {"gracePeriodSeconds": 5}, 5, id="body"),
        pytest.param("?gracePeriodSeconds=7", None, 7, id="query"),
        pytest.param("", {"kind": "DeleteOptions", "apiVersion": "v1"}, 30, id="the pod's own"),
    ],
)
def test_the_client_chooses_the_grace_period(bound, query, body, grace):
    bound.delete(f"{PODS}/p{query}", body)

    assert [("stopping", "p", f"{grace}")] == bound.inputs.take()


def test_watches_see_both_steps_even_without_grace(bound):
    events = bound.watch(f"{PODS}?resourceVersion={bound.revision}")
    status, found = bound.delete(f"{PODS}/p", {"gracePeriodSeconds": 0})

    assert (200, 0) == (status, found["metadata"]["deletionGracePeriodSeconds"])
    assert [("MODIFIED", "p"), ("DELETED", "p")] == events.seen
    assert events.all[1]["object"]["metadata"]["resourceVersion"] == found["metadata"]["resourceVersion"]
    assert [("removed", "p")] == bound.inputs.take()


@pytest.mark.parametrize(
    "phase",
    [pytest.param("", id="not scheduled"), pytest.param("Succeeded", id="ended"), pytest.param("Failed", id="failed")],
)
def test_a_pod_that_no_kubelet_runs_is_gone_at_once(facade, phase):
    facade.made(PODS, a_pod_object("p"))
    if phase:
        facade.bind("p", "n1")
        facade.patch(f"{PODS}/p/status", {"status": {"phase": phase}})
    events = facade.watch(f"{PODS}?resourceVersion={facade.revision}")
    facade.delete(f"{PODS}/p", {"gracePeriodSeconds": 60})

    assert [("MODIFIED", "p"), ("DELETED", "p")] == events.seen
    assert 404 == facade.send("GET", f"{PODS}/p")[0]


def test_a_second_deletion_can_only_make_the_grace_period_shorter(bound):
    bound.delete(f"{PODS}/p")
    longer = bound.delete(f"{PODS}/p", {"gracePeriodSeconds": 60})[1]["metadata"]
    same = bound.delete(f"{PODS}/p")[1]["metadata"]
    shorter = bound.delete(f"{PODS}/p", {"gracePeriodSeconds": 10})[1]["metadata"]

    assert [30, 30, 10] == [one["deletionGracePeriodSeconds"] for one in (longer, same, shorter)]
    assert ("2026-01-01T00:00:30Z", "2026-01-01T00:00:10Z") == (same["deletionTimestamp"], shorter["deletionTimestamp"])
    assert [("stopping", "p", "30"), ("stopping", "p", "10")] == bound.inputs.take()


def test_the_same_name_can_be_used_again_with_a_new_uid(facade):
    first = facade.made(PODS, a_pod_object("p"))
    assert 200 == facade.delete(f"{PODS}/p", {"gracePeriodSeconds": 0})[0]
    second = facade.made(PODS, a_pod_object("p"))

    assert first["metadata"]["uid"] != second["metadata"]["uid"]


def test_a_name_is_taken_until_the_pod_has_stopped(bound):
    bound.delete(f"{PODS}/p")
    status, found = bound.post(PODS, a_pod_object("p"))

    assert (409, "AlreadyExists") == (status, found["reason"])
    assert "object is being deleted" in found["message"]


# --------------------------------------------------------------------------------------------------------- finalizers


def test_an_object_with_a_finalizer_stays_until_it_is_removed(facade):
    facade.made(CONFIG_MAPS, held(a_config_map("a", k="v")))
    events = facade.watch(f"{CONFIG_MAPS}?resourceVersion={facade.revision}")
    status, marked = facade.delete(f"{CONFIG_MAPS}/a")
    assert (200, "2026-01-01T00:00:00Z") == (status, marked["metadata"]["deletionTimestamp"])
    facade.patch(f"{CONFIG_MAPS}/a", {"metadata": {"finalizers": None}})

    assert [("MODIFIED", "a"), ("DELETED", "a")] == events.seen
    assert [] == facade.names(CONFIG_MAPS)


def test_no_finalizer_can_be_added_while_an_object_is_being_deleted(facade):
    facade.made(CONFIG_MAPS, held(a_config_map("a")))
    facade.delete(f"{CONFIG_MAPS}/a")
    more = {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}

    assert 422 == facade.patch(f"{CONFIG_MAPS}/a", more)[0]


def test_a_pod_with_a_finalizer_is_stopped_and_stays(facade):
    facade.made(PODS, held(a_pod_object("p")))
    facade.bind("p", "n1")
    facade.inputs.take()
    facade.delete(f"{PODS}/p", {"gracePeriodSeconds": 0})
    assert [("stopping", "p", "0")] == facade.inputs.take()
    assert ["p"] == facade.names(PODS)
    facade.patch(f"{PODS}/p", {"metadata": {"finalizers": None}})

    assert [] == facade.names(PODS)


# ------------------------------------------------------------------------------------------------------ preconditions


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param({"uid": "00000000-0000-4000-8000-000000000000"}, id="uid"),
        pytest.param({"resourceVersion": "1"}, id="version"),
    ],
)
def test_preconditions_are_honoured(facade, wanted):
    facade.made(CONFIG_MAPS, a_config_map("a"))
    status, found = facade.delete(f"{CONFIG_MAPS}/a", {"preconditions": wanted})

    assert (409, "Conflict", ["a"]) == (status, found["reason"], facade.names(CONFIG_MAPS))


def test_preconditions_that_hold_are_no_obstacle(facade):
    made = facade.made(CONFIG_MAPS, a_config_map("a"))["metadata"]
    wanted = {"uid": made["uid"], "resourceVersion": made["resourceVersion"]}

    assert 200 == facade.delete(f"{CONFIG_MAPS}/a", {"preconditions": wanted})[0]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"{", id="broken"),
        pytest.param({"gracePeriodSeconds": "soon"}, id="no number"),
    ],
)
def test_options_that_cannot_be_read_are_refused(facade, body):
    facade.made(CONFIG_MAPS, a_config_map("a"))

    assert 400 == facade.delete(f"{CONFIG_MAPS}/a", body)[0]


def test_what_does_not_exist_cannot_be_deleted(facade):
    assert 404 == facade.delete(f"{PODS}/nope")[0]


def test_the_answer_is_the_pod_or_the_name_of_what_is_gone(facade):
    facade.made(PODS, a_pod_object("p"))
    made = facade.made(CONFIG_MAPS, a_config_map("a"))

    assert "Pod" == facade.delete(f"{PODS}/p")[1]["kind"]
    status, found = facade.delete(f"{CONFIG_MAPS}/a")
    assert (200, "Success") == (status, found["status"])
    assert {"name": "a", "kind": "configmaps", "uid": made["metadata"]["uid"]} == found["details"]


# ------------------------------------------------------------------------------------------------------- dependents


def owned(found: dict[str, Any], owner: dict[str, Any]) -> dict[str, Any]:
    reference = {
        "apiVersion": "v1",
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }
    return {**found, "metadata": {**found["metadata"], "ownerReferences": [reference]}}


def test_what_an_object_owns_goes_with_it(facade):
    owner = facade.made(NODES, a_node_object("n1"))
    child = facade.made(CONFIG_MAPS, owned(a_config_map("child"), owner))
    assert "ConfigMap" == child["kind"]
    facade.made(CONFIG_MAPS, a_config_map("other"))
    facade.delete(f"{NODES}/n1")

    assert ["other"] == facade.names(CONFIG_MAPS)


def test_dependents_can_be_left_behind(facade):
    owner = facade.made(NODES, a_node_object("n1"))
    facade.made(CONFIG_MAPS, owned(a_config_map("child"), owner))
    facade.delete(f"{NODES}/n1", {"propagationPolicy": "Orphan"})

    assert ["child"] == facade.names(CONFIG_MAPS)


def test_a_workload_ends_with_its_object(facade):
    facade.made(DEPLOYMENTS, a_deployment("web"))
    facade.delete(f"{DEPLOYMENTS}/web")

    assert [("workload", "Deployment", "web"), ("workload gone", "Deployment", "web")] == facade.inputs.take()


def test_a_namespace_takes_its_objects_with_it(facade):
    facade.made("/api/v1/namespaces", {"metadata": {"name": "team"}})
    assert {"kubernetes.io/metadata.name": "team"} == facade.get("/api/v1/namespaces/team")["metadata"]["labels"]
    facade.made("/api/v1/namespaces/team/configmaps", a_config_map("a"))
    facade.made("/api/v1/namespaces/team/pods", a_pod_object("p"))
    facade.made(CONFIG_MAPS, a_config_map("other"))
    facade.delete("/api/v1/namespaces/team")

    assert [] == facade.names("/api/v1/pods")
    assert ["other"] == facade.names("/api/v1/configmaps")
    assert 404 == facade.post("/api/v1/namespaces/team/configmaps", a_config_map("a"))[0]


def test_a_collection_is_deleted_as_far_as_it_is_selected(facade):
    for name, app in (("a", "web"), ("b", "web"), ("c", "db")):
        facade.made(CONFIG_MAPS, labelled(a_config_map(name), app=app))
    status, found = facade.delete(f"{CONFIG_MAPS}?labelSelector=app%3Dweb")

    assert (200, "ConfigMapList", ["a", "b"]) == (
        status,
        found["kind"],
        [one["metadata"]["name"] for one in found["items"]],
    )
    assert ["c"] == facade.names(CONFIG_MAPS)
