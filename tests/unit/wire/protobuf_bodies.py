"""
Protobuf bodies for tests: pieces to build them from, and bodies that Kubernetes' own Go code encoded.

Each line of tests/data/protobuf/go_bodies.jsonl has a name, a body in base64, and the same object as Go's JSON. "filled"
objects have a value in every field, "zero" ones a pointer to zero wherever the field is a pointer.
"""

import base64
import json
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

GO_BODIES: Final = Path(__file__).resolve().parents[2] / "data" / "protobuf" / "go_bodies.jsonl"


class GoBody(NamedTuple):
    """One encoded object and its JSON."""

    name: str
    body: bytes
    object: dict[str, Any]


@cache
def go_bodies() -> tuple[GoBody, ...]:
    """Read all bodies."""
    lines = map(json.loads, GO_BODIES.read_text(encoding="utf-8").splitlines())
    return tuple(GoBody(one["name"], base64.b64decode(one["body"]), one["object"]) for one in lines)


def varint(value: int) -> bytes:
    """Encode a number; a negative one as 64 bits."""
    value %= 2**64
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def field(number: int, value: int | str | bytes) -> bytes:
    """Encode a field: a number as a varint, anything else with its length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def body(version: str, kind: str, *fields: bytes) -> bytes:
    """Encode a request body."""
    type_meta = field(1, version) + field(2, kind)
    return b"k8s\x00" + field(1, type_meta) + field(2, b"".join(fields)) + field(3, "") + field(4, "")


def without_nulls(value: Any) -> Any:
    """Return JSON without fields that are null; Go writes times that are not set and nil lists so."""
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value
