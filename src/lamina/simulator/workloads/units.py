"""
Durations, sizes and names as people write them in a scenario.

    duration := number | (number unit)…      unit: ms s m h         10  500ms  1.5s  1h30m; a bare number is seconds
    size     := number [unit] ["B"]          unit: k M G T (1000), Ki Mi Gi Ti (1024)       300MB  1.5GiB  771kB  4096

Unlike Kubernetes quantities, sizes have no ``m``: 300m is three tenths of a byte there, and never what was meant.
Everything is calculated in whole numbers or fractions, so that what is written is what is simulated.
"""

import re
from fractions import Fraction
from typing import Final

from lamina.model import quantity
from lamina.model.plain import shown
from lamina.model.resources import CPU, amount

LONGEST: Final = 10 * 365 * 86_400
"""Seconds a duration may have: ten years. Times stay exact to well below a microsecond."""
LARGEST: Final = 2**50
"""Bytes a size may have: one PiB. Sums of sizes stay exact as floats."""

_MILLISECONDS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_DURATION: Final = re.compile(rf"(?:{_PART.pattern})+")
_SIZE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(k|M|G|T|Ki|Mi|Gi|Ti)?B?")
_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")
_MOST_CHARACTERS: Final = 64


def seconds(value: str | float) -> float:
    """Read a duration or a point in time. Raises ValueError in words for the person who wrote it."""
    text = str(value).strip()
    if text.startswith("-"):
        raise ValueError(f"{shown(value)} is negative: write 0 or more")
    if len(text) > _MOST_CHARACTERS:
        raise ValueError(f"{shown(value)} is too long for a duration")
    if isinstance(value, str) and not re.fullmatch(r"[0-9]+(\.[0-9]+)?", text):
        if not _DURATION.fullmatch(text):
            raise ValueError(f"{shown(value)} is not a duration: write for example 500ms, 10s, 5m or 1h")
        total = sum(Fraction(number) * _MILLISECONDS[unit] for number, unit in _PART.findall(text)) / 1000
    else:
        # Of what YAML reads as a number only infinity is left to refuse.
        total = Fraction(text) if text != "inf" else Fraction(LONGEST + 1)
    if total > LONGEST:
        raise ValueError(f"{shown(value)} is too long: at most ten years are simulated")
    return float(total)


def size(value: str | float) -> int:
    """Read a number of bytes; a fraction of a byte counts as one. Raises ValueError in words."""
    text = str(value).strip()
    if text.startswith("-"):
        raise ValueError(f"{shown(value)} is negative: write 0 or more")
    parts = _SIZE.fullmatch(text) if len(text) <= _MOST_CHARACTERS else None
    if parts is None:
        raise ValueError(f"{shown(value)} is not a size: write for example 300MB, 1.5GiB, 771kB or 4096")
    number, unit = parts.groups()
    total = quantity.whole(number + (unit or ""))
    if total > LARGEST:
        raise ValueError(f"{shown(value)} is too large: at most 1024TiB")
    return total


def bandwidth(value: str | float) -> int:
    """Read bytes per second, with or without ``/s`` behind them. Raises ValueError in words."""
    rate = size(value.strip().removesuffix("/s") if isinstance(value, str) else value)
    if rate == 0:
        raise ValueError("a bandwidth of 0 downloads nothing: write bytes per second, for example 100MB")
    return rate


def resource(value: str | float) -> int:
    """Check an amount of any resource. Raises ValueError in words."""
    if (read := amount(CPU, value)) < 0:
        raise ValueError(f"{shown(value)} is negative: write 0 or more")
    return read


def object_name(value: str) -> str:
    """Check the name of a node or pod. Raises ValueError in words."""
    if not _NAME.fullmatch(value) or len(value) > _MOST_CHARACTERS * 3:
        raise ValueError(f"{shown(value)} cannot be a name: use a-z and 0-9, with - or . between")
    return value
