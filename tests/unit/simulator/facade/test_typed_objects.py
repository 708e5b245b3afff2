"""Objects in the form of their type: what is dropped, what is refused."""

from typing import Any

import pytest

from lamina.simulator.facade.api_errors import StatusError
from lamina.simulator.facade.typed_objects import typed_object, unknown_fields


def read(kind: str, version: str = "v1", **found: Any) -> dict[str, Any]:
    return typed_object(found, version, kind)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"nope": 1, "nodeName": "n"}, {"nodeName": "n"}, id="unknown field"),
        pytest.param({"nodeName": None}, {}, id="null"),
        pytest.param({"nodeName": "", "hostNetwork": False}, {}, id="zero"),
        pytest.param(
            {"terminationGracePeriodSeconds": 0}, {"terminationGracePeriodSeconds": 0}, id="zero of a pointer"
        ),
        pytest.param({"tolerations": [], "nodeSelector": {}}, {}, id="empty list and map"),
        pytest.param({"securityContext": {}}, {"securityContext": {}}, id="empty object"),
        pytest.param({"overhead": {"cpu": 0.5}}, {"overhead": {"cpu": "500m"}}, id="quantity"),
        pytest.param({"nodeSelector": {"a": ""}}, {"nodeSelector": {"a": ""}}, id="empty text in a map"),
    ],
)
def test_an_object_has_the_fields_of_its_type(spec, expected):
    assert expected == read("Pod", spec=spec)["spec"]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        pytest.param(
            {"nodeName": 3}, "cannot unmarshal number into Go struct field spec.nodeName of type string", id="text"
        ),
        pytest.param({"priority": "high"}, "cannot unmarshal string into Go struct field spec.priority", id="number"),
        pytest.param({"priority": True}, "cannot unmarshal bool into Go struct field spec.priority", id="bool"),
        pytest.param({"priority": 2**31}, "cannot unmarshal number 2147483648", id="too large"),
        pytest.param({"hostNetwork": "yes"}, "of type bool", id="no bool"),
        pytest.param({"containers": {}}, "cannot unmarshal object into Go struct field spec.containers", id="list"),
        pytest.param({"containers": ["x"]}, r"spec.containers\[0\]", id="element"),
        pytest.param({"nodeSelector": []}, "cannot unmarshal array into Go struct field spec.nodeSelector", id="map"),
        pytest.param({"overhead": {"cpu": "much"}}, "quantities must match", id="quantity"),
        pytest.param({"activeDeadlineSeconds": 1.5}, "of type int64", id="fraction"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_with_its_path(spec, words):
    with pytest.raises(StatusError, match=words) as refused:
        read("Pod", spec=spec)

    assert (400, "BadRequest") == (refused.value.code, refused.value.reason)


def test_lists_of_lists_and_values_of_both_types_are_read():
    port = {"port": 80, "targetPort": "http"}
    assert [port] == read("Service", spec={"ports": [port]})["spec"]["ports"]
    assert 8080 == read("Service", spec={"ports": [{"port": 80, "targetPort": 8080}]})["spec"]["ports"][0]["targetPort"]


def test_unknown_fields_can_be_refused():
    with pytest.raises(StatusError, match=r'strict decoding error: unknown field "spec.a", unknown field "b"'):
        typed_object({"spec": {"a": 1}, "b": 2}, "v1", "Pod", strict=True)


def test_unknown_fields_are_listed_with_their_paths():
    found = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "a", "x": 1}]}, "y": {}}

    assert ["spec.containers[0].x", "y"] == unknown_fields(found, "v1", "Pod")


def test_kinds_without_a_type_stay_as_they_are():
    found = {"spec": {"anything": None}}

    assert found is typed_object(found, "example.com/v1", "Thing")
    assert [] == unknown_fields(found, "example.com/v1", "Thing")


def test_reading_twice_changes_nothing_more():
    spec = {"containers": [{"name": "a", "image": "b", "resources": {"requests": {"cpu": 1}}}], "nope": 1}
    once = read("Pod", metadata={"name": "p"}, spec=spec)

    assert once == typed_object(once, "v1", "Pod")
