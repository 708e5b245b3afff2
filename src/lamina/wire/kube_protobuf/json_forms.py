"""
JSON forms of messages that are no objects in JSON: quantities, numbers or text, times, embedded JSON.

Each function gets the body and the message's begin and end in it, and returns the JSON value. None means that the field
is missing in JSON. As in all messages, unknown fields are skipped and the last value of a field counts.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from lamina.wire.kube_protobuf.protobuf_reader import (
    BYTES,
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

JsonForm = Callable[[bytes, int, int], Any]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_YEAR_1: Final = -62_135_596_800
"""Seconds from 1970 to Go's zero time, which means that there is no time."""
_ZONE: Final = "+00:00"


def numbers_in(data: bytes, at: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield field number and value of every varint of a message; other fields are skipped."""
    while at < end:
        number, kind, at = read_key(data, at, end)
        if kind == VARINT:
            value, at = read_varint(data, at, end)
            yield number, value
        else:
            at = skip_value(data, kind, at, end)


def pieces_in(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield field number, begin and end of every text or message of a message; other fields are skipped."""
    while at < end:
        number, kind, at = read_key(data, at, end)
        if kind == BYTES:
            begin, at = read_length(data, at, end)
            yield number, begin, at
        else:
            at = skip_value(data, kind, at, end)


def _quantity(data: bytes, at: int, end: int) -> str:
    text = ""
    for number, begin, after in pieces_in(data, at, end):
        if number == 1:
            text = read_text(data, begin, after)
    return text or "0"


def _int_or_string(data: bytes, at: int, end: int) -> int | str:
    kind = whole = 0
    for number, value in numbers_in(data, at, end):
        if number == 1:
            kind = value
        elif number == 2:
            whole = signed_32(value)
    if not kind:
        return whole
    text = ""
    for number, begin, after in pieces_in(data, at, end):
        if number == 3:
            text = read_text(data, begin, after)
    return text


def _moment(data: bytes, at: int, end: int) -> tuple[datetime, int] | None:
    """Return a point in time without its fraction, and the nanoseconds; None if there is none."""
    if at == end:
        return None
    found = dict(numbers_in(data, at, end))
    second, nanos = signed(found.get(1, 0)), signed_32(found.get(2, 0))
    if second == _YEAR_1 and nanos == 0:
        return None
    try:
        return _EPOCH + timedelta(seconds=second), nanos
    except OverflowError:
        raise ProtobufError(f"{second} seconds since 1970 are no date", at) from None


def _time(data: bytes, at: int, end: int) -> str | None:
    """Return whole seconds: the API server ignores a fraction."""
    found = _moment(data, at, end)
    return None if found is None else found[0].isoformat().removesuffix(_ZONE) + "Z"


def _micro_time(data: bytes, at: int, end: int) -> str | None:
    found = _moment(data, at, end)
    if found is None:
        return None
    moment, nanos = found
    try:
        moment += timedelta(microseconds=nanos // 1000)
    except OverflowError:
        raise ProtobufError(f"{nanos} nanoseconds are too many", at) from None
    return moment.isoformat(timespec="microseconds").removesuffix(_ZONE) + "Z"


def _json(data: bytes, at: int, end: int) -> Any:
    """Return the JSON text in field 1, decoded."""
    place = (0, 0)
    for number, begin, after in pieces_in(data, at, end):
        if number == 1:
            place = begin, after
    begin, after = place
    if begin == after:
        return None
    try:
        return msgspec.json.decode(data[begin:after])
    except (ValueError, RecursionError) as error:
        raise ProtobufError(f"an embedded object is not JSON: {error!s:.200}", begin) from None


FORMS: Final[dict[str, JsonForm]] = {
    "Quantity": _quantity,
    "IntOrString": _int_or_string,
    "Time": _time,
    "MicroTime": _micro_time,
    "Json": _json,
}
"""By the name that the message tables use."""
