"""Result of one check: a verdict, one line of text, and what to do about it."""

from collections.abc import Iterable
from typing import Final, Literal

import msgspec

CheckVerdict = Literal["ok", "warn", "fix", "skip"]

WORST_FIRST: Final[tuple[CheckVerdict, ...]] = ("fix", "warn", "skip", "ok")


class Finding(msgspec.Struct, frozen=True):
    """Result of one check."""

    subject: str
    """What was checked, in one or two words."""
    verdict: CheckVerdict
    told: str
    """What the check found, on one line."""
    advice: str = ""
    """What to do; empty if there is nothing to do."""


def fine(subject: str, told: str) -> Finding:
    """Return a finding with the verdict ok."""
    return Finding(subject, "ok", told)


def warned(subject: str, told: str, advice: str) -> Finding:
    """Return a finding with the verdict warn: it works, but could be better."""
    return Finding(subject, "warn", told, advice)


def broken(subject: str, told: str, advice: str) -> Finding:
    """Return a finding with the verdict fix: it does not work."""
    return Finding(subject, "fix", told, advice)


def unseen(subject: str, told: str, advice: str = "") -> Finding:
    """Return a finding with the verdict skip: the check could not run, so the state is unknown."""
    return Finding(subject, "skip", told, advice)


def anything_broken(findings: Iterable[Finding]) -> bool:
    """Return whether any finding needs a fix."""
    return any(finding.verdict == "fix" for finding in findings)
