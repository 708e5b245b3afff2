"""What is written about pods, in kube-scheduler's words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.clients.kube import pod_writes
from lamina.clients.kube.errors import ApiError
from lamina.clients.kube.pod_writes import (
    EvictionBlocked,
    PodCondition,
    PodKey,
    bind,
    clipped,
    delete_pod,
    evict,
    patch_pod_status,
    preempt_pod,
    status_patch,
    unscheduled_condition,
)
from tests.unit.clients.kube.scripted_client import ScriptedClient, refusal

POD = PodKey("ns", "web-1", "u1")
PATH = "/api/v1/namespaces/ns/pods/web-1"
NO_FIT = unscheduled_condition(pod_writes.UNSCHEDULABLE, "0/3 nodes are available")
NOW = 1772368205.0  # 2026-03-01T12:30:05Z


def raises(error):
    def answer(request):
        raise error

    return answer


@pytest.fixture
def client():
    return ScriptedClient()


def told(patch: bytes | None):
    import json

    return None if patch is None else json.loads(patch)


# ---------------------------------------------------------------------------------------------------------- bindings


async def test_a_binding_goes_to_its_pod(client):
    await bind(client, "ns", "web-1", b'{"kind":"Binding"}')

    (request,) = client.asked
    assert ("POST", f"{PATH}/binding", {"kind": "Binding"}) == (request.method, request.path, request.body)


async def test_a_binding_that_is_refused_is_an_error():
    with pytest.raises(ApiError):
        await bind(ScriptedClient(raises(refusal(409))), "ns", "web-1", b"{}")


def test_a_name_can_lead_to_no_other_place():
    assert "/api/v1/namespaces/a%2Fb/pods/..%2F..%3Fx" == PodKey("a/b", "../..?x", "u").path


# ------------------------------------------------------------------------------------------------------------ status


@pytest.mark.parametrize(
    ("old", "expected"),
    [
        pytest.param(None, "2026-03-01T12:30:05Z", id="a new condition"),
        pytest.param(PodCondition("PodScheduled", "True"), "2026-03-01T12:30:05Z", id="another status"),
        pytest.param(PodCondition("PodScheduled", "False", "SchedulerError", "x"), None, id="only other words"),
    ],
)
def test_a_condition_tells_since_when_if_its_status_changes(old, expected):
    said = told(status_patch(POD, NOW, condition=NO_FIT, old=old))

    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": NO_FIT.message}
    if expected is not None:
        condition["lastTransitionTime"] = expected
    assert {"metadata": {"uid": "u1"}, "status": {"conditions": [condition]}} == said


def test_nothing_is_written_if_nothing_changes():
    assert status_patch(POD, NOW, condition=NO_FIT, old=NO_FIT) is None


@pytest.mark.parametrize(("node", "expected"), [("n1", "n1"), ("", None)])
def test_a_nomination_is_set_or_taken_back(node, expected):
    said = told(status_patch(POD, NOW, condition=NO_FIT, old=NO_FIT, node=node))

    assert {"nominatedNodeName": expected} == said["status"]


async def test_a_status_is_patched_by_merging(client):
    assert await patch_pod_status(client, POD, b"{}")

    (request,) = client.asked
    assert ("PATCH", f"{PATH}/status") == (request.method, request.path)
    assert "application/strategic-merge-patch+json" == request.content_type


# ------------------------------------------------------------------------------------------------- going, going, gone


async def test_a_deletion_is_of_this_pod_and_no_later_one(client):
    assert await delete_pod(client, POD, grace=5)

    (request,) = client.asked
    assert ("DELETE", PATH) == (request.method, request.path)
    assert {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u1"},
        "gracePeriodSeconds": 5,
    } == request.body


async def test_a_pod_that_has_to_make_room_is_told_why_and_then_deleted(client):
    assert await preempt_pod(client, POD, "lamina-scheduler", NOW)

    patch, deletion = client.asked
    assert {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": "lamina-scheduler: preempting to accommodate a higher priority pod",
        "lastTransitionTime": "2026-03-01T12:30:05Z",
    } == patch.body["status"]["conditions"][0]
    assert ("DELETE", {"uid": "u1"}) == (deletion.method, deletion.body["preconditions"])


async def test_a_pod_that_was_told_already_is_only_deleted(client):
    await preempt_pod(client, POD, "s", NOW, old=pod_writes.preempted_condition("s"))

    assert ["DELETE"] == [request.method for request in client.asked]


GONE = [
    pytest.param(refusal(404, "pods \"web-1\" not found"), id="gone"),
    pytest.param(refusal(422, "Pod \"web-1\" is invalid: metadata.uid: Invalid value: \"u2\""), id="by a patch"),
    pytest.param(refusal(409, "Precondition failed: UID in precondition: u1, UID in object meta: u2"), id="another"),
]  # fmt: skip


@pytest.mark.parametrize("error", GONE)
async def test_a_pod_that_is_gone_is_an_answer_and_no_error(error):
    client = ScriptedClient(raises(error))

    assert [False] * 4 == [
        await patch_pod_status(client, POD, b"{}"),
        await delete_pod(client, POD),
        await evict(client, POD),
        await preempt_pod(client, POD, "s", NOW),
    ]
    assert 4 == len(client.asked)


async def test_an_eviction_respects_budgets(client):
    assert True is await evict(client, POD, grace=0)

    (request,) = client.asked
    assert ("POST", f"{PATH}/eviction") == (request.method, request.path)
    assert {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "web-1", "namespace": "ns"},
        "deleteOptions": {"preconditions": {"uid": "u1"}, "gracePeriodSeconds": 0},
    } == request.body


async def test_a_budget_that_says_no_is_an_answer_and_no_error():
    error = refusal(429, "Cannot evict pod as it would violate the pod's disruption budget.", 10.0)

    assert EvictionBlocked(error.message, 10.0) == await evict(ScriptedClient(raises(error)), POD)


@pytest.mark.parametrize("write", [delete_pod, evict, lambda client, pod: patch_pod_status(client, pod, b"{}")])
@pytest.mark.parametrize("status", [403, 409, 500])
async def test_other_refusals_are_errors(write, status):
    with pytest.raises(ApiError):
        await write(ScriptedClient(raises(refusal(status, "something else"))), POD)


# -------------------------------------------------------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        pytest.param("short", 8, "short", id="fits"),
        pytest.param("12345678", 8, "12345678", id="just fits"),
        pytest.param("123456789", 8, "1234 ...", id="cut as upstream cuts"),
        pytest.param("éééé", 8, "éééé", id="counted in bytes"),
        pytest.param("aéééé", 8, "aé ...", id="never inside a character"),
    ],
)
def test_words_are_cut_to_bytes(text, limit, expected):
    assert expected == clipped(text, limit)


@given(st.text(max_size=100), st.integers(4, 60))
def test_what_is_cut_is_short_enough_and_a_beginning(text, limit):
    cut = clipped(text, limit)

    assert len(cut.encode()) <= limit
    assert cut == text or text.startswith(cut.removesuffix(" ..."))


def test_a_condition_has_no_endless_message():
    assert 4096 == len(unscheduled_condition("Unschedulable", "x" * 10_000).message)
