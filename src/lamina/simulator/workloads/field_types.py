"""
Values that scenario fields hold: durations, sizes, rates, resource amounts and names, as people write them.

    duration := as in `lamina.model.duration`
    size     := number [unit] ["B"]          unit: k M G T (1000), Ki Mi Gi Ti (1024)       300MB  1.5GiB  771kB  4096
    rate     := size ["/s"] | number [unit] ("bit" | "bit/s")                               100MB  100MB/s  50Mbit
    portion  := whole number | number "%"                                                   2  25%

Each field type carries its parser. The conversion calls it once, reports a bad value with file and line, and stores the
result in the entry: seconds, bytes, bytes per second. Only resource amounts stay as written, because their unit
depends on the name of the resource. Unlike
Kubernetes quantities, sizes have no ``m``: 300m would be three tenths of a byte. All results are whole numbers or
exact fractions.
"""

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import inspect

from lamina.model import quantity
from lamina.model.duration import seconds
from lamina.model.plain import shown
from lamina.model.reference import parse_reference
from lamina.model.resources import CPU, amount
from lamina.simulator.cluster.lag import Lag

LARGEST: Final = 2**50
"""Largest size in bytes: one PiB. Sums of such sizes stay exact as floats."""

_SIZE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(k|M|G|T|Ki|Mi|Gi|Ti)?B?")
_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")
_PERCENT: Final = re.compile(r"([0-9]{1,3})(?:\.0+)? ?%")
_A_SIZE: Final = "a size; write for example 300MB, 1.5GiB, 771kB or 4096"
_A_RATE: Final = "a rate; write for example 100MB or 50Mbit, of each second"
_MOST_CHARACTERS: Final = 64
_MOST_PODS: Final = 1_000_000


def size(value: str | float) -> int:
    """Return a size in bytes, rounded up. Raises ValueError with a message for the user."""
    return _whole(value, str(value), _A_SIZE)


def rate(value: str | float) -> float:
    """Return bytes per second; the text may have bytes or bits. Raises ValueError with a message for the user."""
    text = value.strip().removesuffix("/s").rstrip() if isinstance(value, str) else str(value)
    if text.endswith("bit"):
        return float(-(-_whole(value, text.removesuffix("bit"), _A_RATE) // 8))
    return float(_whole(value, text, _A_RATE))


def _whole(value: str | float, text: str, expected: str) -> int:
    """Return the number of bytes in *text*; messages quote *value* and what was *expected*."""
    text = text.strip()
    if text.startswith("-"):
        raise ValueError(f"{shown(value)} is negative; write 0 or more")
    parts = _SIZE.fullmatch(text) if len(text) <= _MOST_CHARACTERS else None
    if parts is None:
        raise ValueError(f"{shown(value)} is not {expected}")
    number, unit = parts.groups()
    total = quantity.whole(number + (unit or ""))
    if total > LARGEST:
        raise ValueError(f"{shown(value)} is too large; at most 1024TiB")
    return total


def bandwidth(value: str | float) -> float:
    """Return a rate above 0, in bytes per second. Raises ValueError with a message for the user."""
    read = rate(value)
    if read == 0:
        raise ValueError("a bandwidth of 0 downloads nothing; write bytes per second, for example 100MB")
    return read


def lag(value: str | float | Sequence[str | float]) -> Lag:
    """Return seconds, or a tuple of them to draw from. Raises ValueError with a message for the user."""
    if isinstance(value, str | int | float):
        return seconds(value)
    return tuple(seconds(one) for one in value)


def portion(value: str | float) -> int | float:
    """Return a number of pods (int), or a share (float, 0 to 1). Raises ValueError with a message for the user."""
    if isinstance(value, str) and (parts := _PERCENT.fullmatch(value.strip())) and int(parts[1]) <= 100:
        return int(parts[1]) / 100
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_PODS:
        return value
    raise ValueError(f"{shown(value)} is not a number of pods; write for example 1, or 25% for a share of them")


def resource(value: str | float) -> int:
    """Return an amount of a resource, read as CPU. Raises ValueError with a message for the user."""
    if (read := amount(CPU, value)) < 0:
        raise ValueError(f"{shown(value)} is negative; write 0 or more")
    return read


def object_name(value: str) -> str:
    """Return the name of a node or pod if it is valid. Raises ValueError with a message for the user."""
    if not _NAME.fullmatch(value) or len(value) > _MOST_CHARACTERS * 3:
        raise ValueError(f"{shown(value)} cannot be a name; use a-z and 0-9, with - or . between")
    return value


def _reads(reader: Callable[[Any], object]) -> msgspec.Meta:
    return msgspec.Meta(extra={"reads": reader})


def _parses(parser: Callable[[Any], object], written: Any = str | float) -> msgspec.Meta:
    return msgspec.Meta(extra={"parses": parser, "written": inspect.type_info(written)})


def _at_least_a_second(value: str | float) -> float:
    if (read := seconds(value)) < 1.0:
        raise ValueError("must be at least a second")
    return read


def _positive(value: str | float) -> float:
    if not (read := seconds(value)):
        raise ValueError("must be more than 0")
    return read


class EntryStruct(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of all structs that give a scenario file its shape: immutable, with camelCase fields."""


Duration = Annotated[float, _parses(seconds)]
"""Seconds."""
Period = Annotated[float, _parses(_positive)]
"""A duration that is not 0."""
Interval = Annotated[float, _parses(_at_least_a_second)]
"""The time between repeated events; at least a second, so that a typing error does not create millions of them."""
_WrittenDurations = Annotated[
    tuple[Annotated[str | float, _reads(seconds)], ...], msgspec.Meta(min_length=1, max_length=1000)
]
Delay = Annotated[float | tuple[float, ...], _parses(lag, str | float | _WrittenDurations)]
"""A duration, or a list of them to draw from."""
Size = Annotated[int, _parses(size)]
"""Bytes."""
Bandwidth = Annotated[float, _parses(bandwidth)]
"""Bytes per second, above 0."""
Rate = Annotated[float, _parses(rate)]
"""Bytes per second; 0 means unlimited."""
Quantity = Annotated[str | float, _reads(resource)]
"""An amount of a resource, as written."""
Name = Annotated[str, _reads(object_name)]
Reference = Annotated[str, _reads(parse_reference)]
Portion = Annotated[int | float, _parses(portion, int | float | str)]
"""A number of pods (int), or a share of them (float)."""
Fraction = Annotated[float, msgspec.Meta(ge=0, le=1)]
