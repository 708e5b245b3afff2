"""
Durations, sizes and names as people write them in a scenario.

    duration := as in `lamina.model.duration`
    size     := number [unit] ["B"]          unit: k M G T (1000), Ki Mi Gi Ti (1024)       300MB  1.5GiB  771kB  4096

Unlike Kubernetes quantities, sizes have no ``m``: 300m is three tenths of a byte there, and never what was meant.
Everything is calculated in whole numbers or fractions, so that what is written is what is simulated.
"""

import re
from typing import Final

from lamina.model import quantity
from lamina.model.duration import LONGEST, seconds
from lamina.model.plain import shown
from lamina.model.resources import CPU, amount

LARGEST: Final = 2**50
"""Bytes a size may have: one PiB. Sums of sizes stay exact as floats."""

_SIZE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(k|M|G|T|Ki|Mi|Gi|Ti)?B?")
_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")
_MOST_CHARACTERS: Final = 64

__all__ = ["LARGEST", "LONGEST", "bandwidth", "object_name", "resource", "seconds", "size"]


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
