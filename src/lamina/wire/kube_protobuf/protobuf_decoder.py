r"""
Decoder of protobuf request bodies of Kubernetes clients to the JSON form of the object.

    k8s\0    Unknown {1: TypeMeta {1: apiVersion, 2: kind}, 2: message, 3: content encoding, 4: content type}

The JSON form is what a Kubernetes API server would make of the body. Zero values that Go omits are missing, and an
explicit 0 of an optional field is kept (``gracePeriodSeconds: 0``). Times that are not set are missing instead of null.

The bytes are untrusted: every fault is a `ProtobufError` and nothing else.
"""

from base64 import b64encode
from typing import Any, Final

from lamina.wire.kube_protobuf.json_forms import pieces_in
from lamina.wire.kube_protobuf.message_tables import (
    INLINE,
    LIST,
    MAP,
    NUMBERS,
    ONE,
    ProtobufField,
    ProtobufMessage,
    find_message,
)
from lamina.wire.kube_protobuf.protobuf_reader import (
    BYTES,
    MAX_DEPTH,
    VARINT,
    ProtobufError,
    read_key,
    read_length,
    read_text,
    read_varint,
    signed,
    signed_32,
    skip_value,
)

MAGIC: Final = b"k8s\x00"
CONTENT_TYPE: Final = "application/vnd.kubernetes.protobuf"
MAX_BYTES: Final = 3 * 1024 * 1024
"""Largest body; the API server has the same limit for requests."""

_ZEROS: Final[dict[str, Any]] = {"s": "", "b": False, "i": 0, "l": 0, "y": ""}
_TYPE_META, _RAW, _ENCODING, _CONTENT = 1, 2, 3, 4


def decode_protobuf(body: bytes | bytearray | memoryview) -> dict[str, Any]:
    """Return the object in JSON form, with ``apiVersion`` and ``kind``. Raises ProtobufError."""
    if len(body) > MAX_BYTES:
        raise ProtobufError(f"it has {len(body)} bytes; at most {MAX_BYTES} are allowed", 0)
    data = bytes(body)
    if not data.startswith(MAGIC):
        raise ProtobufError(f"it does not begin with {MAGIC.hex(' ')}; send {CONTENT_TYPE} or application/json", 0)
    texts = {_ENCODING: "", _CONTENT: ""}
    version, kind, raw = "", "", (len(data), len(data))
    for number, begin, end in pieces_in(data, len(MAGIC), len(data)):
        if number == _TYPE_META:
            version, kind = _type_meta(data, begin, end)
        elif number == _RAW:
            raw = begin, end
        elif number in texts:
            texts[number] = read_text(data, begin, end)
    if texts[_ENCODING] or texts[_CONTENT] not in ("", CONTENT_TYPE):
        said = texts[_ENCODING] or texts[_CONTENT]
        raise ProtobufError(f"its content is {said!r:.80}; send plain protobuf or application/json", len(MAGIC))
    message = find_message(version, kind)
    if message is None or message.is_list:
        raise ProtobufError(f"kind {kind!r:.80} of {version!r:.80} is not known; send application/json", len(MAGIC))
    found: dict[str, Any] = {"apiVersion": version, "kind": kind}
    _read_message(data, raw, message, found, 1)
    return found


def _type_meta(data: bytes, at: int, end: int) -> tuple[str, str]:
    found = {1: "", 2: ""}
    for number, begin, after in pieces_in(data, at, end):
        if number in found:
            found[number] = read_text(data, begin, after)
    return found[1], found[2]


