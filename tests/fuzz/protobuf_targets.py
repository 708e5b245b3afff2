"""What clients of a simulated API server can send as protobuf."""

import json
from typing import Final

from lamina.wire.kube_protobuf.protobuf_decoder import decode_protobuf
from tests.unit.wire.protobuf_bodies import body, field, go_bodies, varint


def protobuf_body(data: bytes) -> None:
    """Read a body; its object can be written as JSON."""
    decoded = decode_protobuf(data)
    assert isinstance(decoded["kind"], str)
    assert decoded == json.loads(json.dumps(decoded))


BODIES: Final = (
    *(one.body for one in go_bodies()),
    body("v1", "Pod"),
    body("v1", "Pod", field(1, field(11, b"") * 1_000)),
    body("v1", "Pod", field(2, field(2, field(7, field(1, "e")) * 1_000))),
    body("v1", "Pod", b"\x0b" * 60 + b"\x0c" * 60),
    body("v1", "Pod", varint(2**64 - 1)),
    body("apps/v1", "ControllerRevision", field(2, field(1, b"[" * 50_000))),
    b"k8s\x00",
    b"",
)
