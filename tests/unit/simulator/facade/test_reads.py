"""Get and list: selectors, pages, versions, forms."""

import pytest

from lamina.simulator.facade import object_store
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

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


@pytest.fixture
def facade() -> NotedFacade:
    return NotedFacade()


@pytest.fixture
def pods(facade: NotedFacade) -> NotedFacade:
    """Three pods: a waits for another scheduler, b is bound, c has succeeded."""
    facade.made(PODS, labelled(a_pod_object("a", schedulerName="other"), app="web"))
    facade.made(PODS, labelled(a_pod_object("b"), app="web", tier="x"))
    facade.made(PODS, a_pod_object("c", restartPolicy="Never"))
    facade.bind("b", "n1")
    facade.bind("c", "n2")
    facade.patch(f"{PODS}/c/status", {"status": {"phase": "Succeeded"}})
    return facade


def test_a_list_has_the_kind_of_its_items_and_the_newest_version(pods):
    found = pods.get(PODS)

    assert ("PodList", "v1", str(pods.revision)) == (
        found["kind"],
        found["apiVersion"],
        found["metadata"]["resourceVersion"],
    )
    assert [None, None, None] == [one.get("kind") for one in found["items"]], "items have none, as on a real server"


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        pytest.param("spec.nodeName=n1", "b", id="node"),
        pytest.param("spec.nodeName==n1", "b", id="two equal signs"),
        pytest.param("spec.nodeName=", "a", id="no node"),
        pytest.param("spec.nodeName!=n1", "ac", id="another node"),
        pytest.param("status.phase==Pending", "ab", id="phase"),
        pytest.param("status.phase!=Succeeded,status.phase!=Failed", "ab", id="kube-scheduler's"),
        pytest.param("spec.schedulerName=other", "a", id="scheduler"),
        pytest.param("spec.restartPolicy=Never", "c", id="restart policy"),
        pytest.param("metadata.name=b", "b", id="name"),
        pytest.param("metadata.namespace=default", "abc", id="namespace"),
        pytest.param("metadata.namespace=other", "", id="another namespace"),
        pytest.param("status.nominatedNodeName=", "abc", id="nominated node"),
    ],
)
def test_pods_are_selected_by_their_fields(pods, selector, names):
    assert list(names) == pods.names(f"/api/v1/pods?fieldSelector={selector.replace('=', '%3D')}")


def test_nodes_are_selected_by_whether_they_are_schedulable(facade):
    facade.made(NODES, a_node_object("a"))
    facade.made(NODES, a_node_object("b", unschedulable=True))

    assert ["b"] == facade.names(f"{NODES}?fieldSelector=spec.unschedulable%3Dtrue")
    assert ["a"] == facade.names(f"{NODES}?fieldSelector=spec.unschedulable%3Dfalse")


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        pytest.param("app=web", "ab", id="equal"),
        pytest.param("app==web,tier=x", "b", id="two"),
        pytest.param("app!=web", "c", id="not equal or missing"),
        pytest.param("app in (web,db)", "ab", id="in"),
        pytest.param("tier notin (x)", "ac", id="not in"),
        pytest.param("!app", "c", id="missing"),
        pytest.param("app", "ab", id="present"),
    ],
)
def test_labels_select(pods, selector, names):
    assert list(names) == pods.names(f"{PODS}?labelSelector={selector.replace(' ', '+')}")


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("fieldSelector=spec.nope%3D1", id="unknown field"),
        pytest.param("fieldSelector=metadata.name", id="field without operator"),
        pytest.param("labelSelector=a+in+", id="broken set"),
        pytest.param("limit=x", id="limit"),
        pytest.param("resourceVersion=x", id="version"),
        pytest.param("continue=nonsense", id="page"),
        pytest.param("watch=perhaps", id="flag"),
    ],
)
def test_a_query_that_cannot_be_read_is_a_bad_request(pods, query):
    assert (400, "BadRequest") == (
        pods.send("GET", f"{PODS}?{query}")[0],
        pods.send("GET", f"{PODS}?{query}")[1]["reason"],
    )


# -------------------------------------------------------------------------------------------------------------- pages


def test_pages_follow_each_other(facade):
    for name in "abcde":
        facade.made(CONFIG_MAPS, a_config_map(name))
    first = facade.get(f"{CONFIG_MAPS}?limit=2")
    second = facade.get(f"{CONFIG_MAPS}?limit=2&continue={first['metadata']['continue']}")
    third = facade.get(f"{CONFIG_MAPS}?limit=2&continue={second['metadata']['continue']}")

    pages = [[one["metadata"]["name"] for one in page["items"]] for page in (first, second, third)]
    assert [["a", "b"], ["c", "d"], ["e"]] == pages
    assert [3, 1, None] == [page["metadata"].get("remainingItemCount") for page in (first, second, third)]
    assert "continue" not in third["metadata"]


