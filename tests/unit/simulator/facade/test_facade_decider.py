"""
Simulated stories with a scheduler behind the API: exact logs of what happened when.

The scheduler is `first_fit`, a function that lists pods and nodes and posts bindings.
"""

from collections.abc import Sequence

import pytest

from lamina.simulator.cluster import Delays
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.workloads import PodArrival
from lamina.trace.trace_records import PodBound, PodDecided, PodFinished, PodRemoved, PodStarted
from tests.unit.simulator.facade.api_client import PODS, ApiClient, WatchedEvents, a_pod_object
from tests.unit.simulator.facade.facade_story import FacadeStory, first_fit
from tests.unit.simulator.test_run import a_node_spec, a_scenario, arriving, log, placed

AT_ONCE = Delays(start=0.0)
"""Containers start as soon as their images are there."""
PLACES = (PodBound, PodDecided, PodStarted, PodFinished, PodRemoved)


def tick(at: float) -> PodArrival:
    """A pod that needs nothing: its arrival lets clients act at this time."""
    return arriving(at, f"tick{at:g}", cpu=0, duration=0.0)


def lines(story: FacadeStory) -> Sequence[tuple[float, str, str]]:
    """Return what happened to pods that are no ticks."""
    return [line for line in log(story.records, *PLACES) if not line[2].startswith("tick")]


def test_a_pod_waits_until_another_has_ended():
    story = FacadeStory()
    pods = [arriving(1.0, "p", duration=10.0), arriving(2.0, "q", duration=10.0)]
    result = story.run(a_scenario([a_node_spec("n1", holds=["web"])], pods, delays=AT_ONCE))

    assert [
        (1.0, "pod-bound", "p"),
        (1.0, "pod-started", "p"),
        (2.0, "decided: unschedulable", "q"),
        # p runs for 10 s
        (11.0, "pod-finished", "p"),
        (11.0, "pod-bound", "q"),
        (11.0, "pod-started", "q"),
        (21.0, "pod-finished", "q"),
    ] == lines(story)
    assert {"p": "n1", "q": "n1"} == placed(result)
    # two bindings and one refusal
    assert 3 == result.attempts


def test_clients_are_asked_only_when_something_has_changed():
    story = FacadeStory()
    story.run(a_scenario([a_node_spec("n1", holds=["web"])], [arriving(5.0, "p", duration=10.0)], delays=AT_ONCE))

    # node; pod; started (in the same instant as bound); ended
    assert [0.0, 5.0, 5.0, 15.0] == story.settled


def test_images_are_pulled_before_a_pod_starts_and_shown_after_the_kubelets_lag():
    def images(client: ApiClient) -> None:
        found = client.get("/api/v1/nodes/n1")["status"].get("images", [])
        seen.append((len(story.settled), [name for one in found for name in one["names"] if ":1" in name]))
        first_fit(client)

    seen: list[tuple[int, list[str]]] = []
    story = FacadeStory(scheduler=images)
    story.run(a_scenario([a_node_spec("n1")], [arriving(0.0, "p", duration=30.0)]))

    # 400 MB at 100 MB/s, 0.5 s to start; the status shows the image 10 s after the pull
    assert [(0.0, "pod-bound", "p"), (4.5, "pod-started", "p"), (34.5, "pod-finished", "p")] == lines(story)
    assert [0.0, 4.5, 14.0, 34.5] == story.settled
    assert [(1, []), (2, []), (3, ["registry.example/web:1"]), (4, ["registry.example/web:1"])] == seen


def test_a_scheduler_that_preempts_sees_the_victim_leave_in_two_steps():
    """The victim takes 3 s to stop."""
    events: list[WatchedEvents] = []

    def preempt(client: ApiClient) -> None:
        if not events:
            events.append(client.watch(f"{PODS}?fieldSelector=metadata.name%3Dvictim"))
        urgent = client.send("GET", f"{PODS}/urgent")
        if urgent[0] == 200 and "nodeName" not in urgent[1]["spec"] and not deleted:
            deleted.append(client.delete(f"{PODS}/victim")[0])
        first_fit(client)

    deleted: list[int] = []
    story = FacadeStory(scheduler=preempt)
    victim = PodArrival(0.0, arriving(0.0, "victim").pod, PodLifecycle(stopping=3.0))
    scenario = a_scenario(
        [a_node_spec("n1", holds=["web"])], [victim, arriving(7.0, "urgent")], delays=AT_ONCE, until=60.0
    )
    story.run(scenario)

    assert [
        (0.0, "pod-bound", "victim"),
        (0.0, "pod-started", "victim"),
        (7.0, "decided: unschedulable", "urgent"),
        (10.0, "pod-removed", "victim"),
        (10.0, "pod-bound", "urgent"),
        (10.0, "pod-started", "urgent"),
    ] == lines(story)
    # created, bound, running, being deleted, gone
    assert ["ADDED", "MODIFIED", "MODIFIED", "MODIFIED", "DELETED"] == [kind for kind, _ in events[0].seen]
    marked = events[0].all[3]["object"]["metadata"]
    assert ("2026-01-01T00:00:37Z", 30) == (marked["deletionTimestamp"], marked["deletionGracePeriodSeconds"])


