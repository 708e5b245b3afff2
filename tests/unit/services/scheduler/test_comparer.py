"""Cache and API server side by side: every kind of difference, and none that is only a race."""

import json
from typing import Any

import pytest

from lamina.clients.kube.errors import ApiError
from lamina.model.events import BindDone, NodeSeen, PodSeen
from lamina.model.pod import PodUid
from lamina.scheduling.loop.loop import Loop
from lamina.services.scheduler import comparer
from lamina.services.scheduler.comparer import CacheComparison, CacheDifference, compare
from lamina.services.scheduler.shadow_executor import ShadowExecutor
from lamina.testing import a_loop
from lamina.wire.kube.codec import decode_node, decode_pod
from tests.unit.services.fakes import ScriptedClient, StillClock, leaping, refused


def a_node(name: str, cpu: str = "4", **metadata: Any) -> dict[str, Any]:
    return {
        "kind": "Node",
        "metadata": {"name": name, "uid": f"uid of {name}", **metadata},
        "status": {"allocatable": {"cpu": cpu, "memory": "16Gi", "pods": "110"}},
    }


def a_pod(name: str, node: str = "", scheduler: str = "default-scheduler", **metadata: Any) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": f"uid of {name}", **metadata},
        "spec": {"nodeName": node, "schedulerName": scheduler, "containers": [{"name": "c", "image": "app:1"}]},
    }


def a_list(kind: str, items: list[dict[str, Any]], token: str = "") -> bytes:
    metadata = {"resourceVersion": "7", **({"continue": token} if token else {})}
    return json.dumps({"kind": kind, "metadata": metadata, "items": items}).encode()


def served(nodes: list[dict[str, Any]], pods: list[dict[str, Any]]) -> list[bytes]:
    return [a_list("NodeList", nodes), a_list("PodList", pods)]


def cached(nodes: list[dict[str, Any]], pods: list[dict[str, Any]]) -> Loop:
    loop = a_loop()
    loop.take(*(NodeSeen(decode_node(json.dumps(node).encode())) for node in nodes))
    loop.take(*(PodSeen(decode_pod(json.dumps(pod).encode())) for pod in pods))
    return loop


def compared(loop: Loop, *looks: list[bytes]) -> tuple[CacheComparison, ScriptedClient]:
    """Compare; the last look is the same for ever."""
    client = ScriptedClient(*(page for look in looks for page in look))
    return leaping(compare(client, loop)), client


N1, N2 = a_node("n1"), a_node("n2")


def test_who_agrees_is_looked_at_once():
    nodes, pods = [N1, N2], [a_pod("placed", "n1"), a_pod("waits"), a_pod("other", scheduler="somebody-else")]
    found, client = compared(cached(nodes, pods), served(nodes, pods))

    assert CacheComparison(2, 3, ()) == found
    assert ["GET nodes", "GET pods"] == client.short
    assert "status.phase!=Succeeded,status.phase!=Failed" == client.asked[1].query["fieldSelector"]


@pytest.mark.parametrize(
    ("ours", "theirs", "difference"),
    [
        pytest.param(([N1], []), ([N1, N2], []), ("Node", "n2", "not there", "there"), id="a node we missed"),
        pytest.param(([N1, N2], []), ([N1], []), ("Node", "n2", "there", "not there"), id="a node that is gone"),
        pytest.param(
            ([N1], []), ([a_node("n1", cpu="8")], []), ("Node", "n1", "another version", "newest version"), id="changed"
        ),
        pytest.param(
            ([N1], [a_pod("p")]), ([N1], [a_pod("p", "n1")]), ("Pod", "shop/p", "on no node", "on n1"), id="placed"
        ),
        pytest.param(
            ([N1], [a_pod("p", "n1")]), ([N1], [a_pod("p", "n2")]), ("Pod", "shop/p", "on n1", "on n2"), id="elsewhere"
        ),
        pytest.param(
            ([N1], [a_pod("p", "n1")]), ([N1], [a_pod("p")]), ("Pod", "shop/p", "on n1", "on no node"), id="not placed"
        ),
        pytest.param(
            ([N1], [a_pod("p", "n1")]), ([N1], []), ("Pod", "shop/p", "on n1", "not there"), id="placed, gone"
        ),
        pytest.param(([N1], [a_pod("p")]), ([N1], []), ("Pod", "shop/p", "waiting", "not there"), id="waiting, gone"),
        pytest.param(
            ([N1], []), ([N1], [a_pod("p")]), ("Pod", "shop/p", "not waiting", "waits for a node"), id="a pod we missed"
        ),
        pytest.param(
            ([N1], [a_pod("p", "n1")]),
            ([N1], [a_pod("p", "n1", uid="another")]),
            ("Pod", "shop/p", "on n1", "not there"),
            id="another pod of that name",
        ),
    ],
)
def test_what_differs_twice_is_a_difference(ours, theirs, difference):
    found, client = compared(cached(*ours), served(*theirs), served(*theirs))

    assert CacheDifference(*difference) in found.differences
    assert 4 == len(client.asked)
    assert comparer.SECOND_LOOK_AFTER <= client.asked[2].at - client.asked[0].at + 1e-6


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        pytest.param(
            ([N1], []), ([N1], [a_pod("p", deletionTimestamp="2026-01-01T00:00:00Z")]), id="a pod that goes unplaced"
        ),
        pytest.param(([N1], []), ([N1], [a_pod("p", scheduler="somebody-else")]), id="somebody else's pod"),
        pytest.param(
            ([N1], []),
            ([{**N1, "status": {**N1["status"], "images": [{"names": ["app:1"], "sizeBytes": 5}]}}], []),
            id="images",
        ),
    ],
)
def test_what_is_none_of_the_caches_business_is_no_difference(ours, theirs):
    found, _ = compared(cached(*(ours[0] or [N1], ours[1])), served(*theirs))

    assert () == found.differences


