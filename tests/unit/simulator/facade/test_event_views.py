"""Events of events.k8s.io appear in the core group, and the number of events is limited."""

from lamina.simulator.facade.event_views import EventViews, core_event
from tests.unit.simulator.facade.api_client import NotedFacade, Object

NEWER = "/apis/events.k8s.io/v1/namespaces/default/events"
CORE = "/api/v1/namespaces/default/events"


def an_event(name: str = "e") -> Object:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "p"},
        "note": "Successfully assigned default/p to n1",
        "reason": "Scheduled",
        "type": "Normal",
        "action": "Binding",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-1",
    }


def names(facade: NotedFacade, path: str) -> list[str]:
    return facade.names(path)


def test_an_event_has_the_older_fields_in_the_core_group():
    shown = core_event(an_event())

    assert ("v1", "Event") == (shown["apiVersion"], shown["kind"])
    assert "Successfully assigned default/p to n1" == shown["message"]
    assert {"kind": "Pod", "namespace": "default", "name": "p"} == shown["involvedObject"]
    assert {"component": "default-scheduler"} == shown["source"]
    assert "note" not in shown


def test_an_event_that_a_scheduler_writes_is_found_where_kubectl_looks():
    facade = NotedFacade()
    EventViews(facade.state)

    assert 201 == facade.post(NEWER, an_event())[0]
    assert ["e"] == names(facade, f"{CORE}?fieldSelector=involvedObject.name%3Dp")

    assert 200 == facade.delete(f"{NEWER}/e")[0]
    assert [] == names(facade, CORE)


def test_the_oldest_events_go_when_there_are_too_many():
    facade = NotedFacade()
    EventViews(facade.state, most=2)

    for name in ("a", "b", "c"):
        facade.post(NEWER, an_event(name))

    assert ["b", "c"] == names(facade, NEWER)
    assert ["b", "c"] == names(facade, CORE)
