"""Create, update and patch: identity, versions, status, dry run, custom resources."""

import json
from typing import Any

import pytest

from lamina.simulator.facade.api_errors import bad_request
from tests.unit.simulator.facade.api_client import (
    APPLY,
    BUDGETS,
    CONFIG_MAPS,
    CRDS,
    DEPLOYMENTS,
    JSON_PATCH,
    LEASES,
    MERGE,
    NODES,
    PODS,
    STRATEGIC,
    NotedFacade,
    a_config_map,
    a_deployment,
    a_node_object,
    a_pod_object,
)

LEASE = {"metadata": {"name": "kube-scheduler"}, "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}}


@pytest.fixture
def facade() -> NotedFacade:
    return NotedFacade()


# ------------------------------------------------------------------------------------------------------------- create


def test_a_new_object_has_identity_and_simulated_time(facade):
    facade.now = 90.0
    found = facade.made(PODS, a_pod_object("p"))["metadata"]

    assert ("p", "default", "2026-01-01T00:01:30Z") == (found["name"], found["namespace"], found["creationTimestamp"])
    assert 36 == len(found["uid"])
    assert str(facade.revision) == found["resourceVersion"]
    assert [("created", "p")] == facade.inputs.take()


def test_a_pod_gets_what_schedulers_rely_on(facade):
    pod = facade.made(PODS, a_pod_object("p", priorityClassName="system-node-critical"))
    spec, status = pod["spec"], pod["status"]

    assert ("default-scheduler", "Always", 30) == (
        spec["schedulerName"],
        spec["restartPolicy"],
        spec["terminationGracePeriodSeconds"],
    )
    assert (2_000_001_000, "PreemptLowerPriority") == (spec["priority"], spec["preemptionPolicy"])
    assert [300, 300] == [one["tolerationSeconds"] for one in spec["tolerations"]]
    assert ("Pending", "BestEffort") == (status["phase"], status["qosClass"])


def test_a_name_can_be_generated(facade):
    body = {"metadata": {"generateName": "event-"}, "data": {}}
    names = {facade.made(CONFIG_MAPS, body)["metadata"]["name"] for _ in range(5)}

    assert 5 == len(names)
    assert all(name.startswith("event-") and len(name) == len("event-") + 5 for name in names)


def test_generated_names_and_uids_are_the_same_in_the_same_run():
    found = []
    for _ in range(2):
        made = NotedFacade().made(CONFIG_MAPS, {"metadata": {"generateName": "x-"}})
        found.append((made["metadata"]["name"], made["metadata"]["uid"]))

    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("path", "body", "status", "reason"),
    [
        pytest.param(PODS, a_pod_object("taken"), 409, "AlreadyExists", id="taken"),
        pytest.param("/api/v1/namespaces/nope/configmaps", a_config_map("a"), 404, "NotFound", id="namespace"),
        pytest.param(CONFIG_MAPS, {"metadata": {}}, 422, "Invalid", id="no name"),
        pytest.param(CONFIG_MAPS, {**a_config_map("a"), "kind": "Secret"}, 400, "BadRequest", id="another kind"),
        pytest.param(
            CONFIG_MAPS, {"metadata": {"name": "a", "namespace": "other"}}, 400, "BadRequest", id="another namespace"
        ),
        pytest.param(CONFIG_MAPS, [1], 400, "BadRequest", id="a list"),
        pytest.param(CONFIG_MAPS, b"{", 400, "BadRequest", id="broken JSON"),
        pytest.param(CONFIG_MAPS, {"metadata": {"name": "a"}, "data": {"k": 3}}, 400, "BadRequest", id="wrong type"),
        pytest.param(CONFIG_MAPS, {"metadata": {"name": "A_b"}}, 422, "Invalid", id="bad name"),
        pytest.param(PODS, a_pod_object("p", priorityClassName="nope"), 403, "Forbidden", id="priority class"),
        pytest.param("/api/v1/configmaps", a_config_map("a"), 405, "MethodNotAllowed", id="no namespace in path"),
        pytest.param(f"{CONFIG_MAPS}/a", a_config_map("a"), 405, "MethodNotAllowed", id="post to an object"),
    ],
)
def test_what_cannot_be_created_is_refused_and_changes_nothing(facade, path, body, status, reason):
    facade.made(PODS, a_pod_object("taken"))
    facade.inputs.take()
    before = facade.revision

    found = facade.post(path, body)
    assert (status, reason) == (found[0], found[1]["reason"])
    assert (before, []) == (facade.revision, facade.inputs.take())


