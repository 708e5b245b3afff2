"""What a look at an installation finds: one line each, and what to do about it."""

from collections.abc import Iterable
from typing import Final, Literal

import msgspec

CheckVerdict = Literal["ok", "warn", "fix", "skip"]

WORST_FIRST: Final[tuple[CheckVerdict, ...]] = ("fix", "warn", "skip", "ok")


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at."""

    subject: str
    """What it is about, in a word or two."""
    verdict: CheckVerdict
    told: str
    """What was found, on one line."""
    advice: str = ""
    """What to do; empty where there is nothing to do."""


def fine(subject: str, told: str) -> Finding:
    """All is well."""
    return Finding(subject, "ok", told)


def warned(subject: str, told: str, advice: str) -> Finding:
    """It works, and could be better."""
    return Finding(subject, "warn", told, advice)


def broken(subject: str, told: str, advice: str) -> Finding:
    """It does not work like this."""
    return Finding(subject, "fix", told, advice)


def unseen(subject: str, told: str, advice: str = "") -> Finding:
    """It could not be looked at from here, which says nothing about it."""
    return Finding(subject, "skip", told, advice)


def anything_broken(findings: Iterable[Finding]) -> bool:
    """Whether something has to be done."""
    return any(finding.verdict == "fix" for finding in findings)
