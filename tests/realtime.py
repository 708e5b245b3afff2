"""
A second look at tests that need real time; tests/conftest.py registers it, scripts/run_tests.py asks for it.

A test that waits for a real program can fail because the machine was busy. It says so with `@pytest.mark.realtime`. When CI
runs the tests, the first run writes down which tests failed and which of them carry the marker; scripts/run_tests.py reads
that, and runs those with the marker once more in a second pytest, one after the other and with nothing beside them. Both
runs use this plugin:

    first run     FAILED_TO names a file: what failed is written to it
    second run    SECOND_LOOK is set: each test that passes now is printed as `FLAKY <nodeid>`

A test that is merely skipped the second time has not passed: the second run fails then. Without these variables, which is
how a person runs the tests, the plugin does nothing.
"""

import json
import os
from collections.abc import Generator, MutableMapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

MARKER: Final = "realtime"
FAILED_TO: Final = "LAMINA_FAILED_TO"
"""Environment variable: the file that the first run writes."""
SECOND_LOOK: Final = "LAMINA_SECOND_LOOK"
"""Environment variable: a second run is under way."""
MOST_FLAKY: Final = 2
"""More tests than this that fail at first are a fault of the tests, or of what they test."""


@dataclass
class Failed:
    """What failed in a run, each test once."""

    realtime: list[str] = field(default_factory=list)
    """Tests with the marker."""
    others: list[str] = field(default_factory=list)
    """Tests without it, modules that could not be collected, and tests whose worker process died."""

    @property
    def deserves_second_look(self) -> bool:
        """Whether a second run can still make CI pass."""
        return not self.others and 0 < len(self.realtime) <= MOST_FLAKY


def read(path: Path) -> Failed | None:
    """What the first run wrote; None when it did not come to that."""
    if not path.is_file():
        return None
    return Failed(**json.loads(path.read_text(encoding="utf-8")))


def register(config: pytest.Config, environment: MutableMapping[str, str] = os.environ) -> None:
    """Let the plugin take part in a run, as far as the environment asks for it."""
    config.pluginmanager.register(Marking(), "realtime marking")
    # Taken out, because they are not meant for a pytest that a test runs, nor for worker processes: reports reach the
    # process that hands out the tests, and it draws the conclusions.
    failed_to, second_look = environment.pop(FAILED_TO, ""), environment.pop(SECOND_LOOK, "")
    if failed_to:
        config.pluginmanager.register(FirstLook(Path(failed_to)), "realtime first look")
    if second_look:
        config.pluginmanager.register(SecondLook(), "realtime second look")


class Marking:
    """Notes on each report whether its test carries the marker; the note travels with the report between processes."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Note it."""
        report = yield
        report.realtime = item.get_closest_marker(MARKER) is not None
        return report


class FirstLook:
    """Writes down what failed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failed = Failed()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test that failed, in whichever of its phases."""
        if report.failed:
            self._note(report.nodeid, getattr(report, "realtime", False))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a module that could not be read."""
        if report.failed:
            self._note(report.nodeid, False)

    def _note(self, nodeid: str, realtime: bool) -> None:
        among = self.failed.realtime if realtime else self.failed.others
        if nodeid not in among:
            among.append(nodeid)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what happens next."""
        if self.failed.deserves_second_look:
            terminalreporter.write_line(f"a second look at what needs real time: {', '.join(self.failed.realtime)}")
        elif not self.failed.others and self.failed.realtime:
            terminalreporter.write_line(
                f"{len(self.failed.realtime)} tests marked {MARKER} failed, more than {MOST_FLAKY}: no second look"
            )

    def pytest_sessionfinish(self) -> None:
        """Write the file."""
        self.path.write_text(json.dumps(asdict(self.failed)), encoding="utf-8")


class SecondLook:
    """Tells flaky tests from broken ones."""

    def __init__(self) -> None:
        self.passed: list[str] = []
        self.bad: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what became of a test; being skipped is no success."""
        if not report.passed:
            self.bad.append(report.nodeid)
        elif report.when == "call":
            self.passed.append(report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail when a test did not pass, even if it did not fail either."""
        if self.bad and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the flaky ones."""
        for nodeid in self.passed:
            if nodeid not in self.bad:
                terminalreporter.write_line(f"FLAKY {nodeid}")
