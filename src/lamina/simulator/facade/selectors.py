"""
Label selectors and field selectors of a request, parsed once and compiled to quick tests of objects.

Both follow the API server's grammar and refuse a bad text in its words. `LabelQuery` and `FieldQuery` have the same
interface: `matches`, `everything`, and `equals` for stores that keep an index.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from lamina.simulator.facade.label_rules import label_key_problems, label_value_problems
from lamina.simulator.facade.selectable_fields import SelectableField, SelectableFields

_Labels = Mapping[str, str]

_WORD: Final = re.compile(r"==|!=|[=!(),<>]|[^=!(),<> \t\r\n]+")
_SPECIAL: Final = frozenset(["==", "!=", "=", "!", "(", ")", ",", "<", ">", ""])
_OPERATORS: Final = frozenset(["in", "notin", "=", "==", "!=", "<", ">"])
_OPERATOR_WORDS: Final = "in, notin, =, ==, !=, gt, lt"
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,63}")
_NO_LABELS: Final[_Labels] = {}


class SelectorError(ValueError):
    """A selector that the API server refuses with status 400; the text is the message of its answer."""


class LabelRequirement(NamedTuple):
    """One condition on one label; the operator is `exists`, `!`, or one of the grammar's."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class LabelQuery:
    """A parsed label selector: the conditions must all be met."""

    __slots__ = ("_tests", "equals", "requirements")

    def __init__(self, requirements: tuple[LabelRequirement, ...]) -> None:
        self.requirements = requirements
        self.equals: dict[str, str] = {}
        """The labels that must have exactly one given value; the first value if a text asks for two."""
        for requirement in requirements:
            if requirement.operator in ("=", "==", "in") and len(requirement.values) == 1:
                self.equals.setdefault(requirement.key, requirement.values[0])
        self._tests = tuple(_label_test(requirement) for requirement in requirements)

    @property
    def everything(self) -> bool:
        """Whether every object matches, because there is no condition."""
        return not self._tests

    def matches(self, obj: Mapping[str, Any]) -> bool:
        """Return whether the labels of an object meet all conditions."""
        metadata = obj.get("metadata")
        return self.matches_labels((metadata.get("labels") if metadata else None) or _NO_LABELS)

    def matches_labels(self, labels: _Labels) -> bool:
        """Return whether these labels meet all conditions."""
        return all(test(labels) for test in self._tests)


class FieldRequirement(NamedTuple):
    """One condition on one field: the field's text equals the value, or differs from it."""

    field: SelectableField
    value: str
    equal: bool


class FieldQuery:
    """A parsed field selector: the conditions must all be met."""

    __slots__ = ("_tests", "equals", "requirements")

    def __init__(self, requirements: tuple[FieldRequirement, ...]) -> None:
        self.requirements = requirements
        self.equals: dict[str, str] = {}
        """The fields that must have a given text, by name; the first text if a selector asks for two."""
        for requirement in requirements:
            if requirement.equal:
                self.equals.setdefault(requirement.field.name, requirement.value)
        self._tests = tuple((each.field.reader(), each.value, each.equal) for each in requirements)

    @property
    def everything(self) -> bool:
        """Whether every object matches, because there is no condition."""
        return not self._tests

    def matches(self, obj: Mapping[str, Any]) -> bool:
        """Return whether the fields of an object meet all conditions; a missing field reads as its default."""
        return all((read(obj) == value) is equal for read, value, equal in self._tests)


def parse_label_selector(text: str) -> LabelQuery:
    """Parse a label selector such as `app=web,tier in (a,b),!old`; the empty text matches everything."""
    return LabelQuery(tuple(_LabelParser(text).requirements()))


def parse_field_selector(text: str, allowed: SelectableFields) -> FieldQuery:
    """Parse a field selector such as `spec.nodeName=n1,status.phase!=Failed`; *allowed* are the resource's fields."""
    requirements = []
    # Sorted as in the API server, so that a text with two mistakes reports the same one.
    for term in sorted(filter(None, _split_terms(text))):
        parts = re.fullmatch(r"(.*?)(!=|==|=)(.*)", term, re.DOTALL)
        if parts is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{term}'")
        label, operator, escaped = parts.groups()
        value = _unescape(escaped)
        # As in the API server, a lone operator is no condition.
        if label or value:
            requirements.append((label, value, operator != "!="))
    for label, _, _ in requirements:
        if label not in allowed.fields:
            raise SelectorError(allowed.refusal.replace("{label}", label))
    return FieldQuery(
        tuple(FieldRequirement(allowed.fields[label], value, equal) for label, value, equal in requirements)
    )


