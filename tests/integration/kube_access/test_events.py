"""Events, as a real API server and kubectl show them."""

import asyncio
import json

import pytest
from msgspec.structs import replace

from lamina.clients.kube.errors import ApiError
from lamina.clients.kube.event_recorder import NORMAL, WARNING, EventRecorder
from tests.integration.kube_access.pods import add_pod, reference

pytestmark = [pytest.mark.realtime, pytest.mark.slow]


@pytest.fixture
async def recorder(client):
    recorder = EventRecorder(client, "lamina-scheduler", "lamina-scheduler-host")
    work = asyncio.create_task(recorder.run())
    yield recorder
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)


def events(bed, namespace):
    return bed.api("GET", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]


async def test_kubectl_describes_what_the_scheduler_did(control_plane, recorder, namespace):
    pod = reference(control_plane, add_pod(control_plane, namespace, "web"))
    recorder.record(pod, WARNING, "FailedScheduling", "Scheduling", "0/1 nodes are available: 1 node(s) were unhappy.")
    recorder.record(pod, NORMAL, "Scheduled", "Binding", f"Successfully assigned {namespace}/web to n1")
    assert await recorder.drain(30)

    described = control_plane.kubectl("describe", "pod", "web", "-n", namespace).partition("Events:")[2]
    lines = [" ".join(line.split()) for line in described.splitlines()]
    assert any("FailedScheduling" in line and "lamina-scheduler 0/1 nodes are available" in line for line in lines)
    assert any("Scheduled" in line and f"Successfully assigned {namespace}/web to n1" in line for line in lines)
    assert (2, 0) == (recorder.counts.posted, recorder.counts.failed)


async def test_repeats_are_one_event_with_a_count(control_plane, recorder, namespace):
    pod = reference(control_plane, add_pod(control_plane, namespace, "web"))
    for _ in range(7):
        recorder.record(pod, WARNING, "FailedScheduling", "Scheduling", "0/1 nodes are available")
        await asyncio.sleep(0.05)
    assert await recorder.drain(30)

    (event,) = events(control_plane, namespace)
    assert 7 == event["series"]["count"]
    assert "lamina-scheduler" == event["reportingController"]


async def test_a_series_goes_on_when_its_event_was_deleted(control_plane, recorder, namespace):
    pod = reference(control_plane, add_pod(control_plane, namespace, "web"))
    recorder.record(pod, WARNING, "FailedScheduling", "Scheduling", "0/1 nodes are available")
    assert await recorder.drain(30)
    control_plane.api("DELETE", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")
    recorder.record(pod, WARNING, "FailedScheduling", "Scheduling", "0/1 nodes are available")
    assert await recorder.drain(30)

    assert [2] == [event["series"]["count"] for event in events(control_plane, namespace)]


async def test_the_longest_words_the_server_takes_are_sent(control_plane, client, recorder, namespace):
    pod = reference(control_plane, add_pod(control_plane, namespace, "web"))
    recorder.record(pod, WARNING, "FailedScheduling", "Scheduling", "é" * 4000)
    assert await recorder.drain(30)

    (event,) = events(control_plane, namespace)
    assert 1024 == len(event["note"].encode())
    too_long = {**event, "metadata": {"name": "too-long", "namespace": namespace}, "note": "x" * 1025}
    path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
    with pytest.raises(ApiError):
        await client.request("POST", path, body=json.dumps(too_long).encode())


async def test_events_of_a_namespace_that_is_gone_are_dropped_and_nothing_is_held_up(
    control_plane, recorder, namespace
):
    pod = reference(control_plane, add_pod(control_plane, namespace, "web"))
    recorder.record(replace(pod, namespace="absent", uid="u"), NORMAL, "Scheduled", "Binding", "x")
    recorder.record(pod, NORMAL, "Scheduled", "Binding", "x")
    assert await recorder.drain(30)

    assert (1, 1) == (recorder.counts.posted, recorder.counts.failed)
