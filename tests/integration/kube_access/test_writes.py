"""What we write, as a real API server takes it."""

import pytest

from lamina.clients.kube import pod_writes
from lamina.clients.kube.errors import ApiError
from lamina.clients.kube.pod_writes import (
    EvictionBlocked,
    PodKey,
    bind,
    delete_pod,
    evict,
    patch_pod_status,
    preempt_pod,
)
from lamina.model.pod import Pod, PodUid
from lamina.wire.kube.codec import encode_binding
from tests.integration.kube_access.pods import add_pod, condition, get_pod

pytestmark = [pytest.mark.realtime, pytest.mark.slow]

NOW = 1772368205.0  # 2026-03-01T12:30:05Z


def binding(pod: PodKey, node: str, annotations: dict[str, str] | None = None) -> bytes:
    return encode_binding(Pod(uid=PodUid(pod.uid), name=pod.name, namespace=pod.namespace), node, annotations)


def later(pod: PodKey) -> PodKey:
    """A pod of the same name that is not this one."""
    return PodKey(pod.namespace, pod.name, "11111111-2222-3333-4444-555555555555")


async def test_a_binding_places_the_pod_and_its_annotations_in_one_step(control_plane, client, namespace):
    pod = add_pod(control_plane, namespace, "web")
    await bind(client, namespace, "web", binding(pod, "n1", {"lamina.dev/why": "layers"}))

    found = get_pod(control_plane, pod)
    assert ("n1", {"lamina.dev/why": "layers"}) == (found["spec"]["nodeName"], found["metadata"]["annotations"])
    assert "True" == condition(control_plane, pod, "PodScheduled")["status"]


async def test_a_pod_is_bound_once_and_only_if_it_is_the_one_that_was_meant(control_plane, client, namespace):
    pod = add_pod(control_plane, namespace, "web")
    with pytest.raises(ApiError) as other:
        await bind(client, namespace, "web", binding(later(pod), "n1"))
    await bind(client, namespace, "web", binding(pod, "n1"))
    with pytest.raises(ApiError) as twice:
        await bind(client, namespace, "web", binding(pod, "n2"))
    with pytest.raises(ApiError) as gone:
        await bind(client, namespace, "absent", binding(PodKey(namespace, "absent", pod.uid), "n1"))

    assert [409, 409, 404] == [caught.value.status for caught in (other, twice, gone)]
    assert "n1" == get_pod(control_plane, pod)["spec"]["nodeName"]


async def test_a_condition_keeps_its_time_while_only_its_words_change(control_plane, client, namespace):
    pod = add_pod(control_plane, namespace, "web")
    first = pod_writes.unscheduled_condition(pod_writes.UNSCHEDULABLE, "0/3 nodes are available")
    second = pod_writes.unscheduled_condition(pod_writes.SCHEDULER_ERROR, "é" * 5000)

    patch = pod_writes.status_patch(pod, NOW, condition=first, node="n1")
    assert patch is not None
    assert await patch_pod_status(client, pod, patch)
    assert "n1" == get_pod(control_plane, pod)["status"]["nominatedNodeName"]

    patch = pod_writes.status_patch(pod, NOW + 60, condition=second, old=first, node="")
    assert patch is not None
    assert await patch_pod_status(client, pod, patch)
    found = condition(control_plane, pod, "PodScheduled")
    assert ("False", "SchedulerError", second.message) == (found["status"], found["reason"], found["message"])
    assert "2026-03-01T12:30:05Z" == found["lastTransitionTime"]
    assert "nominatedNodeName" not in get_pod(control_plane, pod)["status"]


async def test_a_later_pod_of_the_same_name_is_never_touched(control_plane, client, namespace):
    pod = add_pod(control_plane, namespace, "web")
    before = get_pod(control_plane, pod)
    patch = pod_writes.status_patch(later(pod), NOW, condition=pod_writes.unscheduled_condition("Unschedulable", "x"))
    assert patch is not None

    assert [False] * 4 == [
        await patch_pod_status(client, later(pod), patch),
        await delete_pod(client, later(pod)),
        await evict(client, later(pod)),
        await preempt_pod(client, later(pod), "lamina-scheduler", NOW),
    ]
    assert before == get_pod(control_plane, pod)


async def test_a_pod_that_is_gone_is_an_answer(control_plane, client, namespace):
    pod = add_pod(control_plane, namespace, "web")

    assert [True, False] == [await delete_pod(client, pod), await delete_pod(client, pod)]
    assert False is await evict(client, pod)


async def test_a_victim_is_told_why_it_has_to_leave(control_plane, client, namespace):
    pod = add_pod(control_plane, namespace, "web")
    await bind(client, namespace, "web", binding(pod, "n1"))

    assert await preempt_pod(client, pod, "lamina-scheduler", NOW)
    found = condition(control_plane, pod, "DisruptionTarget")
    assert ("True", "PreemptionByScheduler") == (found["status"], found["reason"])
    assert "deletionTimestamp" in get_pod(control_plane, pod)["metadata"]
    assert await delete_pod(client, pod, grace=0)


async def test_a_budget_that_says_no_is_an_answer_with_the_servers_words(control_plane, client, namespace):
    """The budget's controller does not run, so that the server waits for it and says when to ask again."""
    pod = add_pod(control_plane, namespace, "web")
    await bind(client, namespace, "web", binding(pod, "n1"))
    path = f"{pod.path}/status"
    control_plane.api(
        "PATCH", path, {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    )
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}
    control_plane.api("POST", f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets", budget)

    answer = await evict(client, pod)

    assert isinstance(answer, EvictionBlocked)
    assert answer.retry_after is not None
    assert "disruption budget" in answer.message
    assert await delete_pod(client, pod, grace=0)


async def test_without_a_budget_an_eviction_deletes(control_plane, client, namespace):
    pod = add_pod(control_plane, namespace, "web")

    assert True is await evict(client, pod, grace=0)
    assert False is await delete_pod(client, pod)
