"""Protobuf bodies of Kubernetes clients: the JSON form, and what is wrong with those that cannot be read."""

import pickle

import msgspec
import pytest

from lamina.wire.errors import WireError
from lamina.wire.kube.codec import decode_pod
from lamina.wire.kube_protobuf import protobuf_decoder
from lamina.wire.kube_protobuf.protobuf_decoder import MAX_BYTES, decode_protobuf
from lamina.wire.kube_protobuf.protobuf_reader import ProtobufError
from tests.unit.wire.protobuf_bodies import body, field, go_bodies, without_nulls

PODS = [one for one in go_bodies() if one.name == "v1 Pod, filled"]


@pytest.mark.parametrize("given", [pytest.param(one, id=one.name) for one in go_bodies()])
def test_a_body_that_go_encoded_is_the_json_that_go_writes(given):
    assert without_nulls(given.object) == without_nulls(decode_protobuf(given.body))


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_body_may_be_any_kind_of_bytes(kind):
    assert decode_protobuf(PODS[0].body) == decode_protobuf(kind(PODS[0].body))


def test_the_json_form_holds_what_our_own_decoders_expect():
    simple = body("v1", "Pod", field(1, field(1, "p") + field(3, "team")), field(2, field(10, "n1") + field(25, 7)))
    pod = decode_pod(msgspec.json.encode(decode_protobuf(simple)))

    assert ("team/p", "n1", 7) == (pod.key, pod.node_name, pod.priority)


# --------------------------------------------------------------------------------------------------------- zero values


@pytest.mark.parametrize(
    ("given", "found"),
    [
        pytest.param(body("v1", "DeleteOptions", field(1, 0)), {"gracePeriodSeconds": 0}, id="a pointer to 0 is kept"),
        pytest.param(
            body("v1", "DeleteOptions", field(4, "")), {"propagationPolicy": ""}, id="a pointer to no text is kept"
        ),
        pytest.param(
            body("v1", "DeleteOptions", field(3, 0)), {"orphanDependents": False}, id="a pointer to false is kept"
        ),
        pytest.param(
            body("v1", "Pod", field(1, field(1, "") + field(7, 0) + field(10, 0))),
            {"metadata": {"deletionGracePeriodSeconds": 0}},
            id="a plain zero that Go omits is missing",
        ),
        pytest.param(
            body("v1", "Pod", field(3, field(8, field(1, "") + field(4, 0) + field(5, 0)))),
            {"status": {"containerStatuses": [{"name": "", "ready": False, "restartCount": 0}]}},
            id="a plain zero that Go writes is kept",
        ),
        pytest.param(
            body("v1", "Pod", field(1, field(8, b"") + field(9, b""))), {"metadata": {}}, id="no time is missing"
        ),
    ],
)
def test_zero_values_are_those_of_gos_json(given, found):
    decoded = decode_protobuf(given)

    assert found == {key: value for key, value in decoded.items() if key not in ("apiVersion", "kind")}


# ------------------------------------------------------------------------------------------------------------ messages


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        pytest.param([field(1, field(1, "a")), field(1, field(3, "b"))], {"name": "a", "namespace": "b"}, id="merged"),
        pytest.param([field(1, field(1, "a") + field(1, "b"))], {"name": "b"}, id="the last value counts"),
        pytest.param([field(1, field(1, "a") + field(1, ""))], {}, id="also if it is empty"),
        pytest.param(
            [field(1, field(11, field(1, "k") + field(2, "v")) + field(11, field(1, "k") + field(2, "w")))],
            {"labels": {"k": "w"}},
            id="the last entry of a map counts",
        ),
        pytest.param([field(1, field(11, b""))], {"labels": {"": ""}}, id="an empty entry of a map"),
        pytest.param([field(1, field(999, "x") + field(998, 1))], {}, id="unknown fields are skipped"),
        pytest.param([field(1, b"\x9b\x3e\x08\x01\x9c\x3e")], {}, id="unknown groups are skipped"),
        pytest.param([field(1, b"\xf9\x3e" + b"\x01" * 8 + b"\xfd\x3e" + b"\x01" * 4)], {}, id="so are fixed numbers"),
    ],
)
def test_fields_that_repeat_or_are_unknown(fields, found):
    assert found == decode_protobuf(body("v1", "Pod", *fields))["metadata"]


def test_numbers_of_a_list_may_be_packed():
    groups = field(4, -1) + field(4, b"\x02\x03")  # supplementalGroups, once plain and once packed
    decoded = decode_protobuf(body("v1", "Pod", field(2, field(14, groups))))

    assert decoded["spec"]["securityContext"] == {"supplementalGroups": [-1, 2, 3]}


def test_a_number_of_32_bits_ignores_higher_bits():
    status = field(8, field(1, "c") + field(5, 2**40 + 2**32 - 3))
    decoded = decode_protobuf(body("v1", "Pod", field(3, status)))

    assert decoded["status"]["containerStatuses"][0]["restartCount"] == -3


# ---------------------------------------------------------------------------------------------------------------- kinds