def test_a_version_may_not_be_set_on_a_new_object(facade):
    """A real server answers with 500, too."""
    body = {"metadata": {"name": "a", "resourceVersion": "1"}}

    assert 500 == facade.post(CONFIG_MAPS, body)[0]


def test_unknown_fields_are_dropped_or_refused(facade):
    body = {**a_config_map("a"), "nonsense": 1, "metadata": {"name": "a", "more": {}}}

    status, found = facade.post(f"{CONFIG_MAPS}?fieldValidation=Strict", body)
    assert 400 == status
    assert 'unknown field "nonsense"' in found["message"]
    made = facade.made(CONFIG_MAPS, body)
    assert {"kind", "apiVersion", "metadata"} == set(made)
    assert "more" not in made["metadata"]


def test_zero_values_are_stored_as_a_real_server_writes_them(facade):
    body: dict[str, Any] = {"metadata": {"name": "a", "labels": {}, "creationTimestamp": None}, "data": {}}

    assert {"name", "namespace", "uid", "creationTimestamp", "resourceVersion"} == set(
        facade.made(CONFIG_MAPS, body)["metadata"]
    )


# ------------------------------------------------------------------------------------------------------------- update


def test_an_update_with_an_old_version_conflicts(facade):
    first = facade.made(LEASES, LEASE)
    facade.put(f"{LEASES}/kube-scheduler", {**first, "spec": {"holderIdentity": "b"}})
    status, found = facade.put(f"{LEASES}/kube-scheduler", {**first, "spec": {"holderIdentity": "c"}})

    assert (409, "Conflict") == (status, found["reason"])
    assert "the object has been modified" in found["message"]
    assert "b" == facade.get(f"{LEASES}/kube-scheduler")["spec"]["holderIdentity"]


def test_a_leader_elects_itself(facade):
    """GET 404, then POST, then PUT with the last version again and again."""
    path = f"{LEASES}/kube-scheduler"
    assert 404 == facade.send("GET", path)[0]
    lease = facade.made(LEASES, LEASE)
    for second in range(3):
        spec = {**lease["spec"], "renewTime": f"2026-01-01T00:00:0{second}.000000Z"}
        status, lease = facade.put(path, {**lease, "spec": spec})
        assert 200 == status


@pytest.mark.parametrize(
    ("path", "status"),
    [
        pytest.param(CONFIG_MAPS, 200, id="config map"),
        pytest.param(LEASES, 422, id="lease"),
        pytest.param(BUDGETS, 422, id="budget"),
    ],
)
def test_some_updates_must_name_a_version(facade, path, status):
    bodies = {BUDGETS: {"spec": {"minAvailable": 1, "selector": {}}}}
    body = {"metadata": {"name": "a"}, **bodies.get(path, {})}
    facade.made(path, body)

    assert status == facade.put(f"{path}/a", body)[0]


def test_some_resources_are_created_by_an_update(facade):
    assert 201 == facade.put(f"{LEASES}/kube-scheduler", LEASE)[0]
    assert 404 == facade.put(f"{CONFIG_MAPS}/a", a_config_map("a"))[0]


@pytest.mark.parametrize(
    ("metadata", "status"),
    [
        pytest.param({"name": "b"}, 400, id="another name"),
        pytest.param({}, 400, id="no name"),
        pytest.param({"name": "a", "namespace": "other"}, 400, id="another namespace"),
        pytest.param({"name": "a", "uid": "00000000-0000-4000-8000-000000000000"}, 409, id="another uid"),
        pytest.param({"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"}, 422, id="deletion time"),
        pytest.param({"name": "a", "ownerReferences": [{"kind": "Node"}]}, 422, id="half an owner"),
        pytest.param({"name": "a", "labels": {"x": "not allowed"}}, 422, id="label"),
    ],
)
def test_an_update_cannot_change_identity(facade, metadata, status):
    facade.made(CONFIG_MAPS, a_config_map("a"))
    before = facade.revision

    assert status == facade.put(f"{CONFIG_MAPS}/a", {"metadata": metadata})[0]
    assert before == facade.revision


