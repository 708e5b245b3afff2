"""
Durations as users write them in scenarios and configurations.

    duration := number | (number unit)…      unit: ms s m h         10  500ms  1.5s  1h30m; a bare number is seconds

Calculated in fractions, so that the result is exact.
"""

import re
from fractions import Fraction
from typing import Final

from lamina.model.plain import shown

LONGEST: Final = 10 * 365 * 86_400
"""Longest duration in seconds: ten years. Times stay exact to well below a microsecond."""

_MILLISECONDS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_DURATION: Final = re.compile(rf"(?:{_PART.pattern})+")
_MOST_CHARACTERS: Final = 64


def seconds(value: str | float) -> float:
    """Return a duration or a point in time in seconds. Raises ValueError with a message for the user."""
    if isinstance(value, bool) or str(value) == "nan":
        raise ValueError(f"{shown(value)} is not a duration; write for example 500ms, 10s, 5m or 1h")
    text = str(value).strip()
    if text.startswith("-"):
        raise ValueError(f"{shown(value)} is negative; write 0 or more")
    if len(text) > _MOST_CHARACTERS:
        raise ValueError(f"{shown(value)} is too long for a duration")
    if isinstance(value, str) and not re.fullmatch(r"[0-9]+(\.[0-9]+)?", text):
        if not _DURATION.fullmatch(text):
            raise ValueError(f"{shown(value)} is not a duration; write for example 500ms, 10s, 5m or 1h")
        total = sum(Fraction(number) * _MILLISECONDS[unit] for number, unit in _PART.findall(text)) / 1000
    else:
        # Of the values that YAML reads as a number, only infinity is left to reject.
        total = Fraction(text) if text != "inf" else Fraction(LONGEST + 1)
    if total > LONGEST:
        raise ValueError(f"{shown(value)} is too long; at most ten years")
    return float(total)
