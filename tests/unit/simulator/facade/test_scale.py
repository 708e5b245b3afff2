"""The subresource scale."""

from typing import Any

import pytest

from tests.unit.simulator.facade.api_client import DEPLOYMENTS, NotedFacade, a_deployment

SCALE = f"{DEPLOYMENTS}/web/scale"


@pytest.fixture
def facade() -> NotedFacade:
    facade = NotedFacade()
    facade.made(DEPLOYMENTS, a_deployment("web", replicas=2))
    facade.inputs.take()
    return facade


def a_scale(replicas: object) -> dict[str, Any]:
    metadata = {"name": "web", "namespace": "default"}
    return {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata, "spec": {"replicas": replicas}}


def test_a_scale_shows_replicas_and_selector(facade):
    found = facade.get(SCALE)

    assert ("Scale", "autoscaling/v1", 2, "app=web") == (
        found["kind"],
        found["apiVersion"],
        found["spec"]["replicas"],
        found["status"]["selector"],
    )


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_a_scale_changes_the_workload(facade, method):
    status, found = facade.put(SCALE, a_scale(5)) if method == "PUT" else facade.patch(SCALE, {"spec": {"replicas": 5}})

    assert (200, 5) == (status, found["spec"]["replicas"])
    workload = facade.get(f"{DEPLOYMENTS}/web")
    assert (5, 2) == (workload["spec"]["replicas"], workload["metadata"]["generation"])
    assert [("workload", "Deployment", "web")] == facade.inputs.take()


def test_a_scale_of_nothing_is_empty(facade):
    """Go omits the zero."""
    facade.put(SCALE, a_scale(0))

    assert {} == facade.get(SCALE)["spec"]


@pytest.mark.parametrize(
    "replicas", [pytest.param(-1, id="negative"), pytest.param("many", id="text"), pytest.param(1.5, id="fraction")]
)
def test_a_scale_that_is_no_number_is_refused(facade, replicas):
    assert 400 == facade.put(SCALE, a_scale(replicas))[0]
    assert [] == facade.inputs.take()


@pytest.mark.parametrize(
    ("path", "status"),
    [
        pytest.param(f"{DEPLOYMENTS}/nope/scale", 404, id="no such object"),
        pytest.param("/api/v1/namespaces/default/pods/p/scale", 404, id="no such subresource"),
    ],
)
def test_a_scale_of_nothing_known_is_not_found(facade, path, status):
    assert status == facade.put(path, a_scale(1))[0]
