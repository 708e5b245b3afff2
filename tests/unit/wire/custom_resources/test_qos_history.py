"""QosHistory: what is written is read again, and nothing that is false is believed."""

import json
from typing import Any

import pytest

from lamina.wire.custom_resources.qos_history import (
    MOST_CONTROLLERS,
    MOST_PODS,
    SPEC_LIMIT,
    QosHistory,
    StoredController,
    StoredPod,
    StoredSlot,
    StoredTimes,
    decode_qos_history,
    encode_qos_history,
)
from lamina.wire.errors import WireError

WEB = StoredController(
    "default",
    "web",
    0.9,
    5.0,
    "average",
    0.1,
    "Deployment",
    3,
    StoredTimes(100.5, 0.0, 7.25, 0.125),
    12,
    0,
    (),
    (StoredPod("u-1", "effective", StoredTimes(10.0)), StoredPod("u-2", "waiting", ended=True, succeeded=True)),
)
BARE = StoredController(
    "shop", "job-1", 0.0, -1.0, "independent", 0.0, slots=(StoredSlot(StoredTimes(waiting=3.0), 2, ("u-3",)),)
)
HISTORY = QosHistory(1_700_000_000.123456, (WEB, BARE))


def written(**changes: Any) -> dict[str, Any]:
    """The object as data, with changed fields of its first controller."""
    found: dict[str, Any] = json.loads(encode_qos_history("lamina-scheduler", HISTORY) or b"")
    found["spec"]["controllers"][0] |= changes
    return found


def test_what_is_written_is_read_again():
    body = encode_qos_history("lamina-scheduler", HISTORY, "17")

    assert body is not None
    assert HISTORY == decode_qos_history(body)
    assert {"name": "lamina-scheduler", "resourceVersion": "17"} == json.loads(body)["metadata"]


def test_a_history_without_controllers_is_a_history():
    assert QosHistory(5.0, ()) == decode_qos_history(encode_qos_history("x", QosHistory(5.0, ())) or b"")


def test_a_history_that_is_too_large_is_not_encoded():
    times = StoredTimes(*[123456.789] * 4)
    pods = tuple(StoredPod(f"{number:0>120}", "discarded", times) for number in range(MOST_PODS))
    many = QosHistory(5.0, (StoredController("n", "c", 0.5, 0.5, "average", 0.5, pods=pods), WEB))

    assert encode_qos_history("x", many) is None


def nested(**times: object) -> dict[str, Any]:
    return written(times=times)


def with_spec(**changes: Any) -> dict[str, Any]:
    found = written()
    found["spec"] |= changes
    return found


POD = {"uid": "u-9", "state": "effective"}
HOSTILE = [
    pytest.param({}, "spec.observedAt is missing", id="empty"),
    pytest.param({"spec": {}}, "spec.observedAt is missing", id="empty spec"),
    pytest.param({"kind": "ConfigMap", "spec": {}}, "this is a ConfigMap", id="another kind"),
    pytest.param({"spec": []}, "Expected `object", id="spec is a list"),
    pytest.param(with_spec(observedAt="yesterday"), "is not a time", id="no time"),
    pytest.param(with_spec(observedAt="1969-12-31T23:59:59Z"), "is not a time after 1970", id="before 1970"),
    pytest.param(with_spec(controllers=[{}]), "missing required field", id="controller without fields"),
    pytest.param(
        with_spec(controllers=[{"namespace": "a", "name": "b"}] * (MOST_CONTROLLERS + 1)),
        "Object missing",
        id="too many controllers",
    ),
    pytest.param(written(slo=1.5), "<= 1.0", id="SLO above 1"),
    pytest.param(written(slo="0.9"), "Expected `float`", id="SLO is text"),
    pytest.param(written(importance=1e300), "<= 1000000000000.0", id="importance is huge"),
    pytest.param(written(approach="best"), "Invalid enum value", id="unknown approach"),
    pytest.param(nested(effective=-1.0), ">= 0.0", id="negative time"),
    pytest.param(nested(waiting=1e300), "<= 10000000000.0", id="time is huge"),
    pytest.param(written(incarnations=-1), ">= 0", id="negative count"),
    pytest.param(written(replicas=2**40), "<= 2147483648", id="too many replicas"),
    pytest.param(written(name="n" * 300), "length <= 253", id="long name"),
    pytest.param(written(namespace=""), "length >= 1", id="no namespace"),
    pytest.param(written(pods=[POD | {"state": "dead"}]), "Invalid enum value", id="unknown state"),
    pytest.param(written(pods=[POD, POD]), "has a pod twice", id="pod twice"),
    pytest.param(written(pods=[POD | {"uid": "u-1"}, {"uid": "u-1", "state": "waiting"}]), "twice", id="uid twice"),
    pytest.param(written(namespace="shop", kind="", name="job-1"), "a controller twice", id="controller twice"),
]


@pytest.mark.parametrize(("found", "problem"), HOSTILE)
def test_an_object_with_a_false_value_is_rejected_as_a_whole(found, problem):
    with pytest.raises(WireError, match="cannot read QosHistory") as error:
        decode_qos_history(json.dumps(found).encode())

    assert problem in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\xff\xfe", id="not text"),
        pytest.param(b"[" * 100_000, id="deep"),
        pytest.param(b'{"spec": {"observedAt": "2026-01-01T00:00:00Z", "controllers": [NaN]}}', id="NaN"),
        pytest.param(b" " * (2 * SPEC_LIMIT), id="too large"),
    ],
)
def test_bytes_that_are_no_object_are_rejected(body):
    with pytest.raises(WireError, match="cannot read QosHistory"):
        decode_qos_history(body)
