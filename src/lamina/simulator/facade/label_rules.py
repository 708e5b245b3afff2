"""
What the API server accepts as a label key and a label value, with the words of its refusals.

Lengths are in bytes of UTF-8, as the API server counts them.
"""

import re
from typing import Final

_NAME_FORM: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE_FORM: Final = f"({_NAME_FORM})?"
_DNS_LABEL_FORM: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_FORM: Final = rf"{_DNS_LABEL_FORM}(\.{_DNS_LABEL_FORM})*"

_NAME: Final = re.compile(_NAME_FORM)
_VALUE: Final = re.compile(_VALUE_FORM)
_SUBDOMAIN: Final = re.compile(_SUBDOMAIN_FORM)

_CHARACTERS: Final = (
    "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_NAME_WORDS: Final = (
    f"must {_CHARACTERS} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME_FORM}')"
)
_VALUE_WORDS: Final = (
    f"a valid label must be an empty string or {_CHARACTERS} (e.g. 'MyValue',  or 'my_value',  or '12345', "
    f"regex used for validation is '{_VALUE_FORM}')"
)
_SUBDOMAIN_WORDS: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN_FORM}')"
)

MAX_LABEL: Final = 63
"""Longest label value, and longest name part of a label key."""
MAX_SUBDOMAIN: Final = 253
"""Longest prefix of a label key."""


def label_key_problems(key: str) -> list[str]:
    """Return what the API server objects to in a label key; an empty list means that it accepts the key."""
    prefix, slash, name = key.partition("/")
    if "/" in name:
        return [
            f"a valid label key {_NAME_WORDS} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    problems = _prefix_problems(prefix) if slash else []
    name = name if slash else prefix
    if not name:
        problems.append("name part must be non-empty")
    elif len(name.encode()) > MAX_LABEL:
        problems.append(f"name part must be no more than {MAX_LABEL} bytes")
    if not _NAME.fullmatch(name):
        problems.append(f"name part {_NAME_WORDS}")
    return problems


def label_value_problems(value: str) -> list[str]:
    """Return what the API server objects to in a label value; an empty list means that it accepts the value."""
    problems = []
    if len(value.encode()) > MAX_LABEL:
        problems.append(f"must be no more than {MAX_LABEL} bytes")
    if not _VALUE.fullmatch(value):
        problems.append(_VALUE_WORDS)
    return problems


def _prefix_problems(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    problems = []
    if len(prefix.encode()) > MAX_SUBDOMAIN:
        problems.append(f"prefix part must be no more than {MAX_SUBDOMAIN} bytes")
    if not _SUBDOMAIN.fullmatch(prefix):
        problems.append(f"prefix part {_SUBDOMAIN_WORDS}")
    return problems
