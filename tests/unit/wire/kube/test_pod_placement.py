"""What a pod says about its own placement."""

import json
from typing import Any

import pytest

from lamina.wire.decision_note import DecisionNote
from lamina.wire.errors import WireError
from lamina.wire.kube.pod_placement import PodPlacement, decode_pod_placement


def a_pod(**parts: Any) -> dict[str, Any]:
    metadata = {"name": "web-0", "namespace": "shop", **parts.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, **parts}


def read(value: object) -> PodPlacement:
    return decode_pod_placement(json.dumps(value).encode())


def waiting(status: str = "False", **said: Any) -> dict[str, Any]:
    return {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": status, **said}]}


def test_a_placed_pod_tells_its_node_and_its_note():
    note = {"annotations": {"lamina.dev/decision": '{"node":"n1","total":300}', "other": "x"}}
    told = read(a_pod(metadata=note, spec={"nodeName": "n1", "schedulerName": "lamina"}, status={"phase": "Running"}))

    assert (
        PodPlacement(
            pod="shop/web-0", scheduler="lamina", node="n1", phase="Running", note=DecisionNote(node="n1", total=300)
        )
        == told
    )


def test_a_waiting_pod_tells_why():
    told = read(a_pod(spec={}, status=waiting(reason="Unschedulable", message="0/3 nodes are available")))

    assert (
        PodPlacement(pod="shop/web-0", phase="Pending", reason="Unschedulable", message="0/3 nodes are available")
        == told
    )


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(a_pod(), id="nothing but a name"),
        pytest.param(a_pod(spec={}, status=None), id="no status"),
        pytest.param(a_pod(spec={"nodeName": None, "schedulerName": None}, status={"conditions": None}), id="nulls"),
        pytest.param(a_pod(status=waiting("True", reason="x")), id="scheduled"),
        pytest.param(a_pod(status={"conditions": [{"type": "Ready", "status": "False", "reason": "x"}]}), id="others"),
        pytest.param(a_pod(status=waiting(reason=None, message=None)), id="no reason"),
    ],
)
def test_a_pod_without_an_attempt_has_no_reason(pod):
    told = read(pod)

    assert ("shop/web-0", "default-scheduler", "", "", "", None) == (
        told.pod,
        told.scheduler,
        told.node,
        told.reason,
        told.message,
        told.note,
    )


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"<html>", id="a web page"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b'{"metadata": {"name": 5}}', id="a number for a name"),
        pytest.param(b'{"spec": []}', id="a list for a spec"),
        pytest.param(b'{"status": {"conditions": [null]}}', id="an empty condition"),
        pytest.param(b'{"spec":' * 100_000, id="deep"),
        pytest.param(b"\xff\xfe", id="no text"),
    ],
)
def test_what_is_no_pod_is_refused_in_one_line(data):
    with pytest.raises(WireError) as caught:
        decode_pod_placement(data)

    assert 1 == len(str(caught.value).splitlines())


@pytest.mark.parametrize("kind", ["Node", "PodList", "Status", "Secret"])
def test_another_kind_of_object_is_refused(kind):
    with pytest.raises(WireError, match=kind):
        read({**a_pod(), "kind": kind})


@pytest.mark.parametrize("text", ["", "hello", "{}", '{"node":' * 300, "x" * 5000])
def test_an_odd_note_does_not_hide_the_rest(text):
    told = read(a_pod(metadata={"annotations": {"lamina.dev/decision": text}}, spec={"nodeName": "n1"}))

    assert "n1" == told.node
