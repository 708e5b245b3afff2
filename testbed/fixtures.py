"""
Control planes for tests: a pytest plugin.

- `control_plane`: one for the whole session, with etcd and an API server. Tests share it, so each keeps to a namespace
  and to names of its own, and breaks nothing.
- `bed_factory`: starts a testbed of any make for one test, which may do to it what it likes.
- `@pytest.mark.testbed("kube-scheduler", version="1.33.13")`: what a test starts besides etcd and API server. It is
  built before the first test runs, because a build takes longer than a test may.

Where a part cannot be built because something is not installed, the test is skipped and says what; in CI it fails.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext, suppress
from typing import Any, Final, NoReturn

import pytest

from testbed import building
from testbed import parts as catalogue
from testbed.bed import SMALLEST, Testbed
from testbed.errors import MissingError, TestbedError

IN_CI: Final = os.environ.get("CI", "").lower() in {"true", "1"}
FIXTURES: Final = frozenset({"control_plane", "bed_factory"})


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers", "testbed(*parts, version=...): what a test starts besides etcd and kube-apiserver; built beforehand."
    )


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what the chosen tests will start. What fails here fails again, with its reason, in the tests themselves."""
    if session.config.option.collectonly:
        return
    missing = dict.fromkeys(part for item in session.items for part in wanted(item) if not building.is_built(part))
    capture = session.config.pluginmanager.getplugin("capturemanager")
    # Minutes may pass; whoever waits wants to read why.
    with capture.global_and_fixture_disabled() if capture else nullcontext():
        for part in missing:
            with suppress(TestbedError):
                building.programs(part)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose parts cannot be had."""
    for part in wanted(item):
        try:
            building.programs(part)
        except MissingError as error:
            do_without(error)


def wanted(item: pytest.Item) -> list[catalogue.Part]:
    """What a test starts."""
    names: list[tuple[str, str]] = []
    if FIXTURES.intersection(getattr(item, "fixturenames", ())):
        names += [(name, catalogue.KUBERNETES) for name in (*SMALLEST, "kubectl")]
    for mark in item.iter_markers("testbed"):
        version = mark.kwargs.get("version", catalogue.KUBERNETES)
        names += [(name, version) for name in (*SMALLEST, *mark.args)]
    return [catalogue.find(name, version) for name, version in dict.fromkeys(names)]


def do_without(error: MissingError) -> NoReturn:
    """Skip the test; where things are to be installed, fail it."""
    if IN_CI:
        pytest.fail(f"{error}; CI has to have it", pytrace=False)
    pytest.skip(str(error))


def started(**keywords: Any) -> Testbed:
    """`Testbed.start` for fixtures: what is missing skips the test, or fails it."""
    try:
        return Testbed.start(**keywords)
    except MissingError as error:
        do_without(error)


@pytest.fixture(scope="session")
def control_plane() -> Iterator[Testbed]:
    """An API server on etcd, shared by all tests of the session."""
    with started() as bed:
        yield bed


@pytest.fixture
def bed_factory() -> Iterator[Callable[..., Testbed]]:
    """`Testbed.start` with its keywords; everything is stopped at the end of the test."""
    with ExitStack() as stack:
        yield lambda **keywords: stack.enter_context(started(**keywords))
