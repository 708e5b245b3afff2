"""
What a Prometheus server answers, as far as we look at it.

    instant query    one number for each series, all of one moment: the one at which the server worked them out
    range query      numbers at several moments for each series

A range of a large cluster has a hundred thousand numbers and more, so its series are read one by one, and who reads them
can let others run in between. Whatever is wrong with the bytes is a ValueError in words; `client` says who sent them.
"""

from typing import Final

import msgspec
from msgspec import Raw

MOST_SERIES: Final = 50_000
"""Series of an answer: one for each node of the largest cluster, several times over."""
MOST_SAMPLES: Final = 1_000_000
"""Numbers of an answer to a range query."""
LONGEST_NUMBER: Final = 64
MOST_WARNINGS: Final = 8

Labels = dict[str, str]


class InstantSample(msgspec.Struct, frozen=True, gc=False):
    """One number, and whose it is."""

    labels: Labels
    at: float
    """The moment it was worked out for, in seconds since 1970 by the server's clock."""
    value: float
    """May be NaN or infinite."""


class RangeSeries(msgspec.Struct, frozen=True, gc=False):
    """Numbers at several moments, and whose they are."""

    labels: Labels
    points: tuple[tuple[float, float], ...]
    """Moments and numbers, in order of time."""


class InstantResult(msgspec.Struct, frozen=True):
    """The answer to an instant query."""

    series: tuple[InstantSample, ...]
    warnings: tuple[str, ...] = ()
    """What the server says of its own answer; one that was put together from several servers may lack some."""


class RangeResult(msgspec.Struct, frozen=True):
    """The answer to a range query."""

    curves: tuple[RangeSeries, ...]
    warnings: tuple[str, ...] = ()


class ErrorResponse(msgspec.Struct, frozen=True):
    """Why the server does not answer, in its own words."""

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
    """There is more in an answer than is looked at."""


def read_error_response(body: bytes) -> ErrorResponse | None:
    """Read what stands in an answer that is no success; None when it is something else."""
    try:
        found = _REFUSAL.decode(body)
    except (ValueError, RecursionError):
        return None
    return ErrorResponse(found.error_type, found.error) if found.status == "error" else None


def read_instant(body: bytes) -> InstantResult:
    """Read the answer to an instant query: a vector, or a number that belongs to nobody."""
    data, warnings = _opened(body)
    try:
        if data.result_type == "scalar":
            at, value = _POINT.decode(data.result)
            return InstantResult((InstantSample({}, at, _number(value)),), warnings)
        if data.result_type != "vector":
            raise ValueError(f"expected one number for each series and got a {data.result_type[:40]}")
        found = _VECTOR.decode(data.result)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if len(found) > MOST_SERIES:
        raise ResultTooLargeError(f"{len(found)} series, more than the {MOST_SERIES} that are looked at")
    return InstantResult(
        tuple(InstantSample(one.metric, one.value[0], _number(one.value[1])) for one in found), warnings
    )


def open_range(body: bytes) -> tuple[list[Raw], tuple[str, ...]]:
    """Take the answer to a range query apart into series, which are not read yet, and warnings."""
    data, warnings = _opened(body)
    if data.result_type != "matrix":
        raise ValueError(f"expected numbers over time and got a {data.result_type[:40]}")
    found = _UNREAD.decode(data.result)
    if len(found) > MOST_SERIES:
        raise ResultTooLargeError(f"{len(found)} series, more than the {MOST_SERIES} that are looked at")
    return found, warnings


def read_curve(data: Raw) -> RangeSeries:
    """Read one series of a range."""
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
        raise ValueError(f"it says {envelope.status[:40]!r} and has no result")
    return envelope.data, tuple((envelope.warnings or [])[:MOST_WARNINGS])


def _number(text: str) -> float:
    """Read a number as Prometheus writes it: ``1.5``, ``NaN``, ``+Inf``."""
    if len(text) > LONGEST_NUMBER:
        raise ValueError("a number is too long")
    return float(text)