def test_all_pages_show_the_state_of_the_first(facade):
    for name in "abc":
        facade.made(CONFIG_MAPS, a_config_map(name, k="old"))
    first = facade.get(f"{CONFIG_MAPS}?limit=1")
    facade.patch(f"{CONFIG_MAPS}/b", {"data": {"k": "new"}})
    facade.delete(f"{CONFIG_MAPS}/c")
    facade.made(CONFIG_MAPS, a_config_map("d"))
    second = facade.get(f"{CONFIG_MAPS}?limit=5&continue={first['metadata']['continue']}")

    assert [("b", "old"), ("c", "old")] == [(one["metadata"]["name"], one["data"]["k"]) for one in second["items"]]
    assert first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]


def test_a_page_of_a_state_that_is_forgotten_is_gone(facade, monkeypatch):
    monkeypatch.setattr(object_store.ResourceTable.__init__, "__defaults__", (4,))
    for name in "abc":
        facade.made(CONFIG_MAPS, a_config_map(name))
    first = facade.get(f"{CONFIG_MAPS}?limit=1")
    for number in range(9):
        facade.patch(f"{CONFIG_MAPS}/a", {"data": {"k": str(number)}})

    status, found = facade.send("GET", f"{CONFIG_MAPS}?limit=1&continue={first['metadata']['continue']}")
    assert (410, "Expired") == (status, found["reason"])


def test_version_0_has_no_pages(facade):
    for name in "abc":
        facade.made(CONFIG_MAPS, a_config_map(name))

    found = facade.get(f"{CONFIG_MAPS}?limit=1&resourceVersion=0")
    assert (3, False) == (len(found["items"]), "continue" in found["metadata"])


def test_an_exact_version_shows_the_state_at_that_version(facade):
    facade.made(CONFIG_MAPS, a_config_map("a"))
    then = facade.revision
    facade.made(CONFIG_MAPS, a_config_map("b"))

    assert ["a"] == facade.names(f"{CONFIG_MAPS}?resourceVersion={then}&resourceVersionMatch=Exact")
    assert ["a", "b"] == facade.names(f"{CONFIG_MAPS}?resourceVersion={then}&resourceVersionMatch=NotOlderThan")


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("resourceVersionMatch=Exact", id="no version"),
        pytest.param("resourceVersion=0&resourceVersionMatch=Exact", id="exactly any"),
        pytest.param("resourceVersion=1&resourceVersionMatch=Sometimes", id="unknown"),
    ],
)
def test_a_match_that_makes_no_sense_is_invalid(facade, query):
    assert 422 == facade.send("GET", f"{PODS}?{query}")[0]


# -------------------------------------------------------------------------------------------------------------- forms


def test_people_get_tables(pods):
    found = pods.get(PODS, accept=TABLE)

    assert "Table" == found["kind"]
    assert ["a", "b", "c"] == [row["cells"][0] for row in found["rows"]]
    assert "Table" == pods.get(f"{PODS}/a", accept=TABLE)["kind"]


def test_metadata_informers_get_metadata(pods):
    found = pods.get(PODS, accept=METADATA)

    assert "PartialObjectMetadataList" == found["kind"]
    assert {"kind", "apiVersion", "metadata"} == set(found["items"][0])


def test_a_form_that_is_unknown_is_not_acceptable(pods):
    assert 406 == pods.send("GET", PODS, accept="image/png")[0]


def test_protobuf_clients_accept_json(pods):
    """``Accept: application/vnd.kubernetes.protobuf, */*`` is kube-scheduler's default."""
    assert "PodList" == pods.get(PODS, accept="application/vnd.kubernetes.protobuf, */*")["kind"]


@pytest.mark.parametrize(
    ("version", "resource"),
    [
        pytest.param("extensions/v1beta1", "deployments", id="extensions"),
        pytest.param("apps/v1beta1", "deployments", id="apps/v1beta1"),
        pytest.param("apps/v1beta2", "deployments", id="apps/v1beta2"),
    ],
)
def test_a_legacy_group_is_a_view_of_the_same_objects(facade, version, resource):
    facade.made(DEPLOYMENTS, a_deployment("web"))
    path = f"/apis/{version}/namespaces/default/{resource}"

    assert version == facade.get(path)["apiVersion"]
    assert version == facade.get(f"{path}/web")["apiVersion"]
    assert "apps/v1" == facade.get(f"{DEPLOYMENTS}/web")["apiVersion"]
    events = facade.watch(path)
    assert [version] == [one["object"]["apiVersion"] for one in events.all]
    status, found = facade.patch(f"{path}/web", {"spec": {"replicas": 5}})
    assert (200, version, 5) == (status, found["apiVersion"], facade.get(f"{DEPLOYMENTS}/web")["spec"]["replicas"])


def test_what_does_not_exist_is_not_found(facade):
    status, found = facade.send("GET", f"{PODS}/nope")

    assert (404, "NotFound", 'pods "nope" not found') == (status, found["reason"], found["message"])
    assert {"name": "nope", "kind": "pods"} == found["details"]