def test_an_update_keeps_what_is_the_servers(facade):
    made = facade.made(DEPLOYMENTS, a_deployment("web"))
    facade.now = 60.0
    status, found = facade.put(f"{DEPLOYMENTS}/web", a_deployment("web", replicas=3))

    assert 200 == status
    for name in ("uid", "creationTimestamp"):
        assert made["metadata"][name] == found["metadata"][name]
    assert (1, 2) == (made["metadata"]["generation"], found["metadata"]["generation"])


def test_a_write_that_changes_nothing_keeps_the_version(facade):
    made = facade.made(DEPLOYMENTS, a_deployment("web"))
    facade.inputs.take()
    answers = [
        facade.put(f"{DEPLOYMENTS}/web", made),
        facade.put(f"{DEPLOYMENTS}/web", a_deployment("web")),
        facade.patch(f"{DEPLOYMENTS}/web", {"spec": {"replicas": 2}}),
        facade.patch(f"{DEPLOYMENTS}/web", {}, STRATEGIC),
        facade.patch(f"{DEPLOYMENTS}/web", [], JSON_PATCH),
    ]

    assert {made["metadata"]["resourceVersion"]} == {found["metadata"]["resourceVersion"] for _, found in answers}
    assert [] == facade.inputs.take()


def test_a_dry_run_answers_and_does_nothing(facade):
    facade.made(CONFIG_MAPS, a_config_map("a"))
    before = facade.revision

    assert 201 == facade.post(f"{CONFIG_MAPS}?dryRun=All", a_config_map("b"))[0]
    assert {"k": "v"} == facade.put(f"{CONFIG_MAPS}/a?dryRun=All", a_config_map("a", k="v"))[1]["data"]
    assert {"k": "v"} == facade.patch(f"{CONFIG_MAPS}/a?dryRun=All", {"data": {"k": "v"}})[1]["data"]
    assert 200 == facade.delete(f"{CONFIG_MAPS}/a?dryRun=All")[0]
    assert 422 == facade.post(f"{CONFIG_MAPS}?dryRun=Some", a_config_map("b"))[0]
    assert (before, ["a"]) == (facade.revision, facade.names(CONFIG_MAPS))


# ------------------------------------------------------------------------------------------------------------- status


def test_a_write_of_the_status_ignores_the_spec(facade):
    pod = facade.made(PODS, a_pod_object("p"))
    changed = {**pod, "spec": {**pod["spec"], "schedulerName": "other"}, "status": {"phase": "Running"}}
    status, found = facade.put(f"{PODS}/p/status", changed)

    assert (200, "default-scheduler", "Running") == (status, found["spec"]["schedulerName"], found["status"]["phase"])


def test_a_write_of_the_status_checks_the_version(facade):
    pod = facade.made(PODS, a_pod_object("p"))
    facade.patch(f"{PODS}/p", {"metadata": {"labels": {"a": "b"}}})

    assert 409 == facade.put(f"{PODS}/p/status", {**pod, "status": {"phase": "Running"}})[0]


def test_a_write_of_the_object_ignores_the_status(facade):
    pod = facade.made(PODS, a_pod_object("p"))
    _, found = facade.put(f"{PODS}/p", {**pod, "status": {"phase": "Failed"}})

    assert "Pending" == found["status"]["phase"]


def test_conditions_are_merged_by_their_type(facade):
    facade.made(PODS, a_pod_object("p"))
    waiting = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
    facade.patch(f"{PODS}/p/status", {"status": {"conditions": [waiting]}}, STRATEGIC)
    disrupted = {"type": "DisruptionTarget", "status": "True"}
    _, found = facade.patch(f"{PODS}/p/status", {"status": {"conditions": [disrupted]}}, STRATEGIC)

    assert {"PodScheduled", "DisruptionTarget"} == {one["type"] for one in found["status"]["conditions"]}
    assert [("created", "p"), ("refused", "p", "0/3 nodes"), ("refused", "p", "0/3 nodes")] == facade.inputs.take()


def test_a_scheduler_may_nominate_a_node_but_not_for_a_bound_pod(facade):
    facade.made(PODS, a_pod_object("p"))
    nominate = {"status": {"nominatedNodeName": "n1"}}

    assert 200 == facade.patch(f"{PODS}/p/status", nominate)[0]
    facade.bind("p", "n1")
    assert 422 == facade.patch(f"{PODS}/p/status", nominate)[0]


