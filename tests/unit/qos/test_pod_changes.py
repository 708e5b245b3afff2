"""States of pod objects become facts, with the times that the API states."""

import msgspec
import pytest

from lamina.qos.life_cycle_facts import (
    PodCreated,
    PodEnded,
    PodIsReady,
    PodIsTerminating,
    PodIsUnready,
    PodRuns,
    PodWasBound,
)
from lamina.qos.pod_changes import facts_of_change
from lamina.qos.promise import Promise
from lamina.qos.promise_sources import ResolvedPromise
from lamina.testing.builders import a_pod
from tests.unit.qos.qos_lives import key

NEW = msgspec.structs.replace(a_pod("p1"), created_at=10.0)
BOUND = msgspec.structs.replace(NEW, node_name="n1", bound_at=20.0)
RUNNING = msgspec.structs.replace(BOUND, started=True, started_at=21.0)
READY = msgspec.structs.replace(RUNNING, ready=True, ready_at=30.0)
TERMINATING = msgspec.structs.replace(READY, deleting=True, deleting_since=40.0)
DONE = msgspec.structs.replace(RUNNING, started=False, finished=True, ended_at=50.0)
FAILED = msgspec.structs.replace(DONE, failed=True)
UID = NEW.uid
RESOLVED = ResolvedPromise(key("web"), Promise(), ())
CREATED = PodCreated(10.0, UID, "default", "p1", key("web"), Promise(), 2)


@pytest.mark.parametrize(
    ("before", "after", "facts"),
    [
        pytest.param(None, NEW, [CREATED], id="a new pod"),
        pytest.param(NEW, NEW, [], id="no change"),
        pytest.param(NEW, BOUND, [PodWasBound(20.0, UID)], id="bound"),
        pytest.param(BOUND, RUNNING, [PodRuns(60.0, UID)], id="running now, whenever the kubelet accepted it"),
        pytest.param(RUNNING, READY, [PodIsReady(30.0, UID)], id="ready"),
        pytest.param(READY, RUNNING, [PodIsUnready(60.0, UID)], id="no longer ready"),
        pytest.param(READY, TERMINATING, [PodIsTerminating(40.0, UID)], id="terminating"),
        pytest.param(RUNNING, DONE, [PodEnded(50.0, UID, succeeded=True)], id="succeeded"),
        pytest.param(BOUND, FAILED, [PodEnded(50.0, UID, succeeded=False)], id="failed"),
        pytest.param(
            None,
            TERMINATING,
            [CREATED, PodWasBound(20.0, UID), PodRuns(30.0, UID), PodIsReady(30.0, UID), PodIsTerminating(40.0, UID)],
            id="first seen late in its life",
        ),
        pytest.param(
            None,
            DONE,
            [CREATED, PodWasBound(20.0, UID), PodRuns(21.0, UID), PodEnded(50.0, UID, succeeded=True)],
            id="first seen after its end",
        ),
    ],
)
def test_what_happened_between_two_states(before, after, facts):
    assert list(facts_of_change(before, after, RESOLVED, 2, 60.0)) == facts


def test_times_that_the_api_does_not_state_are_those_of_the_observation():
    bare = msgspec.structs.replace(NEW, created_at=0.0, node_name="n1")

    assert [fact.at for fact in facts_of_change(None, bare, RESOLVED, 1, 60.0)] == [60.0, 60.0]