@pytest.mark.parametrize(
    ("version", "kind", "number", "name"),
    [
        pytest.param("v1", "Event", 3, "reason", id="core event"),
        pytest.param("events.k8s.io/v1", "Event", 7, "reason", id="event of its own group"),
        pytest.param("events.k8s.io/v9", "Event", 7, "reason", id="unknown version of a group"),
        pytest.param("v1", "DeleteOptions", 4, "propagationPolicy", id="options of core"),
        pytest.param("policy/v1", "DeleteOptions", 4, "propagationPolicy", id="options of a group"),
        pytest.param("example.com/v1", "DeleteOptions", 4, "propagationPolicy", id="options of an unknown group"),
        pytest.param("meta.k8s.io/v1", "DeleteOptions", 4, "propagationPolicy", id="options of their own group"),
    ],
)
def test_the_api_version_decides_between_kinds_of_one_name(version, kind, number, name):
    decoded = decode_protobuf(body(version, kind, field(number, "text")))

    assert {"apiVersion": version, "kind": kind, name: "text"} == decoded


# --------------------------------------------------------------------------------------------------------------- errors

POD = body("v1", "Pod", field(1, field(1, "p")))


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        pytest.param(b"", "it does not begin with 6b 38 73 00", id="empty"),
        pytest.param(b'{"kind":"Pod"}', "send application/vnd.kubernetes.protobuf or application/json", id="JSON"),
        pytest.param(b"k8s\x00", "kind '' of '' is not known", id="no envelope"),
        pytest.param(body("v1", "Widget"), "kind 'Widget' of 'v1' is not known; send application/json", id="kind"),
        pytest.param(body("v1", "ExtraValue"), "kind 'ExtraValue' of 'v1' is not known", id="a kind that is a list"),
        pytest.param(POD + field(3, "gzip"), "its content is 'gzip'", id="content encoding"),
        pytest.param(POD + field(4, "application/json"), "its content is 'application/json'", id="content type"),
        pytest.param(POD[:-5], "only", id="cut off"),
        pytest.param(body("v1", "Pod", b"\x0a"), "a number is cut off", id="no length"),
        pytest.param(body("v1", "Pod", b"\x0a\x05ab"), "a field has 5 bytes and only 2 follow", id="short"),
        pytest.param(body("v1", "Pod", b"\x80" * 11), "a number is longer than 64 bits", id="long number"),
        pytest.param(body("v1", "Pod", b"\x02\x00"), "0 is not a field number", id="field 0"),
        pytest.param(body("v1", "Pod", b"\x0d1234"), "field 1 of Pod has wire type 5", id="fixed number"),
        pytest.param(body("v1", "Pod", field(1, 5)), "field 1 of Pod has wire type 0", id="number for a message"),
        pytest.param(
            body("v1", "Pod", field(1, field(7, "x"))), "field 7 of ObjectMeta has wire type 2", id="text for a number"
        ),
        pytest.param(body("v1", "Pod", b"\xff\x3e"), "wire type 7 has no value here", id="wire type"),
        pytest.param(body("v1", "Pod", b"\xfc\x3e"), "wire type 4 has no value here", id="end of no group"),
        pytest.param(body("v1", "Pod", b"\xfb\x3e"), "a number is cut off", id="open group"),
        pytest.param(body("v1", "Pod", b"\xfb\x3e" * 65), "groups deep", id="deep groups"),
        pytest.param(body("v1", "Pod", b"\xf9\x3e123"), "a field has 8 bytes and only 3 follow", id="short number"),
        pytest.param(body("v1", "Pod", field(1, field(1, b"\xff"))), "a text is not valid UTF-8", id="text"),
        pytest.param(
            body("v1", "Pod", field(1, field(8, field(1, 2**60)))), "seconds since 1970 are no date", id="time"
        ),
        pytest.param(
            body("apps/v1", "ControllerRevision", field(2, field(1, "{"))),
            "an embedded object is not JSON",
            id="JSON in it",
        ),
        pytest.param(bytes(MAX_BYTES + 1), f"at most {MAX_BYTES} are allowed", id="size"),
    ],
)
def test_an_unreadable_body_is_one_line_with_the_place(given, problem):
    with pytest.raises(ProtobufError) as caught:
        decode_protobuf(given)

    assert problem in str(caught.value)
    assert f"(byte {caught.value.offset})" in str(caught.value)
    assert 0 <= caught.value.offset <= len(given)
    assert str(caught.value).isprintable()
    assert isinstance(caught.value, WireError)
    assert isinstance(caught.value, ValueError)


def test_the_place_is_that_of_the_fault():
    good, bad = field(1, "good"), field(3, b"ab\xff")
    given = body("v1", "Pod", field(1, good + bad))

    with pytest.raises(ProtobufError) as caught:
        decode_protobuf(given)

    assert given.index(b"\xff") == caught.value.offset


def test_an_error_can_be_copied_and_pickled():
    """As errors of worker processes are."""
    error = pickle.loads(pickle.dumps(ProtobufError("a fault", 7)))

    assert ("cannot read protobuf body: a fault (byte 7)", 7) == (str(error), error.offset)


def test_messages_deeper_than_the_limit_are_rejected(monkeypatch):
    """No message of Kubernetes is recursive, so the limit is lowered."""
    monkeypatch.setattr(protobuf_decoder, "MAX_DEPTH", 2)

    assert decode_protobuf(body("v1", "Pod", field(1, b"")))["metadata"] == {}
    with pytest.raises(ProtobufError, match="OwnerReference is more than 2 messages deep"):
        decode_protobuf(body("v1", "Pod", field(1, field(13, b""))))
