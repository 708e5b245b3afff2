"""
Control planes for tests: a pytest plugin.

- `control_plane`: one for the whole session, with etcd and an API server. Tests share it, so each uses its own namespace
  and names, and stops nothing.
- `bed_factory`: starts a testbed of any kind for one test, which may change or stop it freely.
- `registry_server`: an image registry for the whole session; each test uses its own repositories.
- `containerd_factory`: a container runtime without a control plane for one test; `version="debian"` is the installed one.
- `@pytest.mark.testbed("kube-scheduler", version="1.33.13")`: what a test starts besides etcd and API server. The plugin
  builds it before the first test, because a build takes longer than a test's time limit. Without a part of Kubernetes,
  as in `testbed("containerd", "registry")`, or with `alone=True`, it is all that the test starts.

If a part cannot be built because something is not installed, the test is skipped with the reason; in CI it fails. A
test that needs root is skipped in CI, too.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext, suppress
from typing import Any, Final, NoReturn

import pytest

from testbed import building
from testbed import parts as catalog
from testbed.bed import SMALLEST, Testbed
from testbed.errors import MissingError, RootError, TestbedError
from testbed.registry_server import RegistryServer
from testbed.runtimes import Containerd

IN_CI: Final = os.environ.get("CI", "").lower() in {"true", "1"}
FIXTURES: Final = frozenset({"control_plane", "bed_factory"})
ALONE: Final = {"registry_server": "registry", "containerd_factory": "containerd"}
"""Fixtures that need no control plane, and the part each starts."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        "testbed(*parts, version=..., alone=...): what a test starts besides etcd and kube-apiserver; built beforehand.",
    )


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what the selected tests start. A failure is reported again, with its reason, by the tests themselves."""
    if session.config.option.collectonly:
        return
    missing = dict.fromkeys(part for item in session.items for part in wanted(item) if not building.is_built(part))
    capture = session.config.pluginmanager.getplugin("capturemanager")
    # Building may take minutes: show its output.
    with capture.global_and_fixture_disabled() if capture else nullcontext():
        for part in missing:
            with suppress(TestbedError):
                building.programs(part)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose parts are not available."""
    for part in wanted(item):
        try:
            building.programs(part)
        except MissingError as error:
            do_without(error)


def wanted(item: pytest.Item) -> list[catalog.Part]:
    """Return the parts that a test starts."""
    names: list[tuple[str, str]] = []
    if FIXTURES.intersection(getattr(item, "fixturenames", ())):
        names += [(name, catalog.KUBERNETES) for name in (*SMALLEST, "kubectl")]
    names += [(part, catalog.KUBERNETES) for name, part in ALONE.items() if name in getattr(item, "fixturenames", ())]
    for mark in item.iter_markers("testbed"):
        version = mark.kwargs.get("version", catalog.KUBERNETES)
        of_kubernetes = not mark.args or any(catalog.find(name, version).is_kubernetes for name in mark.args)
        alone = mark.kwargs.get("alone", not of_kubernetes)
        names += [(name, version) for name in (*(() if alone else SMALLEST), *mark.args)]
    return [catalog.find(name, version) for name, version in dict.fromkeys(names)]


def do_without(error: MissingError) -> NoReturn:
    """Skip the test; in CI, where everything should be installed, fail it."""
    if IN_CI and not isinstance(error, RootError):
        pytest.fail(f"{error}; CI must have it", pytrace=False)
    pytest.skip(str(error))


def started(**keywords: Any) -> Testbed:
    """Call `Testbed.start` for a fixture; a missing part skips the test, or fails it in CI."""
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
    """Return `Testbed.start`; all testbeds are stopped at the end of the test."""
    with ExitStack() as stack:
        yield lambda **keywords: stack.enter_context(started(**keywords))


@pytest.fixture(scope="session")
def registry_server() -> Iterator[RegistryServer]:
    """An image registry, shared by all tests of the session."""
    with ExitStack() as stack:
        try:
            server = stack.enter_context(RegistryServer())
        except MissingError as error:
            do_without(error)
        yield server


@pytest.fixture
def containerd_factory() -> Iterator[Callable[..., Containerd]]:
    """Return a function that starts a `Containerd`; all are stopped at the end of the test."""
    with ExitStack() as stack:

        def start(**keywords: Any) -> Containerd:
            try:
                return stack.enter_context(Containerd(**keywords))
            except MissingError as error:
                do_without(error)

        yield start
