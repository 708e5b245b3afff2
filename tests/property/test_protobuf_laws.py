"""
Laws of protobuf bodies: an object that is encoded field by field is decoded as its JSON, and any other bytes are an
object or a `ProtobufError`.

The encoder is part of these tests: the product reads protobuf and never writes it.
"""

import base64
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lamina.wire.kube_protobuf import json_forms
from lamina.wire.kube_protobuf.message_tables import INLINE, LIST, MAP, _messages
from lamina.wire.kube_protobuf.protobuf_decoder import MAGIC, decode_protobuf
from lamina.wire.kube_protobuf.protobuf_reader import ProtobufError
from tests.unit.wire.protobuf_bodies import body, field, go_bodies, varint

KINDS = sorted(
    (version, name)
    for version, messages in _messages().items()
    for name, message in messages.items()
    if any(one.name == "metadata" for one in message.fields.values()) or name == "DeleteOptions"
)
kinds = st.sampled_from(KINDS)
texts = st.text(st.characters(codec="utf-8"), max_size=5)

# ------------------------------------------------------------------------------------------------ encoded and expected

FORMED = {
    json_forms._quantity: [(field(1, "5Mi"), "5Mi")],
    json_forms._int_or_string: [(field(1, 0) + field(2, -7), -7), (field(1, 1) + field(3, "5%"), "5%")],
    json_forms._time: [(field(1, 5) + field(2, 9), "1970-01-01T00:00:05Z")],
    json_forms._micro_time: [(field(1, 5) + field(2, 9_000), "1970-01-01T00:00:05.000009Z")],
    json_forms._json: [(field(1, '{"a":1}'), {"a": 1})],
}
SCALARS = {
    "s": texts.map(lambda text: (text, text)),
    "b": st.booleans().map(lambda value: (int(value), value)),
    "i": st.integers(-(2**31), 2**31 - 1).map(lambda value: (value, value)),
    "l": st.integers(-(2**63), 2**63 - 1).map(lambda value: (value, value)),
    "y": st.binary(max_size=5).map(lambda value: (value, base64.b64encode(value).decode())),
}


@st.composite
def messages(draw, message, depth=0):
    """Draw some fields of a message, as a list of encoded fields and as JSON."""
    fields: list[bytes] = []
    expected: dict[str, Any] = {}
    drawn = draw(st.lists(st.sampled_from(sorted(message.fields)), unique=True, max_size=4)) if message.fields else []
    for number in drawn:
        found = message.fields[number]
        encoded, value = draw(values(found, depth))
        if found.shape == INLINE:
            fields.append(field(number, encoded))
            expected |= value
        elif found.shape == LIST:
            another, second = draw(values(found, depth))
            fields.append(field(number, encoded) + field(number, another))
            expected[found.name] = [value, second]
        elif found.shape == MAP:
            key = draw(texts)
            fields.append(field(number, field(1, key) + field(2, encoded)))
            expected[found.name] = {key: value}
        else:
            fields.append(field(number, encoded))
            if value or not found.drops_zero:
                expected[found.name] = value
    if message.is_list:
        return b"".join(fields), expected.get("", [])
    return b"".join(draw(st.permutations(fields))), expected


@st.composite
def values(draw, found, depth):
    """Draw the value of a field, encoded and as JSON."""
    if found.scalar:
        return draw(SCALARS[found.scalar])
    if found.form is not None:
        return draw(st.sampled_from(FORMED[found.form]))
    if depth > 2:
        return b"", [] if found.message.is_list else {}
    return draw(messages(found.message, depth + 1))


@given(st.data(), kinds)
def test_an_object_that_is_encoded_is_decoded_as_its_json(data, kind):
    version, name = kind
    encoded, expected = data.draw(messages(_messages()[version][name]))

    assert {"apiVersion": version, "kind": name, **expected} == decode_protobuf(body(version, name, encoded))


@given(st.sampled_from(go_bodies()), st.integers(20_000, 2**29 - 1), st.binary(max_size=5))
def test_fields_of_newer_versions_change_nothing(given_body, number, value):
    """They have numbers that no table has."""
    envelope = given_body.body + field(number, value) + field(number, 5)

    assert decode_protobuf(given_body.body) == decode_protobuf(envelope)


# ---------------------------------------------------------------------------------------------------- any other bytes

# Bytes that look like fields more often than random ones.
piece = st.one_of(
    st.binary(max_size=6),
    st.builds(field, st.integers(1, 20), st.integers(-(2**63), 2**64 - 1) | st.binary(max_size=6)),
    st.integers(0, 2**70).map(varint),
    st.sampled_from([b"\x0b", b"\x0c", b"\x80", b"\xff" * 10, b"\x0a\x80\x80\x80\x80\x08"]),
)
nested = st.recursive(
    st.lists(piece, max_size=4).map(b"".join),
    lambda inner: st.lists(st.builds(field, st.integers(1, 40), inner), max_size=3).map(b"".join),
    max_leaves=8,
)


@st.composite
def damaged(draw):
    """A good body, with a few bytes gone, changed or put in."""
    data = bytearray(draw(st.sampled_from(go_bodies())).body)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(data)))
        data[place : place + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
    return bytes(data)


strange = st.one_of(
    st.binary(),
    nested.map(lambda data: MAGIC + data),
    st.builds(lambda kind, data: body(*kind, data), kinds, nested),
    damaged(),
)


@given(strange)
@example(body("v1", "Pod", field(1, field(12, field(1, "k") + field(2, b"\xed\xa0\x80")))))
@example(body("apps/v1", "ControllerRevision", field(2, field(1, b"[" * 5_000 + b"]" * 5_000))))
@example(body("apps/v1", "ControllerRevision", field(2, field(1, b"9" * 10_000))))
@example(body("apps/v1", "ControllerRevision", field(2, field(1, b'"\\ud800"'))))
def test_any_bytes_are_an_object_or_an_error_with_its_place(data):
    """Never another exception; and an object can always be written as JSON."""
    decoded, error = attempt(data)

    if error is None:
        assert decoded == json.loads(json.dumps(decoded))
    else:
        assert 0 <= error.offset <= len(data)
        assert str(error).startswith("cannot read protobuf body: ")
        assert str(error).isprintable()


def attempt(data: bytes) -> tuple[dict[str, Any] | None, ProtobufError | None]:
    """The object, or the error; any other exception is a failure."""
    try:
        return decode_protobuf(data), None
    except ProtobufError as error:
        return None, error


@given(st.sampled_from(go_bodies()), st.data())
def test_a_body_that_is_cut_off_inside_its_object_is_an_error(given_body, data):
    """Within the envelope's second field, which has a length."""
    whole = given_body.body.removesuffix(field(3, "") + field(4, ""))
    cut = data.draw(st.integers(0, len(whole) - 1))
    begins = len(MAGIC) + 2 + len(field(1, given_body.object["apiVersion"]) + field(2, given_body.object["kind"]))

    if cut != begins:  # without its second field, the object is empty
        with pytest.raises(ProtobufError):
            decode_protobuf(whole[:cut])
