"""
Pulls and removes images over CRI, as a kubelet does.

The few messages are encoded by hand: the product's generated code is under test and must not confirm its own mistakes.
"""

from pathlib import Path
from typing import Final

import grpc

from testbed.errors import TestbedError

SERVICE: Final = "/runtime.v1.ImageService"
PULL_WITHIN: Final = 120.0
ANSWER_WITHIN: Final = 10.0
OPTIONS: Final = (("grpc.default_authority", "localhost"),)
LONGEST_BYTE: Final = 0x80
FIRST: Final = b"\x0a"
"""Tag of field number 1 with length-delimited content."""


def pull(socket: Path, reference: str, within: float = PULL_WITHIN) -> str:
    """Pull an image and wait for it; return the runtime's reference to it."""
    return told(call(socket, "PullImage", asking_for(reference), within))


def remove(socket: Path, reference: str) -> None:
    """Remove an image, with all its names."""
    call(socket, "RemoveImage", asking_for(reference), ANSWER_WITHIN)


def holds(socket: Path, reference: str) -> bool:
    """Return whether a runtime has an image, so that a container can start from it."""
    # The first field of the response is the image; it is absent if there is none.
    return call(socket, "ImageStatus", asking_for(reference), ANSWER_WITHIN)[:1] == FIRST


def answers(socket: Path) -> bool:
    """Return whether a runtime responds on *socket*."""
    if not socket.exists():
        return False
    try:
        call(socket, "ListImages", b"", ANSWER_WITHIN)
    except TestbedError:
        return False
    return True


def asking_for(reference: str) -> bytes:
    """Return a request whose first field is an ImageSpec with the image's name: image = 1, image = 1."""
    return field(field(reference.encode()))


def field(value: bytes) -> bytes:
    """Return field number 1 with these bytes."""
    return FIRST + length(len(value)) + value


def length(number: int) -> bytes:
    """Return a number as a protobuf varint: seven bits to a byte, the lowest first."""
    low, rest = number % LONGEST_BYTE, number // LONGEST_BYTE
    return bytes([low | LONGEST_BYTE]) + length(rest) if rest else bytes([low])


def told(answer: bytes) -> str:
    """Return the text in field number 1 of a response that has no other field, or an empty string."""
    size = position = 0
    for position, byte in enumerate(answer[1:], 1):
        size |= (byte % LONGEST_BYTE) << 7 * (position - 1)
        if byte < LONGEST_BYTE:
            break
    return answer[position + 1 : position + 1 + size].decode()


def call(socket: Path, method: str, request: bytes, within: float) -> bytes:
    """Call a method of the image service and return the encoded response."""
    with grpc.insecure_channel(f"unix:{socket}", options=OPTIONS) as channel:
        ask = channel.unary_unary(f"{SERVICE}/{method}", request_serializer=bytes, response_deserializer=bytes)
        try:
            return ask(request, timeout=within)
        except grpc.RpcError as error:
            raise TestbedError(f"{method} at {socket}: {error.code().name}: {error.details()}") from error
