"""
Reader of protobuf's wire format: keys, varints, lengths, and fields to skip.

    key     varint: field number << 3 | wire type
    value   0: varint    1: eight bytes    2: length and bytes    3, 4: begin and end of a group    5: four bytes

The bytes are untrusted: every fault is a `ProtobufError` with its position. Positions are offsets into the whole body.
"""

from typing import Final

from lamina.wire.errors import WireError

VARINT: Final = 0
EIGHT_BYTES: Final = 1
BYTES: Final = 2
GROUP: Final = 3
END_GROUP: Final = 4
FOUR_BYTES: Final = 5

MAX_DEPTH: Final = 64
"""Most messages inside one another."""

_MORE: Final = 0x80
_LONGEST_VARINT: Final = 10
_WORD: Final = 1 << 64
_HALF: Final = 1 << 63
_INT32: Final = 1 << 32
_INT32_HALF: Final = 1 << 31
_LARGEST_NUMBER: Final = (1 << 29) - 1
_FIXED: Final = {EIGHT_BYTES: 8, FOUR_BYTES: 4}


class ProtobufError(WireError, ValueError):
    """A protobuf body that cannot be decoded; *offset* is the position of the fault."""

    def __init__(self, problem: str, offset: int) -> None:
        super().__init__("protobuf body", f"{problem} (byte {offset})")
        self.offset = offset

    def __reduce__(self) -> tuple[type["ProtobufError"], tuple[str, int]]:
        return type(self), (self.problem.removesuffix(f" (byte {self.offset})"), self.offset)


def read_varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return an unsigned 64-bit number and the position after it."""
    if at < end and data[at] < _MORE:  # the usual case
        return data[at], at + 1
    value = shift = 0
    for place in range(at, min(end, at + _LONGEST_VARINT)):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < _MORE:
            return value % _WORD, place + 1
        shift += 7
    if end - at < _LONGEST_VARINT:
        raise ProtobufError("a number is cut off", at)
    raise ProtobufError("a number is longer than 64 bits", at)


def read_key(data: bytes, at: int, end: int) -> tuple[int, int, int]:
    """Return field number, wire type, and the position after the key."""
    key, after = read_varint(data, at, end)
    number = key >> 3
    if not 0 < number <= _LARGEST_NUMBER:
        raise ProtobufError(f"{number} is not a field number", at)
    return number, key & 7, after


def read_length(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return begin and end of the bytes whose length is at *at*."""
    length, begin = read_varint(data, at, end)
    if length > end - begin:
        raise ProtobufError(f"a field has {length} bytes and only {end - begin} follow", at)
    return begin, begin + length


def read_text(data: bytes, begin: int, end: int) -> str:
    """Return the text between two positions."""
    try:
        return data[begin:end].decode()
    except UnicodeDecodeError as error:
        raise ProtobufError("a text is not valid UTF-8", begin + error.start) from None


def signed(value: int) -> int:
    """Return a varint as a signed 64-bit number."""
    return value - _WORD if value >= _HALF else value


def signed_32(value: int) -> int:
    """Return a varint as a signed 32-bit number; as in Kubernetes, higher bits are ignored."""
    value %= _INT32
    return value - _INT32 if value >= _INT32_HALF else value


def skip_value(data: bytes, kind: int, at: int, end: int) -> int:
    """Return the position after a value of this wire type."""
    if kind == GROUP:
        return _skip_group(data, at, end)
    return _skip_simple(data, kind, at, end)


def _skip_simple(data: bytes, kind: int, at: int, end: int) -> int:
    if kind == VARINT:
        return read_varint(data, at, end)[1]
    if kind == BYTES:
        return read_length(data, at, end)[1]
    width = _FIXED.get(kind)
    if width is None:
        raise ProtobufError(f"wire type {kind} has no value here", at)
    if width > end - at:
        raise ProtobufError(f"a field has {width} bytes and only {end - at} follow", at)
    return at + width


def _skip_group(data: bytes, at: int, end: int) -> int:
    depth = 1
    while depth:
        number, kind, at = read_key(data, at, end)
        if kind == GROUP:
            depth += 1
            if depth > MAX_DEPTH:
                raise ProtobufError(f"field {number} is more than {MAX_DEPTH} groups deep", at)
        elif kind == END_GROUP:
            depth -= 1
        else:
            at = _skip_simple(data, kind, at, end)
    return at
