"""Prometheus servers for tests, and one control plane for those that annotate its nodes."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from testbed import MissingError, Testbed
from testbed.fixtures import do_without, started
from testbed.prometheus import NodeExporter, Prometheus
from tests.integration.usage.exporter import Exporter


@pytest.fixture
def starting() -> Iterator[Callable[..., Any]]:
    """Start a part, which is stopped at the end of the test; where it is missing, the test is skipped or fails."""
    with ExitStack() as stack:

        def start(part: Prometheus | NodeExporter | Exporter) -> Any:
            try:
                return stack.enter_context(part)
            except MissingError as error:
                do_without(error)

        yield start


@pytest.fixture(scope="package")
def own_plane() -> Iterator[Testbed]:
    with started() as bed:
        yield bed


@pytest.fixture
def bed(own_plane: Testbed) -> Testbed:
    """A cluster without nodes and pods, whatever the test before has done to it."""
    own_plane.api("DELETE", "/api/v1/namespaces/default/pods?gracePeriodSeconds=0")
    own_plane.api("DELETE", "/api/v1/nodes")
    return own_plane