@pytest.mark.parametrize(
    ("options", "removed"),
    [
        # it takes 20 s to stop, and is killed when its grace period is over
        pytest.param(None, 20.0, id="the pod's own grace period"),
        pytest.param({"gracePeriodSeconds": 5}, 15.0, id="5 s"),
        pytest.param({"gracePeriodSeconds": 0}, 10.0, id="none"),
    ],
)
def test_a_deletion_takes_as_long_as_the_pod_but_not_longer_than_its_grace_period(options, removed):
    story = FacadeStory({10.0: lambda client: client.delete(f"{PODS}/p", options)})
    pod = PodArrival(0.0, arriving(0.0, "p").pod, PodLifecycle(stopping=10.0))
    story.run(a_scenario([a_node_spec("n1", holds=["web"])], [pod, tick(10.0)], delays=AT_ONCE, until=60.0))

    assert (removed, "pod-removed", "p") == lines(story)[-1]
    assert 404 == story.client.send("GET", f"{PODS}/p")[0]


def test_a_pod_that_is_deleted_before_it_is_bound_never_runs():
    story = FacadeStory({0.0: lambda client: client.delete(f"{PODS}/p")})
    result = story.run(a_scenario([a_node_spec("n1")], [arriving(0.0, "p")]))

    assert [(0.0, "pod-removed", "p")] == lines(story)
    assert [""] == [pod.node for pod in result.pods]


def test_a_pod_with_a_finalizer_stays_after_it_has_stopped():
    hold = {"metadata": {"finalizers": ["example.com/hold"]}}
    story = FacadeStory(
        {
            5.0: lambda client: client.patch(f"{PODS}/p", hold),
            10.0: lambda client: client.delete(f"{PODS}/p"),
            20.0: lambda client: left.append(client.get(f"{PODS}/p")["metadata"]["deletionGracePeriodSeconds"]),
            30.0: lambda client: client.patch(f"{PODS}/p", {"metadata": {"finalizers": None}}),
        }
    )
    left: list[int] = []
    pods = [arriving(0.0, "p"), *(tick(at) for at in (5.0, 10.0, 20.0, 30.0))]
    story.run(a_scenario([a_node_spec("n1", holds=["web"])], pods, delays=AT_ONCE))

    assert (10.0, "pod-removed", "p") == lines(story)[-1]
    assert [0] == left
    assert 404 == story.client.send("GET", f"{PODS}/p")[0]


def test_a_pod_of_the_same_name_is_another_pod():
    """IBM's scheduler replaces pods of a batch queue in this way."""

    def replace(client: ApiClient) -> None:
        uids.append(client.get(f"{PODS}/p")["metadata"]["uid"])
        assert 200 == client.delete(f"{PODS}/p", {"gracePeriodSeconds": 0})[0]
        uids.append(client.made(PODS, a_pod_object("p"))["metadata"]["uid"])

    uids: list[str] = []
    story = FacadeStory({5.0: replace})
    story.run(
        a_scenario([a_node_spec("n1", holds=["web"])], [arriving(0.0, "p"), tick(5.0)], delays=AT_ONCE, until=20.0)
    )

    assert [
        (0.0, "pod-bound", "p"),
        (0.0, "pod-started", "p"),
        (5.0, "pod-removed", "p"),
        (5.0, "pod-bound", "p"),
        (5.0, "pod-started", "p"),
    ] == lines(story)
    assert 2 == len(set(uids))


def test_pods_of_another_scheduler_are_shown_and_left_alone():
    story = FacadeStory()
    result = story.run(a_scenario([a_node_spec("n1")], [arriving(0.0, "p", scheduler="other")]))

    assert {"p": ""} == placed(result)
    assert ["p"] == story.client.names(f"{PODS}?fieldSelector=spec.schedulerName%3Dother")


def test_a_binding_to_a_node_that_does_not_exist_leaves_the_pod_waiting_for_it():
    """The API server accepts it, as a real one does; nothing ever runs the pod."""
    story = FacadeStory({0.0: lambda client: client.bind("p", "ghost")})
    result = story.run(a_scenario([a_node_spec("n1")], [arriving(0.0, "p")]))

    assert {"p": ""} == placed(result)
    assert ("ghost", "Pending") == (
        story.client.get(f"{PODS}/p")["spec"]["nodeName"],
        story.client.get(f"{PODS}/p")["status"]["phase"],
    )
