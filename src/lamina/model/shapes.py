"""
Check a single value against a field's type: its shape, its choices and its limits, with messages for the user.

Works on the descriptions of `msgspec.inspect`. `lamina.model.conversion` calls it and adds the positions; the content
of a list or a mapping is not checked here.
"""

import math
import re
from collections.abc import Iterator
from types import NoneType
from typing import Final

from msgspec import inspect

from lamina.model import plain
from lamina.model.plain import Plain

_SHAPES: Final[tuple[tuple[type[inspect.Type], str, tuple[type, ...]], ...]] = (
    (inspect.StrType, "text", (str,)),
    (inspect.IntType, "a whole number", (int,)),
    (inspect.FloatType, "a number", (int, float)),
    (inspect.BoolType, "true or false", (bool,)),
    (inspect.NoneType, "nothing", (NoneType,)),
    (inspect.CollectionType, "a list", (list,)),
    (inspect.TupleType, "a list", (list,)),
    (inspect.DictType, "a mapping", (dict,)),
    (inspect.StructType, "a mapping", (dict,)),
)
"""A kind, its name in messages, and the Python types of its plain data."""


def choices(kind: inspect.LiteralType | inspect.EnumType) -> tuple[object, ...]:
    """Return the values that are allowed."""
    return kind.values if isinstance(kind, inspect.LiteralType) else tuple(one.value for one in kind.cls)


def written_kind(kind: inspect.Metadata) -> inspect.Type:
    """Return the kind of a value as written, which differs from that of the field if the field parses it."""
    written: inspect.Type = (kind.extra or {}).get("written", kind.type)
    return written


def fits(kind: inspect.Type, value: Plain, *, exactly: bool = False) -> bool:
    """
    Return whether a value has the expected shape; an unknown kind fits, because msgspec checks it.

    A choice fits when it is of the same type as those allowed, or *exactly* when it is one of them.
    """
    match kind:
        case inspect.Metadata():
            return fits(written_kind(kind), value, exactly=exactly)
        case inspect.UnionType():
            return any(fits(one, value, exactly=exactly) for one in kind.types)
        case inspect.LiteralType() | inspect.EnumType():
            alike = [one for one in choices(kind) if type(one) is type(value)]
            return value in alike if exactly else bool(alike)
        case inspect.StructType(array_like=True):
            return True
    types = next((types for known, _, types in _SHAPES if isinstance(kind, known)), (type(value),))
    return type(value) in types and not (isinstance(value, float) and math.isnan(value))


def expected(kind: inspect.Type) -> str:
    """Return the name of a kind for messages."""
    match kind:
        case inspect.Metadata():
            return expected(written_kind(kind))
        case inspect.UnionType():
            return " or ".join(dict.fromkeys(expected(one) for one in kind.types))
        case inspect.LiteralType() | inspect.EnumType():
            return f"one of {', '.join('nothing' if one is None else plain.shown(one) for one in choices(kind))}"
    return next((noun for known, noun, _ in _SHAPES if isinstance(kind, known)), "something else")


def found(kind: inspect.Type, value: Plain, written: str) -> str:
    """Describe a value that does not fit, *written* so in the document, and how to fix it where that is clear."""
    match value:
        case None:
            return "nothing"
        case list():
            return "a list"
        case dict():
            return "a mapping"
        case str():
            quoted = len(value) < plain.MAX_DIGITS and fits(kind, _unquoted(value), exactly=True)
            return f"text {plain.shown(value)}{'; remove the quotes' if quoted else ''}"
        case bool():
            said = str(value).lower()
            shown_as = said if written.lower() in ("", said) else f"{written} (which YAML reads as {said})"
        case _:
            shown_as = f"the number {plain.cut(written or str(value))}"
    if fits(kind, written or str(value), exactly=True):
        return f"{shown_as}; put it in quotes"
    if isinstance(value, float) and value.is_integer() and fits(kind, int(value), exactly=True):
        return f"{shown_as}; write {int(value)}"
    return shown_as


def _unquoted(text: str) -> Plain:
    try:
        return plain.scalar(text)
    except ValueError:
        return text


def broken_limits(kind: inspect.Type, value: Plain) -> Iterator[str]:
    """Yield a message for each limit of the description that the value violates."""
    match kind, value:
        case ((inspect.IntType() | inspect.FloatType()), (int() | float())):
            for words, limit, broken in (
                ("at least", kind.ge, kind.ge is not None and value < kind.ge),
                ("more than", kind.gt, kind.gt is not None and value <= kind.gt),
                ("at most", kind.le, kind.le is not None and value > kind.le),
                ("less than", kind.lt, kind.lt is not None and value >= kind.lt),
            ):
                if broken:
                    yield f"must be {words} {limit}, found {plain.shown(value)}"
        case inspect.StrType(), str():
            yield from _broken_lengths(kind.min_length, kind.max_length, len(value), "character")
            if kind.pattern is not None and not re.search(kind.pattern, value):
                yield f"must match the pattern {kind.pattern}, found {plain.shown(value)}"
        case inspect.CollectionType(), list():
            yield from _broken_lengths(kind.min_length, kind.max_length, len(value), "item")
        case inspect.TupleType(), list():
            yield from _broken_lengths(len(kind.item_types), len(kind.item_types), len(value), "item")
        case inspect.DictType(), dict():
            yield from _broken_lengths(kind.min_length, kind.max_length, len(value), "field")


def _broken_lengths(least: int | None, most: int | None, length: int, noun: str) -> Iterator[str]:
    if least is not None and length < least:
        yield f"must have at least {least} {noun}{'' if least == 1 else 's'}, found {length}"
    if most is not None and length > most:
        yield f"must have at most {most} {noun}{'' if most == 1 else 's'}, found {length}"