# ------------------------------------------------------------------------------------------------------------ patches


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        pytest.param(MERGE, {"data": {"k": "w"}}, id="merge"),
        pytest.param(STRATEGIC, {"data": {"k": "w"}}, id="strategic merge"),
        pytest.param(JSON_PATCH, [{"op": "replace", "path": "/data/k", "value": "w"}], id="JSON patch"),
    ],
)
def test_all_types_of_patches_change_an_object(facade, content_type, body):
    facade.made(CONFIG_MAPS, a_config_map("a", k="v", l="v"))
    status, found = facade.patch(f"{CONFIG_MAPS}/a", body, content_type)

    assert (200, {"k": "w", "l": "v"}) == (status, found["data"])


def test_apply_creates_and_changes(facade):
    path = f"{CONFIG_MAPS}/a?fieldManager=me"
    first = facade.patch(path, a_config_map("a", k="v", l="v"), APPLY)
    second = facade.patch(path, a_config_map("a", k="w"), APPLY)

    assert (201, 200) == (first[0], second[0])
    assert {"k": "w"} == second[1]["data"], "what is not applied any more is removed"
    assert ["me"] == [one["manager"] for one in second[1]["metadata"]["managedFields"]]


def test_two_managers_conflict_unless_one_forces(facade):
    facade.patch(f"{CONFIG_MAPS}/a?fieldManager=one", a_config_map("a", k="1"), APPLY)
    status, found = facade.patch(f"{CONFIG_MAPS}/a?fieldManager=two", a_config_map("a", k="2"), APPLY)
    forced, _ = facade.patch(f"{CONFIG_MAPS}/a?fieldManager=two&force=true", a_config_map("a", k="2"), APPLY)

    assert (409, "Conflict", 200) == (status, found["reason"], forced)


def test_an_update_of_an_applied_object_takes_its_fields_over(facade):
    facade.patch(f"{CONFIG_MAPS}/a?fieldManager=one", a_config_map("a", k="1"), APPLY)
    facade.patch(f"{CONFIG_MAPS}/a", {"data": {"k": "2"}})

    assert 409 == facade.patch(f"{CONFIG_MAPS}/a?fieldManager=one", a_config_map("a", k="1"), APPLY)[0]


@pytest.mark.parametrize(
    ("content_type", "query", "body", "status"),
    [
        pytest.param("text/plain", "", {}, 415, id="type"),
        pytest.param(APPLY, "", a_config_map("a"), 400, id="apply without a manager"),
        pytest.param(APPLY, "?fieldManager=me", a_config_map("b"), 400, id="apply of another object"),
        pytest.param(APPLY, "?fieldManager=me", {**a_config_map("a"), "nope": 1}, 500, id="apply of an unknown field"),
        pytest.param(MERGE, "", [1], 400, id="merge patch that is a list"),
        pytest.param(MERGE, "", {"data": {"k": 5}}, 422, id="wrong type"),
        pytest.param(MERGE, "", {"metadata": {"resourceVersion": "1"}}, 409, id="old version"),
        pytest.param(MERGE, "", {"metadata": {"name": "b"}}, 400, id="another name"),
        pytest.param(MERGE, "", {"metadata": {"uid": "00000000-0000-4000-8000-000000000000"}}, 422, id="another uid"),
        pytest.param(JSON_PATCH, "", [{"op": "remove", "path": "/nope"}], 422, id="missing path"),
    ],
)
def test_a_patch_that_cannot_be_applied_is_refused(facade, content_type, query, body, status):
    facade.made(CONFIG_MAPS, a_config_map("a", k="v"))
    before = facade.revision

    assert status == facade.patch(f"{CONFIG_MAPS}/a{query}", body, content_type)[0]
    assert before == facade.revision


def test_a_patch_of_what_does_not_exist_is_not_found(facade):
    assert 404 == facade.patch(f"{CONFIG_MAPS}/a", {})[0]


# ------------------------------------------------------------------------------------------------------ other resources


