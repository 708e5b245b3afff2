"""Which pod it is and where it is, read from objects that may not be readable otherwise."""

import json

import pytest

from lamina.wire.errors import WireError
from lamina.wire.kube.pod_location import PodLocation, decode_pod_location


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param({"metadata": {"uid": "u"}, "spec": {"nodeName": "n1"}}, PodLocation("u", "n1"), id="bound"),
        pytest.param({"metadata": {"uid": "u"}, "spec": {}}, PodLocation("u", ""), id="not bound"),
        pytest.param({"metadata": {"uid": "u"}, "spec": {"nodeName": None}}, PodLocation("u", ""), id="null"),
        pytest.param(
            {"metadata": {"uid": "u"}, "spec": {"nodeName": "n1", "containers": 5}},
            PodLocation("u", "n1"),
            id="the rest cannot be read",
        ),
    ],
)
def test_two_fields_are_enough(said, expected):
    assert expected == decode_pod_location(json.dumps(said).encode())


@pytest.mark.parametrize(
    "data", [b"", b"{", b"{}", b'{"metadata":{"uid":"u"}}', b'{"metadata":{},"spec":{}}', b'{"metadata":1,"spec":{}}']
)
def test_what_does_not_tell_both_is_an_error_and_no_answer(data):
    with pytest.raises(WireError):
        decode_pod_location(data)
