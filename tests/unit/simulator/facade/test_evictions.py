"""Evictions: deletions that a PodDisruptionBudget may refuse."""

from typing import Any

import pytest

from lamina.simulator.facade.pod_disruption import allowed_disruptions
from tests.unit.simulator.facade.api_client import BUDGETS, PODS, NotedFacade, a_pod_object, labelled

READY = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}


@pytest.fixture
def facade() -> NotedFacade:
    """Three ready pods with the label app=web, and one that waits."""
    facade = NotedFacade()
    for name in ("a", "b", "c", "waits"):
        facade.made(PODS, labelled(a_pod_object(name), app="web"))
    for name in ("a", "b", "c"):
        facade.bind(name, "n1")
        facade.patch(f"{PODS}/{name}/status", READY)
    facade.inputs.take()
    return facade


def evict(facade: NotedFacade, name: str, **more: object) -> tuple[int, dict[str, Any]]:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, **more}
    return facade.post(f"{PODS}/{name}/eviction", body)


def a_budget(facade: NotedFacade, **spec: object) -> None:
    selector = {"matchLabels": {"app": "web"}}
    facade.made(BUDGETS, {"metadata": {"name": "web"}, "spec": {"selector": selector, **spec}})


def test_a_pod_without_a_budget_is_evicted_with_a_reason(facade):
    events = facade.watch(f"{PODS}?resourceVersion={facade.revision}")
    status, found = evict(facade, "a")

    assert (201, "Success") == (status, found["status"])
    assert [("MODIFIED", "a"), ("MODIFIED", "a")] == events.seen
    conditions = {
        one["type"]: one["reason"] for one in events.all[0]["object"]["status"]["conditions"] if "reason" in one
    }
    assert {"DisruptionTarget": "EvictionByEvictionAPI"} == conditions
    assert [("stopping", "a", "30")] == facade.inputs.take()


def test_a_budget_allows_so_many_evictions_and_no_more(facade):
    # 3 ready pods, at least 2 stay
    a_budget(facade, minAvailable=2)

    assert 201 == evict(facade, "a")[0]
    answer = facade.answer("POST", f"{PODS}/b/eviction", {"metadata": {"name": "b"}})
    assert 429 == answer.status
    assert ("Retry-After", "10") in answer.headers
    status, found = evict(facade, "b")
    assert (429, "TooManyRequests", "DisruptionBudget") == (
        status,
        found["reason"],
        found["details"]["causes"][0]["reason"],
    )
    assert "deletionTimestamp" not in facade.get(f"{PODS}/b")["metadata"]


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        pytest.param({"minAvailable": 3}, 0, id="all"),
        pytest.param({"minAvailable": 1}, 2, id="at least one"),
        # half of 4 pods
        pytest.param({"minAvailable": "50%"}, 1, id="half"),
        # 30% of 4 is 1.2, rounded up to 2
        pytest.param({"maxUnavailable": "30%"}, 1, id="less than a third away"),
        # one of 4 pods is not ready already
        pytest.param({"maxUnavailable": 1}, 0, id="one away"),
        pytest.param({"maxUnavailable": 2}, 1, id="two away"),
        pytest.param({}, 0, id="nothing said"),
    ],
)
def test_what_a_budget_allows(facade, spec, allowed):
    budget = {"spec": {"selector": {"matchLabels": {"app": "web"}}, **spec}}

    assert allowed == allowed_disruptions(budget, facade.get(PODS)["items"])


def test_a_pod_that_is_not_ready_may_always_be_evicted(facade):
    a_budget(facade, minAvailable=4)

    assert 201 == evict(facade, "waits")[0]


def test_a_deletion_ignores_budgets(facade):
    a_budget(facade, minAvailable=4)

    assert 200 == facade.delete(f"{PODS}/a")[0]


def test_options_of_the_deletion_are_passed_on(facade):
    evict(facade, "a", deleteOptions={"gracePeriodSeconds": 3})

    assert [("stopping", "a", "3")] == facade.inputs.take()


@pytest.mark.parametrize(
    ("pod", "body", "status"),
    [
        pytest.param("nope", {"metadata": {"name": "nope"}}, 404, id="no such pod"),
        pytest.param("a", {"metadata": {"name": "b"}}, 400, id="another name"),
        pytest.param("a", {"deleteOptions": {"preconditions": {"uid": "x"}}}, 409, id="another uid"),
    ],
)
def test_an_eviction_that_does_not_fit_is_refused(facade, pod, body, status):
    assert status == facade.post(f"{PODS}/{pod}/eviction", body)[0]
    assert [] == facade.inputs.take()


def test_a_dry_run_evicts_nothing(facade):
    assert 201 == evict(facade, "a", deleteOptions={"dryRun": ["All"]})[0]
    assert [] == facade.inputs.take()