class _LabelParser:
    """Recursive descent over the words of a label selector; the word at the end is the empty text."""

    def __init__(self, text: str) -> None:
        self._words: list[str] = [*_WORD.findall(text), ""]
        self._position = 0

    def requirements(self) -> list[LabelRequirement]:
        """Return the conditions, sorted by key."""
        found: list[LabelRequirement] = []
        while (word := self._peek()) != "":
            if word in _SPECIAL and word != "!":
                raise SelectorError(f"found '{word}', expected: !, identifier, or 'end of string'")
            try:
                found.append(self._requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            word = self._next()
            if word not in ("", ","):
                raise SelectorError(f"found '{word}', expected: ',' or 'end of string'")
            if word == "":
                break
            following = self._peek()
            if following in _SPECIAL and following != "!":
                raise SelectorError(f"found '{following}', expected: identifier after ','")
        return sorted(found, key=lambda each: each.key)

    def _peek(self) -> str:
        return self._words[self._position]

    def _next(self) -> str:
        word = self._words[self._position]
        # The end stays the next word, however often it is taken.
        self._position = min(self._position + 1, len(self._words) - 1)
        return word

    def _requirement(self) -> LabelRequirement:
        key = self._next()
        negated = key == "!"
        if negated:
            key = self._next()
        if key in _SPECIAL:
            raise SelectorError(f"found '{key}', expected: identifier")
        if problems := label_key_problems(key):
            raise SelectorError(_invalid("<nil>", key, "; ".join(problems)))
        if negated:
            return LabelRequirement(key, "!")
        if self._peek() in ("", ","):
            return LabelRequirement(key, "exists")
        operator = self._next()
        if operator not in _OPERATORS:
            raise SelectorError(f"found '{operator}', expected: {_OPERATOR_WORDS}")
        values = self._value_set() if operator in ("in", "notin") else {self._exact_value()}
        return _checked(LabelRequirement(key, operator, tuple(sorted(values))))

    def _exact_value(self) -> str:
        if self._peek() in ("", ","):
            return ""
        word = self._next()
        if word in _SPECIAL:
            raise SelectorError(f"found '{word}', expected: identifier")
        return word

    def _value_set(self) -> set[str]:
        """Read `(x,y)`; an empty place between commas or parentheses is the empty value."""
        word = self._next()
        if word != "(":
            raise SelectorError(f"found '{word}' expected: '('")
        word = self._peek()
        if word in _SPECIAL and word not in (",", ")"):
            raise SelectorError(f"found '{word}', expected: ',', ')' or identifier")
        values: set[str] = set()
        value = ""
        while (word := self._next()) != ")":
            if word == ",":
                values.add(value)
                value = ""
            elif word in _SPECIAL:
                raise SelectorError(f"found '{word}', expected: ',', or identifier")
            else:
                value = word
                if (following := self._peek()) not in (",", ")"):
                    raise SelectorError(f"found '{following}', expected: ',' or ')'")
        return values | {value}


def _checked(requirement: LabelRequirement) -> LabelRequirement:
    """Return the requirement, or refuse its values."""
    problems = []
    for index, value in enumerate(requirement.values):
        if requirement.operator in ("<", ">") and _integer(value) is None:
            words = "for 'Gt', 'Lt' operators, the value must be an integer"
            problems.append(_invalid(f"values[{index}]", value, words))
        if found := label_value_problems(value):
            problems.append(_invalid(f"values[{index}][{requirement.key}]", value, "; ".join(found)))
    if problems:
        raise SelectorError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return requirement


def _invalid(path: str, value: str, words: str) -> str:
    return f"{path}: Invalid value: {json.dumps(value, ensure_ascii=False)}: {words}"


def _label_test(requirement: LabelRequirement) -> Callable[[_Labels], bool]:
    key, operator, values = requirement
    if operator in ("=", "==") or (operator == "in" and len(values) == 1):
        value = values[0]
        return lambda labels: labels.get(key) == value
    if operator == "in":
        return lambda labels: labels.get(key) in values
    if operator in ("notin", "!="):
        return lambda labels: labels.get(key) not in values
    if operator == "exists":
        return lambda labels: key in labels
    if operator == "!":
        return lambda labels: key not in labels
    bound = _integer(values[0]) or 0
    if operator == ">":
        return lambda labels: (number := _integer(labels.get(key))) is not None and number > bound
    return lambda labels: (number := _integer(labels.get(key))) is not None and number < bound


def _integer(text: str | None) -> int | None:
    """Parse a 64-bit decimal integer; return None for anything else."""
    if text is None or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def _split_terms(text: str) -> list[str]:
    """Split at the commas that no backslash escapes."""
    return [term for term, _ in re.findall(r"((?:[^\\,]|\\.|\\\Z)*)(,|\Z)", text, re.DOTALL)]


def _unescape(text: str) -> str:
    value = []
    characters = iter(text)
    for character in characters:
        if character == "\\":
            escaped = next(characters, "")
            if escaped not in ("\\", ",", "="):
                raise SelectorError(f"invalid field selector: invalid escape sequence: \\{escaped}")
            value.append(escaped)
        elif character == "=":
            # The API server prints the number of the character.
            raise SelectorError(f"invalid field selector: unescaped character in value: {ord(character)}")
        else:
            value.append(character)
    return "".join(value)
