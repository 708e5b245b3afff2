"""How pods end, as a real API server tells it: once each, also when the watch begins anew, and nothing is kept of them."""

import asyncio
from typing import Any

import pytest

from lamina.clients.kube.access import load_access
from lamina.clients.kube.transport import KubeClient
from lamina.model.events import Event, PodGone, PodSeen
from lamina.services.informers.event_queue import EventQueue
from lamina.services.informers.informer_set import InformerSet
from lamina.services.informers.watched_resources import pods
from tests.unit.clients.kube.mirrored import until

pytestmark = [pytest.mark.realtime, pytest.mark.slow]

PODS = "/api/v1/namespaces/default/pods"


def a_pod(name: str) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "example.org/app:1"}], "terminationGracePeriodSeconds": 0}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def told(events: list[Event]) -> list[str]:
    """Who was seen, ended or not, and who is gone, without repetitions."""
    words = []
    for event in events:
        if isinstance(event, PodSeen):
            words.append(f"{event.pod.name} {'ended' if event.pod.finished else 'there'}")
        elif isinstance(event, PodGone):
            words.append("gone")
    return [word for number, word in enumerate(words) if number == 0 or words[number - 1] != word or "ended" in word]


async def test_a_pod_that_ends_is_seen_once_with_its_outcome_and_not_held(bed_factory):
    bed = bed_factory()

    def end(name: str, phase: str) -> None:
        bed.api("PATCH", f"{PODS}/{name}/status", {"status": {"phase": phase}})

    client, inbox = KubeClient(load_access(bed.admin)), EventQueue()
    intake = InformerSet(client, inbox, [pods(endings=True)])
    mirror = intake.reflectors["Pod"].store
    task = asyncio.create_task(intake.run())
    try:
        await until(lambda: intake.synced)
        for name, phase in (("well", "Succeeded"), ("badly", "Failed")):
            await asyncio.to_thread(bed.api, "POST", PODS, a_pod(name))
            await asyncio.to_thread(end, name, phase)
        await until(lambda: len(mirror.tombstones) == 2)
        # A change after the end, a new connection, the deletion: none of them is news.
        await asyncio.to_thread(bed.api, "PATCH", f"{PODS}/well", {"metadata": {"labels": {"late": "yes"}}})
        await asyncio.to_thread(bed.parts["kube-apiserver"].restart)
        await until(lambda: intake.reflectors["Pod"].stale_since is None)
        await asyncio.to_thread(bed.api, "DELETE", f"{PODS}/well")
        await until(lambda: len(mirror.tombstones) == 1)
        await asyncio.to_thread(bed.api, "POST", PODS, a_pod("well"))
        await until(lambda: len(mirror) == 1)
        await asyncio.to_thread(bed.api, "DELETE", f"{PODS}/well")
        await until(lambda: len(mirror) == 0)
        await asyncio.to_thread(bed.api, "DELETE", f"{PODS}/badly")
        await until(lambda: len(mirror.tombstones) == 0)
        expected = ["well there", "well ended", "badly there", "badly ended", "well there", "gone"]
        assert expected == told(inbox.take(1000))
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await client.close()
