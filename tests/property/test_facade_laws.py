"""
Laws of the façade's API, on random histories of requests.

- What a watch has shown is what a list shows, whatever selectors they have.
- A watch from any version shows the rest of what a watch from the beginning shows.
- All pages of a list together are the list.
- A run with any scheduler is repeated exactly from its decision log.
- Whatever is sent, the answer is a Status and never an exception.
"""

import io
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.simulator.facade.api_messages import FacadeResponse
from lamina.simulator.facade.decision_log import DecisionLogHeader, DecisionLogWriter
from lamina.simulator.workloads import Scenario
from tests.property.simulated_scenarios import wild
from tests.unit.simulator.facade.api_client import (
    APPLY,
    CONFIG_MAPS,
    JSON,
    JSON_PATCH,
    MERGE,
    PODS,
    STRATEGIC,
    NotedFacade,
    a_config_map,
    a_pod_object,
)
from tests.unit.simulator.facade.facade_story import FacadeStory
from tests.unit.simulator.facade.test_decision_log import at_random, replayed

NAMES = st.sampled_from("abcd")
LABELS = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["web", "db"]))
Step = tuple[str, str, Any]
SELECTORS = st.sampled_from(
    [
        "",
        "labelSelector=app%3Dweb",
        "labelSelector=!app",
        "labelSelector=tier+in+(db)",
        "fieldSelector=metadata.name!%3Da",
        "fieldSelector=spec.nodeName%3Dn1",
        "fieldSelector=spec.nodeName%3D",
        "fieldSelector=status.phase!%3DSucceeded,status.phase!%3DFailed",
    ]
)
STEPS = st.one_of(
    st.tuples(st.just("create"), NAMES, LABELS),
    st.tuples(st.just("label"), NAMES, LABELS),
    st.tuples(st.just("bind"), NAMES, st.sampled_from(["n1", "n2"])),
    st.tuples(st.just("phase"), NAMES, st.sampled_from(["Running", "Succeeded"])),
    st.tuples(st.just("delete"), NAMES, st.sampled_from([None, 0, 5])),
    st.tuples(st.just("hold"), NAMES, st.sampled_from([["example.com/hold"], None])),
)
HISTORIES = st.lists(STEPS, max_size=25)


def perform(facade: NotedFacade, step: Step) -> None:
    """Send the request of one step; a refusal is fine."""
    what, name, value = step
    match what:
        case "create":
            pod = a_pod_object(name)
            facade.post(PODS, {**pod, "metadata": {"name": name, "labels": value}})
        case "label":
            facade.patch(f"{PODS}/{name}", {"metadata": {"labels": value}})
        case "bind":
            facade.bind(name, value)
        case "phase":
            facade.patch(f"{PODS}/{name}/status", {"status": {"phase": value}})
        case "hold":
            facade.patch(f"{PODS}/{name}", {"metadata": {"finalizers": value}})
        case _:
            facade.delete(f"{PODS}/{name}", None if value is None else {"gracePeriodSeconds": value})