def test_a_race_is_no_difference():
    loop = cached([N1], [a_pod("p")])
    found, client = compared(loop, served([N1], [a_pod("p", "n1")]), served([N1], [a_pod("p")]))

    assert () == found.differences
    assert 4 == len(client.asked)


def test_two_races_are_no_difference_either():
    loop = cached([N1], [a_pod("p")])
    found, _ = compared(loop, served([N1], [a_pod("p", "n1")]), served([N1, N2], [a_pod("p")]))

    assert () == found.differences


def test_a_pod_on_its_way_is_no_difference():
    loop = cached([N1], [a_pod("p")])
    loop.decide()
    assert 1 == len(loop.bindings)
    found, client = compared(loop, served([N1], [a_pod("p")]))

    assert () == found.differences
    assert 2 == len(client.asked)


def test_a_pod_that_is_bound_and_not_seen_yet_is_looked_at_twice():
    loop = cached([N1], [a_pod("p")])
    loop.decide()
    loop.take(BindDone("uid of p"))
    found, _ = compared(loop, served([N1], [a_pod("p")]), served([N1], [a_pod("p", "n1")]))

    assert () == found.differences


def test_all_pages_are_read():
    pods = [a_pod(f"p{number}") for number in range(6)]
    client = ScriptedClient(
        a_list("NodeList", [N1], "more"),
        a_list("NodeList", [N2]),
        *(a_list("PodList", pods[at : at + 2], "" if at == 4 else f"from {at}") for at in (0, 2, 4)),
    )
    found = leaping(compare(client, cached([N1, N2], pods)))

    assert CacheComparison(2, 6, ()) == found
    assert ["", "more", "", "from 0", "from 2"] == [asked.query.get("continue", "") for asked in client.asked]
    assert {"5000"} == {asked.query["limit"] for asked in client.asked}


def test_more_differences_than_can_be_told_are_counted(monkeypatch):
    monkeypatch.setattr(comparer, "MOST", 3)
    look = served([a_node(f"n{number}") for number in range(10)], [])
    found, _ = compared(cached([], []), look, look)

    assert (3, 7) == (len(found.differences), found.more)
    assert sorted(found.differences) == list(found.differences)


def test_one_object_that_cannot_be_read_does_not_hide_the_others():
    broken = a_list("PodList", [a_pod("p"), {"kind": "Pod", "metadata": {"name": 5}}])
    found, _ = compared(cached([N1], [a_pod("p")]), [a_list("NodeList", [N1]), broken])

    assert () == found.differences


def test_an_api_server_that_says_no_is_heard_of():
    with pytest.raises(ApiError, match="403"):
        leaping(compare(ScriptedClient(then=refused(403)), cached([], [])))


def test_what_is_only_observed_is_no_difference():
    loop = cached([N1], [])
    observer = ShadowExecutor(loop, loop.take, StillClock())
    loop.take(observer.seen(decode_pod(json.dumps(a_pod("p")).encode())))
    for command in loop.decide():
        observer.perform(command)
    look = served([N1], [a_pod("p")])
    found = leaping(compare(ScriptedClient(*look, *look), loop, observing=True))

    assert () == found.differences


def test_a_pod_that_is_held_at_the_door_is_no_difference():
    held, late = a_pod("held"), a_pod("late")
    client = ScriptedClient(*served([N1], [held, late]) * 2)
    found = leaping(compare(client, cached([N1], []), held=lambda: [PodUid("uid of held")]))

    assert ((CacheDifference("Pod", "shop/late", "not waiting", "waits for a node"),), 2) == (
        found.differences,
        found.pods,
    )
