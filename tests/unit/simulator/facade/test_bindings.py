"""Bindings: what they change, and when they are refused."""

from typing import Any

import pytest

from tests.unit.simulator.facade.api_client import PODS, NotedFacade, a_pod_object

BINDINGS = "/api/v1/namespaces/default/bindings"
NO_UID = "00000000-0000-4000-8000-000000000000"


def a_binding(pod: str = "p", node: str = "n1", kind: str = "Node", **metadata: object) -> dict[str, Any]:
    target = {"apiVersion": "v1", "kind": kind, "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod, **metadata}, "target": target}


@pytest.fixture
def facade() -> NotedFacade:
    facade = NotedFacade()
    facade.made(PODS, a_pod_object("p"))
    facade.inputs.take()
    return facade


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(f"{PODS}/p/binding", id="subresource"),
        pytest.param(f"{PODS}/p/binding/", id="trailing slash"),
        pytest.param(BINDINGS, id="bindings"),
    ],
)
def test_a_binding_is_answered_with_a_status(facade, path):
    """kubernetes-client/python cannot read that answer; a real server gives the same one."""
    status, found = facade.post(path, a_binding())

    assert (201, "Status", "Success", 201) == (status, found["kind"], found["status"], found["code"])
    assert [("bound", "p", "n1")] == facade.inputs.take()


def test_a_binding_sets_node_and_condition_in_one_event(facade):
    facade.patch(f"{PODS}/p/status", {"status": {"nominatedNodeName": "n2"}})
    facade.now = 12.0
    events = facade.watch(f"{PODS}?resourceVersion={facade.revision}")
    facade.post(f"{PODS}/p/binding", a_binding())

    (event,) = events.all
    assert "n1" == event["object"]["spec"]["nodeName"]
    assert "nominatedNodeName" not in event["object"]["status"]
    (condition,) = event["object"]["status"]["conditions"]
    assert ("PodScheduled", "True", "2026-01-01T00:00:12Z") == (
        condition["type"],
        condition["status"],
        condition["lastTransitionTime"],
    )


def test_a_binding_replaces_the_condition_that_says_why_a_pod_waits(facade):
    waiting = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
    facade.patch(f"{PODS}/p/status", {"status": {"conditions": [waiting]}})
    facade.post(f"{PODS}/p/binding", a_binding())

    (condition,) = facade.get(f"{PODS}/p")["status"]["conditions"]
    assert ("True", None) == (condition["status"], condition.get("reason"))


def test_annotations_and_labels_of_a_binding_are_merged_into_the_pod(facade):
    facade.patch(f"{PODS}/p", {"metadata": {"annotations": {"mine": "1"}}})
    facade.post(f"{PODS}/p/binding", a_binding(annotations={"gpu": "3"}, labels={"zone": "a"}))

    found = facade.get(f"{PODS}/p")["metadata"]
    assert ({"mine": "1", "gpu": "3"}, {"zone": "a"}) == (found["annotations"], found["labels"])


def test_the_node_does_not_have_to_exist(facade):
    assert 201 == facade.bind("p", "no-such-node")[0]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param(a_binding("q"), 400, id="another name"),
        pytest.param(a_binding(kind="Pod"), 500, id="target is no node"),
        pytest.param(a_binding(node=""), 500, id="no target"),
        pytest.param(a_binding(uid=NO_UID), 409, id="another uid"),
        pytest.param(a_binding(resourceVersion="1"), 409, id="old version"),
    ],
)
def test_a_binding_that_does_not_fit_the_pod_is_refused(facade, body, status):
    before = facade.revision

    assert status == facade.post(f"{PODS}/p/binding", body)[0]
    assert (before, []) == (facade.revision, facade.inputs.take())


def test_preconditions_that_hold_are_no_obstacle(facade):
    made = facade.get(f"{PODS}/p")["metadata"]
    body = a_binding(uid=made["uid"], resourceVersion=made["resourceVersion"])

    assert 201 == facade.post(f"{PODS}/p/binding", body)[0]


def test_a_target_without_a_kind_is_a_node(facade):
    assert 201 == facade.post(f"{PODS}/p/binding", a_binding(kind=""))[0]


def test_a_pod_is_bound_once(facade):
    facade.bind("p", "n1")
    status, found = facade.bind("p", "n2")

    assert (409, "Conflict") == (status, found["reason"])
    assert 'pod p is already assigned to node "n1"' in found["message"]


def test_a_pod_that_is_being_deleted_is_not_bound(facade):
    facade.patch(f"{PODS}/p", {"metadata": {"finalizers": ["example.com/hold"]}})
    facade.delete(f"{PODS}/p")
    status, found = facade.bind("p", "n1")

    assert 409 == status
    assert "is being deleted" in found["message"]


def test_a_gated_pod_is_not_bound_until_its_gates_are_removed(facade):
    facade.made(PODS, a_pod_object("g", schedulingGates=[{"name": "example.com/gate"}]))
    assert 409 == facade.bind("g", "n1")[0]
    facade.patch(f"{PODS}/g", {"spec": {"schedulingGates": None}})

    assert 201 == facade.bind("g", "n1")[0]


@pytest.mark.parametrize(
    "path", [pytest.param(f"{PODS}/q/binding", id="subresource"), pytest.param(BINDINGS, id="bindings")]
)
def test_an_unknown_pod_is_not_found(facade, path):
    assert 404 == facade.post(path, a_binding("q"))[0]