def followed(events: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the objects that a client has after these events. An event about the wrong object is an error."""
    held: dict[str, Any] = {}
    for event in events:
        found = {name: value for name, value in event["object"].items() if name not in {"kind", "apiVersion"}}
        name = found["metadata"]["name"]
        assert (name in held) == (event["type"] != "ADDED"), event
        if event["type"] == "DELETED":
            del held[name]
        else:
            held[name] = found
    return held


@given(history=HISTORIES, selector=SELECTORS)
def test_what_a_watch_has_shown_is_what_a_list_shows(history, selector):
    facade = NotedFacade()
    watch = facade.watch(f"{PODS}?{selector}")
    for step in history:
        perform(facade, step)

    assert followed(watch.all) == {one["metadata"]["name"]: one for one in facade.get(f"{PODS}?{selector}")["items"]}


@given(history=HISTORIES, selector=SELECTORS, data=st.data())
def test_a_watch_from_any_version_shows_the_rest(history, selector, data):
    facade = NotedFacade()
    whole = facade.watch(f"{PODS}?{selector}")
    versions = [facade.revision]
    for step in history:
        perform(facade, step)
        versions.append(facade.revision)
    version = data.draw(st.sampled_from(versions))
    rest = facade.watch(f"{PODS}?{selector}&resourceVersion={version}")

    numbers = [int(event["object"]["metadata"]["resourceVersion"]) for event in whole.all]
    assert sorted(set(numbers)) == numbers, "versions grow from event to event"
    assert [line for line, number in zip(whole.lines, numbers, strict=True) if number > version] == rest.lines


@given(history=HISTORIES)
def test_a_version_is_used_for_a_change_only(history):
    facade = NotedFacade()
    watch = facade.watch(PODS)
    for step in history:
        before, count = facade.revision, len(watch.lines)
        perform(facade, step)
        assert facade.revision - before == len(watch.lines) - count


@given(history=HISTORIES, later=HISTORIES, limit=st.integers(1, 3), selector=SELECTORS)
def test_all_pages_together_are_the_list_at_the_time_of_the_first(history, later, limit, selector):
    facade = NotedFacade()
    for step in history:
        perform(facade, step)
    whole = facade.get(f"{PODS}?{selector}")["items"]
    page = facade.get(f"{PODS}?{selector}&limit={limit}")
    items = list(page["items"])
    for step in later:
        perform(facade, step)
    while "continue" in page["metadata"]:
        page = facade.get(f"{PODS}?{selector}&limit={limit}&continue={page['metadata']['continue']}")
        items += page["items"]

    assert whole == items


@given(history=HISTORIES, data=st.data())
def test_an_older_state_is_the_one_that_was(history, data):
    facade = NotedFacade()
    states = [(facade.revision, facade.get(PODS)["items"])]
    for step in history:
        perform(facade, step)
        states.append((facade.revision, facade.get(PODS)["items"]))
    version, items = data.draw(st.sampled_from(states))

    assert items == facade.get(f"{PODS}?resourceVersion={version}&resourceVersionMatch=Exact")["items"]


@pytest.mark.slow
@settings(max_examples=25)
@given(scenario=wild(), seed=st.integers(0, 100))
def test_a_run_is_repeated_exactly_from_its_decision_log(scenario: Scenario, seed: int):
    sink = io.BytesIO()
    writer = DecisionLogWriter(sink, DecisionLogHeader(scheduler="default-scheduler"))
    story = FacadeStory(scheduler=at_random(random.Random(seed)), log=writer)
    result = story.run(scenario)
    again, trace, decider = replayed(scenario, sink.getvalue())

    assert story.trace.records == trace.records
    assert result == again
    assert 0 == decider.unused


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=5) | st.sampled_from(["a", "1", "web"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "metadata",
                    "spec",
                    "status",
                    "name",
                    "labels",
                    "annotations",
                    "finalizers",
                    "ownerReferences",
                    "containers",
                    "conditions",
                    "data",
                    "resourceVersion",
                    "uid",
                    "target",
                    "kind",
                    "gracePeriodSeconds",
                    "preconditions",
                    "deleteOptions",
                    "op",
                    "path",
                    "value",
                ]
            )
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
PATHS = st.sampled_from(
    [
        PODS,
        f"{PODS}/a",
        f"{PODS}/a/status",
        f"{PODS}/a/binding",
        f"{PODS}/a/eviction",
        "/api/v1/namespaces/default/bindings",
        "/api/v1/nodes",
        "/api/v1/nodes/n1/status",
        CONFIG_MAPS,
        f"{CONFIG_MAPS}/a",
        "/api/v1/namespaces",
        "/apis/apps/v1/namespaces/default/deployments",
        "/apis/apps/v1/namespaces/default/deployments/web/scale",
        "/apis/apps/v1/namespaces/default/statefulsets",
        "/apis/batch/v1/namespaces/default/jobs",
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "/apis/coordination.k8s.io/v1/namespaces/default/leases/a",
        "/nope",
    ]
)
QUERIES = st.sampled_from(
    ["", "dryRun=All", "fieldManager=me&force=true", "limit=1", "labelSelector=a", "fieldSelector=%3D", "watch=x", "%"]
)


@given(
    method=st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE"]),
    path=PATHS,
    query=QUERIES,
    content_type=st.sampled_from([JSON, MERGE, STRATEGIC, JSON_PATCH, APPLY]),
    body=VALUES,
)
def test_whatever_is_sent_the_answer_is_a_response(method, path, query, content_type, body):
    facade = NotedFacade()
    facade.made(PODS, a_pod_object("a"))
    facade.made(CONFIG_MAPS, a_config_map("a", k="v"))
    answer = facade.answer(method, f"{path}?{query}", body, content_type=content_type)

    assert isinstance(answer, FacadeResponse)
    assert 200 <= answer.status < 600
    facade.get("/api/v1/pods")
    facade.get("/api/v1/configmaps")
