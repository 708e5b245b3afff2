"""
Parser for WWW-Authenticate headers (RFC 9110, section 11).

    Bearer realm="https://auth.example/token",service="registry.example",scope="repository:team/app:pull"
    Basic realm="registry"

One header may contain several challenges, separated by the same commas as their parameters. The parser reads each
character once. Text that is not a challenge is skipped, so a malformed header gets no credentials.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

LONGEST: Final = 8_192
"""Characters of one header that are read."""
MOST: Final = 16
"""Challenges, and parameters of each, that are kept."""

# One token: a word with an optional value, or a separator.
_STEP: Final = re.compile(
    r"""(?P<word>[!#$%&'*+.^_`|~0-9A-Za-z-]++)
        (?:[ \t]*+=[ \t]*+(?:"(?P<quoted>(?:[^"\\]|\\.)*+)"|(?P<plain>[^\s,"=]++)))?+
        |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


class Challenge(msgspec.Struct, frozen=True):
    """One accepted authentication scheme with its parameters."""

    scheme: str
    """In lower case."""
    parameters: dict[str, str] = {}
    """Names in lower case; the first of each name."""


def parse_challenges(headers: Iterable[str]) -> tuple[Challenge, ...]:
    """Return all challenges of a response, in order."""
    found: list[Challenge] = []
    for header in headers:
        for challenge in _in_header(header[:LONGEST]):
            if len(found) == MOST:
                return tuple(found)
            found.append(challenge)
    return tuple(found)


def _in_header(header: str) -> Iterator[Challenge]:
    current: Challenge | None = None
    for step in _STEP.finditer(header):
        word, quoted, plain = step.group("word", "quoted", "plain")
        if word is None:
            continue
        if quoted is None and plain is None:
            if current is not None:
                yield current
            current = Challenge(word.lower(), {})
        elif current is not None and len(current.parameters) < MOST:
            value = _ESCAPED.sub(r"\1", quoted) if quoted is not None else plain
            current.parameters.setdefault(word.lower(), value)
    if current is not None:
        yield current
