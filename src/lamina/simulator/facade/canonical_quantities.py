"""
Quantities in the form in which the API server stores them: ``0.5`` is ``500m``, ``1024Mi`` is ``1Gi``, 2 is ``"2"``.

The suffix family of the input is kept, without fractions and with the largest suffix. Amounts are rounded up: to a
billionth, and in lists of resources to a thousandth, as on the real server.
"""

import re
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Any, Final

from lamina.simulator.facade.kube_object import KubeObject

MAX_QUANTITY: Final = 128
"""Longest text that is read as a quantity."""
QUANTITY_WORDS: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"  # the server's words
)

_LARGEST: Final = Fraction(2**63 - 1)
_NANO: Final = 10**9
_MILLI: Final = 10**3
_FURTHEST_EXPONENT: Final = 200
_LARGEST_SUFFIX: Final = 18
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL: Final = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_TENS: Final = {suffix: exponent for exponent, suffix in _DECIMAL.items()}
_QUANTITY: Final = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]?|[eE][+-]?\d+)", re.ASCII)


class QuantityFormError(ValueError):
    """A value that is no quantity; the message is the server's."""


def canonical_quantity(value: Any) -> str:
    """Return a quantity in canonical form. Raises QuantityFormError if *value* is none."""
    return _canonical(_words(value), _NANO)


def exact_quantity(value: Any) -> Fraction:
    """Return the amount of a quantity, rounded as the server does. Raises QuantityFormError if *value* is none."""
    return _parsed(_words(value))[0]


def _words(value: Any) -> str:
    """Return the text of a quantity; JSON may also have a number. The text of anything else is no quantity."""
    return value if isinstance(value, str) else repr(value)


def canonical_resource_list(found: KubeObject) -> KubeObject:
    """Return a resource list with canonical quantities, in thousandths at least. Raises QuantityFormError."""
    return {name: _canonical(_words(value), _MILLI) for name, value in found.items()}


@lru_cache(maxsize=8192)
def _canonical(words: str, parts: int) -> str:
    amount, family = _parsed(words)
    amount = _rounded_up(amount, parts)
    if amount == 0:
        return "0"
    if family == "binary" and (abs(amount) < 1024 or amount.denominator != 1):
        family = "decimal"
    if family == "binary":
        whole, power = amount.numerator, 0
        while whole % 1024 == 0 and power < len(_BINARY) - 1:
            whole, power = whole // 1024, power + 1
        return f"{whole}{_BINARY[power]}"
    mantissa, exponent = int(amount * _NANO), -9
    while mantissa % 1000 == 0 and (exponent < _LARGEST_SUFFIX or family == "exponent"):
        mantissa, exponent = mantissa // 1000, exponent + 3
    if family == "exponent":
        return f"{mantissa}e{exponent}" if exponent else str(mantissa)
    return f"{mantissa}{_DECIMAL[exponent]}"


@lru_cache(maxsize=8192)
def _parsed(words: str) -> tuple[Fraction, str]:
    found = _QUANTITY.fullmatch(words) if len(words) <= MAX_QUANTITY else None
    if found is None or not (found[2] or found[3]):
        raise QuantityFormError(QUANTITY_WORDS)
    sign, whole, fraction, suffix = found.groups()
    amount = Fraction(int((whole or "") + (fraction or "") or "0"), 10 ** len(fraction or ""))
    if suffix in _TENS:
        family, factor = "decimal", Fraction(10) ** _TENS[suffix]
    elif suffix in _BINARY:
        family, factor = "binary", Fraction(1024) ** _BINARY.index(suffix)
        # The real server clamps amounts with a binary suffix to 64 bits, and no others.
        amount = min(amount, _LARGEST / factor)
    else:
        exponent = max(-_FURTHEST_EXPONENT, min(int(suffix[1:]), _FURTHEST_EXPONENT))
        family, factor = "exponent", Fraction(10) ** exponent
    amount = _rounded_up(amount * factor, _NANO)
    return (-amount if sign == "-" else amount), family


def _rounded_up(amount: Fraction, parts: int) -> Fraction:
    """Return an amount in whole parts of one, rounded away from zero."""
    size = Fraction(ceil(abs(amount) * parts), parts)
    return -size if amount < 0 else size
