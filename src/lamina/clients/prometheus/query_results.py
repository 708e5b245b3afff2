"""
Results of Prometheus queries, and their decoders.

    instant query    one sample for each series, all at the evaluation time
    range query      samples at several times for each series

A range query of a large cluster returns more than 100,000 samples. So its series are decoded one by one, and the caller
can yield to the event loop in between. Decoders raise ValueError; `client` adds the server to the message.
"""

from typing import Final

import msgspec
from msgspec import Raw

MOST_SERIES: Final = 50_000
"""Series of a result: several for each node of the largest cluster."""
MOST_SAMPLES: Final = 1_000_000
"""Samples of a range query's result."""
LONGEST_NUMBER: Final = 64
MOST_WARNINGS: Final = 8

Labels = dict[str, str]


class InstantSample(msgspec.Struct, frozen=True, gc=False):
    """The value of one series at the evaluation time."""

    labels: Labels
    at: float
    """The evaluation time, in seconds since 1970 by the server's clock."""
    value: float
    """Can be NaN or infinite."""


class RangeSeries(msgspec.Struct, frozen=True, gc=False):
    """The values of one series over time."""

    labels: Labels
    points: tuple[tuple[float, float], ...]
    """(seconds since 1970, value), in order of time."""


class InstantResult(msgspec.Struct, frozen=True):
    """The result of an instant query."""

    series: tuple[InstantSample, ...]
    warnings: tuple[str, ...] = ()
    """The server's warnings, for example that a federated result is incomplete."""


class RangeResult(msgspec.Struct, frozen=True):
    """The result of a range query."""

    curves: tuple[RangeSeries, ...]
    warnings: tuple[str, ...] = ()


class ErrorResponse(msgspec.Struct, frozen=True):
    """The server's own error type and message."""

    kind: str
    message: str


class _Data(msgspec.Struct, rename="camel"):
    result_type: str
    result: Raw


class _Envelope(msgspec.Struct, rename="camel"):
    status: str
    data: _Data | None = None
    error_type: str = ""
    error: str = ""
    warnings: list[str] | None = None


class _ErrorBody(msgspec.Struct, rename="camel"):
    status: str
    error_type: str = ""
    error: str = ""


_Point = tuple[float, str]


class _Vector(msgspec.Struct, gc=False):
    metric: Labels
    value: _Point


class _Matrix(msgspec.Struct, gc=False):
    metric: Labels
    values: list[_Point]


_ENVELOPE: Final = msgspec.json.Decoder(_Envelope)
_REFUSAL: Final = msgspec.json.Decoder(_ErrorBody)
_VECTOR: Final = msgspec.json.Decoder(list[_Vector])
_MATRIX: Final = msgspec.json.Decoder(_Matrix)
_UNREAD: Final = msgspec.json.Decoder(list[Raw])
_POINT: Final = msgspec.json.Decoder(_Point)


class ResultTooLargeError(ValueError):
    """A result has more series than `MOST_SERIES`."""


def read_error_response(body: bytes) -> ErrorResponse | None:
    """Decode the body of an error response; None when it is not Prometheus' error JSON."""
    try:
        found = _REFUSAL.decode(body)
    except (ValueError, RecursionError):
        return None
    return ErrorResponse(found.error_type, found.error) if found.status == "error" else None


def read_instant(body: bytes) -> InstantResult:
    """Decode the result of an instant query: a vector, or a scalar, which gets empty labels."""
    data, warnings = _opened(body)
    try:
        if data.result_type == "scalar":
            at, value = _POINT.decode(data.result)
            return InstantResult((InstantSample({}, at, _number(value)),), warnings)
        if data.result_type != "vector":
            raise ValueError(f"expected a vector or a scalar, got a {data.result_type[:40]}")
        found = _VECTOR.decode(data.result)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if len(found) > MOST_SERIES:
        raise ResultTooLargeError(f"{len(found)} series, more than the limit of {MOST_SERIES}")
    return InstantResult(
        tuple(InstantSample(one.metric, one.value[0], _number(one.value[1])) for one in found), warnings
    )


def open_range(body: bytes) -> tuple[list[Raw], tuple[str, ...]]:
    """Split the result of a range query into its undecoded series and the server's warnings."""
    data, warnings = _opened(body)
    if data.result_type != "matrix":
        raise ValueError(f"expected a matrix, got a {data.result_type[:40]}")
    found = _UNREAD.decode(data.result)
    if len(found) > MOST_SERIES:
        raise ResultTooLargeError(f"{len(found)} series, more than the limit of {MOST_SERIES}")
    return found, warnings


def read_curve(data: Raw) -> RangeSeries:
    """Decode one series of a range query."""
    try:
        found = _MATRIX.decode(data)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return RangeSeries(found.metric, tuple([(at, _number(value)) for at, value in found.values]))


def _opened(body: bytes) -> tuple[_Data, tuple[str, ...]]:
    try:
        envelope = _ENVELOPE.decode(body)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if envelope.status != "success" or envelope.data is None:
        raise ValueError(f"its status is {envelope.status[:40]!r} and it has no result")
    return envelope.data, tuple((envelope.warnings or [])[:MOST_WARNINGS])


def _number(text: str) -> float:
    """Parse a number as Prometheus writes it: ``1.5``, ``NaN``, ``+Inf``."""
    if len(text) > LONGEST_NUMBER:
        raise ValueError("a number is too long")
    return float(text)
