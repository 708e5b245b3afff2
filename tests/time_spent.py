"""
Where the time of a run of the tests goes, by folder; tests/conftest.py registers it, and it speaks in CI only.

Seconds are those of the processes that ran the tests, added up: with two of them, half as many have passed. A test of
tests/integration that waits for a program costs its seconds as one does that computes.
"""

from collections import Counter, defaultdict
from pathlib import PurePosixPath
from typing import Final

import pytest

LINES: Final = 15


def folder(nodeid: str) -> str:
    """The folder whose time a test's is: two levels below tests/."""
    return "/".join(PurePosixPath(nodeid.partition("::")[0]).parent.parts[:3])


class TimeSpent:
    """Adds up what each phase of each test took."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.tests: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add one phase of a test."""
        where = folder(report.nodeid)
        self.seconds[where] += report.duration
        self.tests[where] += report.when == "setup"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the dearest folders, and the rest in a line."""
        rows = sorted(((seconds, self.tests[where], where) for where, seconds in self.seconds.items()), reverse=True)
        others = rows[LINES:]
        if others:
            rest = sum(seconds for seconds, _, _ in others), sum(tests for _, tests, _ in others), "elsewhere"
            rows = [*rows[:LINES], rest]
        terminalreporter.write_line("seconds  tests  where the time went")
        for seconds, tests, where in rows:
            terminalreporter.write_line(f"{seconds:7.0f}  {tests:5}  {where}")
