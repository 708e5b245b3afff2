"""Messages that are no objects in JSON: quantities, numbers or text, times, embedded JSON."""

import pytest

from lamina.wire.kube_protobuf.json_forms import FORMS
from lamina.wire.kube_protobuf.protobuf_reader import ProtobufError
from tests.unit.wire.protobuf_bodies import field

SECOND = 1_767_323_045  # 2026-01-02T03:04:05Z


def form(name, data):
    """Decode with other bytes around it, which must not matter."""
    return FORMS[name](b"\xff\xff" + data + b"\xff\xff", 2, 2 + len(data))


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        pytest.param("Quantity", field(1, "100m"), "100m", id="quantity"),
        pytest.param("Quantity", b"", "0", id="empty quantity"),
        pytest.param("IntOrString", field(1, 0) + field(2, 80) + field(3, ""), 80, id="number"),
        pytest.param("IntOrString", field(1, 0) + field(2, -1), -1, id="negative number"),
        pytest.param("IntOrString", field(1, 1) + field(2, 0) + field(3, "25%"), "25%", id="text"),
        pytest.param("IntOrString", b"", 0, id="neither"),
        pytest.param("Time", field(1, SECOND) + field(2, 0), "2026-01-02T03:04:05Z", id="time"),
        pytest.param("Time", field(1, SECOND) + field(2, 999_999_999), "2026-01-02T03:04:05Z", id="fraction"),
        pytest.param("Time", field(1, -1), "1969-12-31T23:59:59Z", id="before 1970"),
        pytest.param("Time", field(1, 0), "1970-01-01T00:00:00Z", id="1970"),
        pytest.param("Time", b"", None, id="no time"),
        pytest.param("Time", field(1, -62_135_596_800), None, id="Go's zero time"),
        pytest.param("MicroTime", field(1, SECOND) + field(2, 6000), "2026-01-02T03:04:05.000006Z", id="microseconds"),
        pytest.param("MicroTime", field(1, SECOND), "2026-01-02T03:04:05.000000Z", id="always six digits"),
        pytest.param("MicroTime", b"", None, id="no microseconds"),
        pytest.param("Json", field(1, '{"a":[1,null]}'), {"a": [1, None]}, id="JSON"),
        pytest.param("Json", b"", None, id="no JSON"),
    ],
)
def test_a_form_is_that_of_go(name, data, expected):
    assert expected == form(name, data)


def test_unknown_fields_of_a_form_are_skipped():
    assert form("Time", field(99, "unknown") + field(1, SECOND) + field(98, 1)) == "2026-01-02T03:04:05Z"
    assert form("Quantity", field(98, 1) + field(1, "2Gi") + field(99, "unknown")) == "2Gi"


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        pytest.param("Time", field(1, 2**62), "are no date", id="far future"),
        pytest.param("MicroTime", field(1, 253_402_300_799) + field(2, 2**30), "too many", id="after the year 9999"),
        pytest.param("Json", field(1, "[" * 5_000), "not JSON", id="deep JSON"),
        pytest.param("Json", field(1, b"\xff"), "not JSON", id="no text"),
        pytest.param("Quantity", field(1, b"\xff"), "not valid UTF-8", id="quantity"),
    ],
)
def test_a_form_that_cannot_be_read_is_an_error_with_its_place(name, data, problem):
    with pytest.raises(ProtobufError, match=problem):
        form(name, data)
