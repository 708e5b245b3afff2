"""
Durations, sizes and names as people write them in a scenario.

    duration := as in `lamina.model.duration`
    size     := number [unit] ["B"]          unit: k M G T (1000), Ki Mi Gi Ti (1024)       300MB  1.5GiB  771kB  4096
    rate     := size ["/s"] | number [unit] ("bit" | "bit/s")                               100MB  100MB/s  50Mbit
    portion  := whole number | number "%"                                                   2  25%

Unlike Kubernetes quantities, sizes have no ``m``: 300m is three tenths of a byte there, and never what was meant.
Everything is calculated in whole numbers or fractions, so that what is written is what is simulated.
"""

import re
from collections.abc import Sequence
from typing import Final

from lamina.model import quantity
from lamina.model.duration import LONGEST, seconds
from lamina.model.plain import shown
from lamina.model.resources import CPU, amount
from lamina.simulator.cluster.lag import Lag

LARGEST: Final = 2**50
"""Bytes a size may have: one PiB. Sums of sizes stay exact as floats."""

_SIZE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(k|M|G|T|Ki|Mi|Gi|Ti)?B?")
_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")
_PERCENT: Final = re.compile(r"([0-9]{1,3})(?:\.0+)? ?%")
_A_SIZE: Final = "a size; write for example 300MB, 1.5GiB, 771kB or 4096"
_A_RATE: Final = "a rate; write for example 100MB or 50Mbit, of each second"
_MOST_CHARACTERS: Final = 64
_MOST_PODS: Final = 1_000_000

__all__ = [
    "LARGEST",
    "LONGEST",
    "bandwidth",
    "lag",
    "object_name",
    "portion",
    "rate",
    "resource",
    "seconds",
    "size",
]


def size(value: str | float) -> int:
    """Read a number of bytes; a fraction of a byte counts as one. Raises ValueError in words."""
    return _whole(value, str(value), _A_SIZE)


def rate(value: str | float) -> int:
    """Read bytes per second, written in bytes or bits, with or without ``/s`` behind them. Raises ValueError in words."""
    text = value.strip().removesuffix("/s").rstrip() if isinstance(value, str) else str(value)
    if text.endswith("bit"):
        return -(-_whole(value, text.removesuffix("bit"), _A_RATE) // 8)
    return _whole(value, text, _A_RATE)


def _whole(value: str | float, text: str, expected: str) -> int:
    """Read the *text* of a *value* as a number with a unit."""
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


def bandwidth(value: str | float) -> int:
    """Read a rate at which something comes at all. Raises ValueError in words."""
    read = rate(value)
    if read == 0:
        raise ValueError("a bandwidth of 0 downloads nothing; write bytes per second, for example 100MB")
    return read


def lag(value: str | float | Sequence[str | float]) -> Lag:
    """Read a duration, or durations to draw from. Raises ValueError in words."""
    if isinstance(value, str | int | float):
        return seconds(value)
    return tuple(seconds(one) for one in value)


def portion(value: str | float) -> int | float:
    """Read a number of pods, or the share of them that a percentage means. Raises ValueError in words."""
    if isinstance(value, str) and (parts := _PERCENT.fullmatch(value.strip())) and int(parts[1]) <= 100:
        return int(parts[1]) / 100
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_PODS:
        return value
    raise ValueError(f"{shown(value)} is not a number of pods; write for example 1, or 25% for a share of them")


def resource(value: str | float) -> int:
    """Check an amount of any resource. Raises ValueError in words."""
    if (read := amount(CPU, value)) < 0:
        raise ValueError(f"{shown(value)} is negative; write 0 or more")
    return read


def object_name(value: str) -> str:
    """Check the name of a node or pod. Raises ValueError in words."""
    if not _NAME.fullmatch(value) or len(value) > _MOST_CHARACTERS * 3:
        raise ValueError(f"{shown(value)} cannot be a name; use a-z and 0-9, with - or . between")
    return value