def _read_message(
    data: bytes, place: tuple[int, int], message: ProtobufMessage, into: dict[str, Any], depth: int
) -> None:
    """Read a message between two positions *into* an object; fields that it already has are merged or replaced."""
    at, end = place
    if depth > MAX_DEPTH:
        raise ProtobufError(f"{message.name} is more than {MAX_DEPTH} messages deep", at)
    expected = message.by_key
    while at < end:
        key, after = read_varint(data, at, end)
        field = expected.get(key)
        if field is None:
            at = _read_unexpected(data, (at, end), message, into)
        elif field.scalar in NUMBERS and field.shape != MAP:
            value, at = read_varint(data, after, end)
            _put(into, field, _number(field.scalar, value))
        else:
            begin, at = read_length(data, after, end)
            if field.scalar == "s" and field.shape == ONE:
                text = read_text(data, begin, at)
                if text or not field.drops_zero:
                    into[field.name] = text
                else:
                    into.pop(field.name, None)
            else:
                _read_bytes(data, (begin, at), field, into, depth)


def _read_unexpected(data: bytes, place: tuple[int, int], message: ProtobufMessage, into: dict[str, Any]) -> int:
    """Skip an unknown field, or read numbers that are packed; return the position after it."""
    at, end = place
    number, kind, after = read_key(data, at, end)
    field = message.fields.get(number)
    if field is None:
        return skip_value(data, kind, after, end)
    if kind != BYTES or field.shape != LIST:
        raise ProtobufError(f"field {number} of {message.name} has wire type {kind}", at)
    begin, end = read_length(data, after, end)
    while begin < end:
        value, begin = read_varint(data, begin, end)
        _put(into, field, _number(field.scalar, value))
    return end


def _read_bytes(data: bytes, place: tuple[int, int], field: ProtobufField, into: dict[str, Any], depth: int) -> None:
    """Read a value that has a length: a list's text, a message, or an entry of a map."""
    if field.shape == MAP:
        key, value = _entry(data, place, field, depth)
        into.setdefault(field.name, {})[key] = value
    elif field.message is not None and field.shape == INLINE:
        _read_message(data, place, field.message, into, depth + 1)
    elif field.message is not None and field.shape == ONE and not field.message.is_list:
        _read_message(data, place, field.message, into.setdefault(field.name, {}), depth + 1)
    else:
        _put(into, field, _value(data, place, field, depth))


def _value(data: bytes, place: tuple[int, int], field: ProtobufField, depth: int) -> Any:
    """Return a text, or a message that is not merged with an earlier one."""
    begin, end = place
    if field.scalar == "s":
        return read_text(data, begin, end)
    if field.scalar == "y":
        return b64encode(data[begin:end]).decode()
    if field.form is not None:
        return field.form(data, begin, end)
    if field.message is None:
        raise ProtobufError(f"{field.name} has no value of this wire type", begin)
    found: dict[str, Any] = {}
    _read_message(data, place, field.message, found, depth + 1)
    return found.get("", []) if field.message.is_list else found


def _entry(data: bytes, place: tuple[int, int], field: ProtobufField, depth: int) -> tuple[str, Any]:
    """Return key and value of an entry of a map: fields 1 and 2."""
    at, end = place
    key = ""
    value: Any = None
    while at < end:
        number, kind, after = read_key(data, at, end)
        if kind == BYTES and number in (1, 2):
            begin, at = read_length(data, after, end)
            if number == 1:
                key = read_text(data, begin, at)
            elif field.scalar in NUMBERS:
                raise ProtobufError(f"a value of {field.name} is not a number", begin)
            else:
                value = _value(data, (begin, at), field, depth)
        elif kind == VARINT and number == 2 and field.scalar in NUMBERS:
            found, at = read_varint(data, after, end)
            value = _number(field.scalar, found)
        else:
            at = skip_value(data, kind, after, end)
    if value is None and field.form is None:
        value = _ZEROS.get(field.scalar, [] if field.message is not None and field.message.is_list else {})
    return key, value


def _number(scalar: str, value: int) -> bool | int:
    if scalar == "b":
        return value != 0
    return signed_32(value) if scalar == "i" else signed(value)


def _put(into: dict[str, Any], field: ProtobufField, value: Any) -> None:
    """Add a value to a list, or set it; a value that JSON omits removes an earlier one."""
    if field.shape == LIST:
        into.setdefault(field.name, []).append(value)
    elif value is None or (field.drops_zero and not value):
        into.pop(field.name, None)
    else:
        into[field.name] = value
