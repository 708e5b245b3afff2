"""
Plain data of YAML and JSON: the value of unquoted text, and the display of values, paths and counts in messages.

Unquoted text has the value that Kubernetes gives it, except for readings that surprise:

    yes no on off true false    true or false, as in YAML 1.1 and kubectl
    12  -3  1_000  0x1F  0b11   whole numbers
    1.5  1e9  .inf  .nan        numbers; unlike in PyYAML, an exponent needs neither point nor sign
    017  0o17  1:30             text: versions of YAML disagree on their value (15 or 17, 90 or a time)
    2024-05-01                  text: dates are never built
"""

import math
import re
from typing import Final, TypeAlias

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"
Path: TypeAlias = tuple[str | int, ...]
"""Steps from the root of a document: field names and list positions."""

MAX_DIGITS: Final = 256
"""Longest whole number that is accepted. Any shorter one fits a float, even in hexadecimal, so none overflows later."""
MOST_SHOWN: Final = 60

_NOTHING: Final = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE: Final = frozenset(form for word in ("yes", "true", "on") for form in (word, word.title(), word.upper()))
_FALSE: Final = frozenset(form for word in ("no", "false", "off") for form in (word, word.title(), word.upper()))
_WHOLE: Final = re.compile(r"[-+]?(0|[1-9][0-9_]*|0x_*[0-9a-fA-F][0-9a-fA-F_]*|0b_*[01][01_]*)")
_NUMBER: Final = re.compile(
    r"[-+]?([0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)([eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+"
)
_ENDLESS: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_CREDENTIALS: Final = re.compile(r"://.*@")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,99}")


def scalar(text: str) -> bool | int | float | str | None:
    """Return the value of unquoted text. Raises ValueError for a number that is too large."""
    if text in _NOTHING:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _WHOLE.fullmatch(text):
        if len(text) > MAX_DIGITS:
            raise ValueError(f"a number of {len(text)} digits is too long; put it in quotes if it is text")
        return int(text.replace("_", ""), 0)
    if _ENDLESS.fullmatch(text):
        return float(text.replace(".", ""))
    if _NUMBER.fullmatch(text):
        number = float(text.replace("_", ""))
        if math.isinf(number):
            raise ValueError(f"the number {shown(text)} is too large; put it in quotes if it is text")
        return number
    return text


def cut(text: str) -> str:
    """Truncate text that is too long for a message, and remove credentials from URLs."""
    text = _CREDENTIALS.sub("://…@", text) if "@" in text else text
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 3]}..."


def shown(value: object) -> str:
    """Format a value for a message: text in quotes, on one line, truncated if it is long."""
    return repr(cut(value)) if isinstance(value, str) else cut(str(value))


def written_path(path: Path) -> str:
    """Format a path as a user would write it: ``pods[2].labels['app/name']``."""
    steps = (f".{step}" if isinstance(step, str) and _NAME.fullmatch(step) else f"[{shown(step)}]" for step in path)
    return "".join(steps).removeprefix(".")


def plural(number: int, noun: str, many: str = "") -> str:
    """Return a number with its noun, in the plural unless the number is 1; *many* is a plural that takes no plain "s"."""
    return f"{number:,} {noun if number == 1 else many or f'{noun}s'}"