def test_nodes_act_on_the_cluster(facade):
    facade.made(NODES, a_node_object("n1"))
    facade.patch(f"{NODES}/n1", {"spec": {"unschedulable": True}})
    facade.patch(f"{NODES}/n1", {"metadata": {"labels": {"zone": "a"}}})
    facade.delete(f"{NODES}/n1")

    assert [("node", "n1")] * 3 + [("node left", "n1")] == facade.inputs.take()


def test_a_node_that_the_cluster_refuses_is_not_stored(facade, monkeypatch):
    facade.made(NODES, a_node_object("n1"))

    def refuse(node: dict[str, Any]) -> None:
        raise bad_request("the node cannot be simulated")

    monkeypatch.setattr(facade.inputs, "node_written", refuse)

    assert 400 == facade.post(NODES, a_node_object("n2"))[0]
    assert 400 == facade.patch(f"{NODES}/n1", {"spec": {"unschedulable": True}})[0]
    assert ["n1"] == facade.names(NODES)
    assert "unschedulable" not in facade.get(f"{NODES}/n1")["spec"]


def test_the_addresses_of_a_nodes_pods_are_kept_twice(facade):
    made = facade.made(NODES, a_node_object("n1", podCIDR="10.1.0.0/24"))

    assert ["10.1.0.0/24"] == made["spec"]["podCIDRs"]
    assert 422 == facade.patch(f"{NODES}/n1", {"spec": {"podCIDR": "10.2.0.0/24"}})[0]


def a_definition(name: str = "trains") -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    names = {"plural": name, "singular": name[:-1], "kind": name[:-1].title(), "listKind": f"{name[:-1].title()}List"}
    spec = {"group": "rail.example", "scope": "Namespaced", "names": names, "versions": [version]}
    metadata = {"name": f"{name}.rail.example"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": spec,
    }


TRAINS = "/apis/rail.example/v1/namespaces/default/trains"


def test_custom_resources_are_served_from_their_definition_on(facade):
    train = {
        "apiVersion": "rail.example/v1",
        "kind": "Train",
        "metadata": {"name": "ic1"},
        "spec": {"cars": 9, "x": None},
    }
    assert 404 == facade.post(TRAINS, train)[0]
    facade.made(CRDS, a_definition())
    events = facade.watch(TRAINS)

    made = facade.made(TRAINS, train)
    assert ({"cars": 9, "x": None}, 1) == (made["spec"], made["metadata"]["generation"]), "custom fields stay as sent"
    status, found = facade.put(f"{TRAINS}/ic1/status", {**made, "spec": {"cars": 1}, "status": {"late": True}})
    assert (200, 9, {"late": True}) == (status, found["spec"]["cars"], found["status"])
    _, found = facade.put(f"{TRAINS}/ic1", {**found, "spec": {"cars": 3}, "status": {}})
    assert (3, {"late": True}, 2) == (found["spec"]["cars"], found["status"], found["metadata"]["generation"])
    assert ("TrainList", "Train") == (facade.get(TRAINS)["kind"], facade.get(TRAINS)["items"][0]["kind"])
    facade.delete(f"{TRAINS}/ic1")

    assert ["ADDED", "MODIFIED", "MODIFIED", "DELETED"] == [kind for kind, _ in events.seen]


def test_custom_resources_end_with_their_definition(facade):
    facade.made(CRDS, a_definition())
    facade.delete(f"{CRDS}/trains.rail.example")

    assert 404 == facade.send("GET", TRAINS)[0]


def test_custom_resources_have_no_strategic_merge(facade):
    facade.made(CRDS, a_definition())
    facade.made(TRAINS, {"metadata": {"name": "ic1"}})

    assert 415 == facade.patch(f"{TRAINS}/ic1", {}, STRATEGIC)[0]
    assert 200 == facade.patch(f"{TRAINS}/ic1", {"spec": {"cars": 2}}, MERGE)[0]


def test_a_stored_object_is_never_changed_in_place(facade):
    facade.made(PODS, a_pod_object("p"))
    before = facade.state.get("", "pods", "default", "p")
    text = json.dumps(before.object)
    facade.patch(f"{PODS}/p", {"metadata": {"labels": {"a": "b"}}}, STRATEGIC)
    facade.bind("p", "n1")
    facade.patch(f"{PODS}/p/status", {"status": {"phase": "Running"}}, STRATEGIC)
    facade.delete(f"{PODS}/p")

    assert text == json.dumps(before.object)
