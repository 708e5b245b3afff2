"""What is watched, which events it becomes, and when enough was seen to decide."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from lamina.clients.kube.errors import ApiError
from lamina.model.events import (
    ImagesLearned,
    LayersReported,
    LayersWithdrawn,
    NamespaceGone,
    NamespaceSeen,
    NodeGone,
    NodeSeen,
    PodGone,
    PodSeen,
)
from lamina.model.pod_controllers import Deployment
from lamina.services.informers.event_queue import EventQueue
from lamina.services.informers.informer_set import LAYERS_WITHIN, InformerSet, ResourceEventHandler
from lamina.services.informers.watched_resources import (
    ALL_RESOURCES,
    IMAGE_LAYERS,
    NAMESPACES,
    NODE_LAYERS,
    NODES,
    OBJECTS,
    PODS,
    WatchedResource,
    pods,
)
from lamina.testing import a_node, a_pod, an_image, held
from lamina.wire.kube.namespace import Namespace
from tests.unit.services.fakes import leaping


class Cluster:
    """An API server that lists what it has, where it can, and then has no news."""

    def __init__(
        self, objects: Mapping[str, list[dict[str, Any]]], broken: tuple[str, ...] = (), status: int = 503
    ) -> None:
        self.objects, self.broken, self.status = objects, broken, status
        self.asked: list[tuple[str, dict[str, str]]] = []

    async def request(self, method: str, path: str, *, query: Mapping[str, str] | None = None, **_: Any) -> bytes:
        raise AssertionError("lists are streamed")

    @asynccontextmanager
    async def stream(
        self, path: str, *, query: Mapping[str, str] | None = None, read_timeout: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        self.asked.append((path, dict(query or {})))
        if path in self.broken:
            raise ApiError(f"GET {path}", self.status, "Odd", "no list of that")
        yield self._events(path)

    async def _events(self, path: str) -> AsyncIterator[bytes]:
        for number, found in enumerate(self.objects.get(path, [])):
            found["metadata"]["resourceVersion"] = str(number + 1)
            yield json.dumps({"type": "ADDED", "object": found}).encode() + b"\n"
        done = {"resourceVersion": "100", "annotations": {"k8s.io/initial-events-end": "true"}}
        yield json.dumps({"type": "BOOKMARK", "object": {"metadata": done}}).encode() + b"\n"
        await asyncio.sleep(10_000.0)


def named(name: str, kind: str, **more: Any) -> dict[str, Any]:
    return {
        "kind": kind,
        "metadata": {"name": name, "uid": f"uid of {name}", "namespace": more.pop("namespace", "")},
        **more,
    }


def watch(
    cluster: Cluster, seconds: float, watched: Sequence[WatchedResource[Any]] = ALL_RESOURCES
) -> tuple[InformerSet, EventQueue, list[list[str]]]:
    """Watch for so long; also what was unsynced every second."""
    unsynced: list[list[str]] = []

    async def story() -> tuple[InformerSet, EventQueue]:
        inbox = EventQueue()
        intake = InformerSet(cluster, inbox, watched)
        task = asyncio.create_task(intake.run())
        for _ in range(int(seconds)):
            unsynced.append(intake.unsynced)
            await asyncio.sleep(1.0)
        if task.done():
            task.result()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return intake, inbox

    return *leaping(story()), unsynced


# --------------------------------------------------------------------------------------------------------------- events


@pytest.mark.parametrize(
    ("watched", "seen", "event", "gone"),
    [
        pytest.param(PODS, a_pod("p"), PodSeen(a_pod("p")), PodGone("p"), id="pods"),
        pytest.param(NODES, a_node("n"), NodeSeen(a_node("n")), NodeGone("n"), id="nodes"),
        pytest.param(
            NAMESPACES,
            Namespace("shop", {"a": "b"}),
            NamespaceSeen("shop", {"a": "b"}),
            NamespaceGone("shop"),
            id="names",
        ),
        pytest.param(NODE_LAYERS, held("n"), LayersReported(held("n")), LayersWithdrawn("n"), id="reports"),
        pytest.param(
            IMAGE_LAYERS,
            an_image("app", {"base": 1}),
            ImagesLearned((an_image("app", {"base": 1}),)),
            None,
            id="images",
        ),
    ],
)
def test_what_is_seen_and_gone_becomes_events(watched, seen, event, gone):
    inbox = EventQueue()
    sink = ResourceEventHandler(watched, inbox)
    sink.put(seen)
    sink.remove(watched.key(seen), seen)

    got = inbox.take(10)
    assert type(event) is type(got[0])
    assert [one for one in (event, gone) if one is not None][1:] == got[1:]


def test_pods_that_have_ended_are_not_even_asked_for():
    assert "status.phase!=Succeeded,status.phase!=Failed" == PODS.resource.field_selector


def test_a_pod_is_known_by_its_uid_so_that_its_successor_is_another():
    assert PODS.key(a_pod("p")) == "p" == a_pod("p").uid


def test_nothing_may_be_decided_without_nodes_pods_and_namespaces_but_without_layers():
    assert {"Node": True, "Pod": True, "Namespace": True, "NodeLayers": False, "ImageLayers": False} == {
        one.resource.kind: one.required for one in ALL_RESOURCES
    }


def test_the_end_of_a_list_rings_so_that_deciding_can_begin():
    async def story() -> float:
        inbox = EventQueue()
        ResourceEventHandler(PODS, inbox).synced()
        await inbox.wait(100.0)
        return asyncio.get_running_loop().time()

    assert 1000.0 == leaping(story())


# -------------------------------------------------------------------------------------------------------------- synced


def test_everything_is_listed_and_lands_in_the_inbox():
    cluster = Cluster(
        {
            "/api/v1/nodes": [named("n1", "Node", status={"allocatable": {"cpu": "4"}})],
            "/api/v1/pods": [named("p1", "Pod", namespace="shop", spec={"containers": []})],
            "/api/v1/namespaces": [named("shop", "Namespace")],
        }
    )
    intake, inbox, unsynced = watch(cluster, 2)

    assert sorted(one.resource.kind for one in ALL_RESOURCES) == sorted(unsynced[0])
    assert [] == unsynced[1]
    assert intake.synced
    assert {"NodeSeen", "PodSeen", "NamespaceSeen"} == {type(event).__name__ for event in inbox.take(10)}
    assert {"status.phase!=Succeeded,status.phase!=Failed"} == {
        query["fieldSelector"] for path, query in cluster.asked if path == "/api/v1/pods"
    }


def test_layers_are_waited_for_a_little_and_then_no_longer(caplog):
    caplog.set_level(logging.WARNING)
    layers = (NODE_LAYERS.resource.path, IMAGE_LAYERS.resource.path)
    _, _, unsynced = watch(Cluster({}, broken=layers), LAYERS_WITHIN + 4)

    assert ["NodeLayers", "ImageLayers"] == unsynced[1] == unsynced[int(LAYERS_WITHIN) - 1]
    assert [] == unsynced[-1]
    assert any("deciding without NodeLayers and ImageLayers" in line for line in caplog.messages)


def test_kinds_that_nobody_installed_are_not_waited_for():
    layers = (NODE_LAYERS.resource.path, IMAGE_LAYERS.resource.path)
    _, _, unsynced = watch(Cluster({}, broken=layers, status=404), 2)

    assert [] == unsynced[-1]


@pytest.mark.parametrize(
    ("watched", "waits"),
    [
        pytest.param(OBJECTS[Deployment], False, id="an optional permission"),
        pytest.param(NODE_LAYERS, True, id="layers, whose permission is not optional"),
    ],
)
def test_kinds_without_their_optional_permission_are_not_waited_for(watched, waits):
    _, _, unsynced = watch(Cluster({}, broken=(watched.resource.path,), status=403), 3, [NODES, watched])

    assert [watched.resource.kind] * waits == unsynced[-1]


@pytest.mark.parametrize("path", ["/api/v1/nodes", "/api/v1/pods", "/api/v1/namespaces"])
def test_without_the_rest_nothing_is_decided_however_long_it_takes(path):
    _, _, unsynced = watch(Cluster({}, broken=(path,)), 10 * LAYERS_WITHIN)

    assert 1 == len(unsynced[-1])


@pytest.mark.parametrize(
    ("endings", "selector"), [(False, "status.phase!=Succeeded,status.phase!=Failed"), (True, None)]
)
def test_pods_that_have_ended_are_asked_for_only_when_their_endings_are_wanted(endings, selector):
    async def story() -> tuple[str | None, list[Any]]:
        ended = {"metadata": {"name": "p", "namespace": "d", "uid": "u"}, "spec": {}, "status": {"phase": "Failed"}}
        cluster, inbox = Cluster({"/api/v1/pods": [ended] if endings else []}), EventQueue()
        intake = InformerSet(cluster, inbox, [pods(endings=endings)])
        task = asyncio.create_task(intake.run())
        await asyncio.sleep(1.0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert 0 == len(intake.reflectors["Pod"].store), "it is not held"
        return cluster.asked[0][1].get("fieldSelector"), inbox.take(10)

    found, events = leaping(story())
    assert selector == found
    assert [(True, "u")] * endings == [(event.pod.finished, event.pod.uid) for event in events]
