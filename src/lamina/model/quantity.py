"""
Kubernetes quantities as exact integers.

    quantity := [sign] digits [suffix]        "2"  "+.5"  "1500m"  "1.5Gi"  "12e6"
    digits   := at least one of 0-9, with at most one point
    suffix   := n u m k M G T P E | Ki Mi Gi Ti Pi Ei | e exponent | E exponent

Calculations use no floating point. A fraction that does not fit the unit is rounded away from zero, so that a small
request never becomes 0. Amounts beyond 64 bits are clamped to the largest number that fits. Upstream clamps whole units
with a binary suffix too, but overflows in the other cases, which would give wrong schedules.
"""

import reprlib
from functools import lru_cache
from typing import Final

from lamina.model.errors import LaminaError

MAX_LENGTH: Final = 128
"""Longest text that is parsed."""
LARGEST: Final = 2**63 - 1
"""Amounts are clamped to this in both directions."""

_DIGITS: Final = "0123456789"
_TENS: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_TWOS: Final = {"Ei": 60, "Pi": 50, "Ti": 40, "Gi": 30, "Mi": 20, "Ki": 10}
_HUMAN_UNITS: Final = ("kB", "MB", "GB", "TB", "PB", "EB")

# With at most MAX_LENGTH digits, a power of ten beyond this one alone determines the result: one unit, or LARGEST.
_FURTHEST_EXPONENT: Final = 1000

_QUOTE: Final = reprlib.Repr()
_QUOTE.maxstring = 60


class QuantityError(ValueError, LaminaError):
    """Text that is not a quantity; *problem* gives the reason."""

    def __init__(self, text: str, problem: str) -> None:
        super().__init__(text, problem)
        self.text, self.problem = text, problem

    def __str__(self) -> str:
        return f"{_QUOTE.repr(self.text)} is not a quantity: {self.problem}; write for example 2, 500m, 1.5Gi or 200M"


def milli(value: str | float) -> int:
    """Return a quantity in thousandths, rounded away from zero: ``"0.1"`` is 100."""
    return _scaled(value, 3)


def whole(value: str | float) -> int:
    """Return a quantity in whole units, rounded away from zero: ``"1.5Ki"`` is 1536, ``"1m"`` is 1."""
    return _scaled(value, 0)


# Typed, because 1, 1.0 and True would otherwise be one key, and True is an error.
@lru_cache(maxsize=4096, typed=True)
def _scaled(value: str | float, places: int) -> int:
    negative, mantissa, tens, twos = _parts(value)
    exponent = max(-_FURTHEST_EXPONENT, min(tens + places, _FURTHEST_EXPONENT))
    power: int = 10 ** abs(exponent)
    size = mantissa << twos
    size = size * power if exponent >= 0 else -(-size // power)
    size = min(size, LARGEST)
    return -size if negative else size


def _parts(value: str | float) -> tuple[bool, int, int, int]:
    """Split a quantity into its sign and ``mantissa * 10**tens * 2**twos``."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise QuantityError(str(value), "it is neither text nor a number")
    if isinstance(value, int):
        return value < 0, abs(value), 0, 0
    # The shortest text that reads back as this float is the text in the file it came from.
    text = value if isinstance(value, str) else repr(value)
    if len(text) > MAX_LENGTH:
        raise QuantityError(text, f"it is longer than {MAX_LENGTH} characters")

    unsigned = text[1:] if text.startswith(("+", "-")) else text
    suffix = unsigned.lstrip(_DIGITS + ".")
    integer, _, fraction = unsigned[: len(unsigned) - len(suffix)].partition(".")
    if not integer and not fraction:
        raise QuantityError(text, "it has no digits before the suffix" if suffix else "it has no digits")
    if "." in fraction:
        raise QuantityError(text, "it has more than one point")
    tens, twos = _powers(text, suffix)
    return text.startswith("-"), int(integer + fraction), tens - len(fraction), twos


def _powers(text: str, suffix: str) -> tuple[int, int]:
    """Return the power of ten and the power of two of a suffix."""
    if suffix in _TENS:
        return _TENS[suffix], 0
    if suffix in _TWOS:
        return 0, _TWOS[suffix]
    exponent = suffix[1:]
    digits = exponent[1:] if exponent.startswith(("+", "-")) else exponent
    if suffix[0] in "eE" and digits and not digits.strip(_DIGITS):
        return int(exponent), 0
    raise QuantityError(
        text, f"{_QUOTE.repr(suffix)} is not a suffix ({' '.join(filter(None, [*_TENS, *reversed(_TWOS)]))})"
    )


def format_milli(thousandths: int) -> str:
    """Format thousandths as the API server does: ``1500m``, ``2``."""
    return f"{thousandths}m" if thousandths % 1000 else str(thousandths // 1000)


def format_bytes(size: int) -> str:
    """Format bytes exactly, with the largest binary suffix that leaves no fraction: ``512Mi``, ``1000``."""
    for suffix, bits in _TWOS.items():
        if size and size % (1 << bits) == 0:
            return f"{size >> bits}{suffix}"
    return str(size)


def human_bytes(size: int) -> str:
    """Format bytes for display, in decimal units and two or three digits: ``771 kB``, ``1.9 GB``."""
    sign, size = "-" if size < 0 else "", abs(size)
    text = f"{size} B"
    unit_size = 1
    for unit in _HUMAN_UNITS:
        if _rounded(size, unit_size) < 1000:
            break
        unit_size *= 1000
        tenths = _rounded(size * 10, unit_size)
        text = f"{tenths // 10}.{tenths % 10} {unit}" if tenths < 100 else f"{_rounded(size, unit_size)} {unit}"
    return sign + text


def _rounded(numerator: int, denominator: int) -> int:
    return (numerator + denominator // 2) // denominator
