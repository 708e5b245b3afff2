"""A client of a real API server, and a namespace for each test."""

import itertools
from collections.abc import AsyncIterator, Iterator

import pytest

from lamina.clients.kube.access import load_access
from lamina.clients.kube.transport import KubeClient

_NUMBERS = itertools.count()


@pytest.fixture
async def client(control_plane) -> AsyncIterator[KubeClient]:
    """An administrator."""
    client = KubeClient(load_access(control_plane.admin))
    yield client
    await client.close()


@pytest.fixture
def namespace(control_plane) -> Iterator[str]:
    """A namespace of the test's own."""
    name = f"access-{next(_NUMBERS)}"
    control_plane.api("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    yield name
    control_plane.api("DELETE", f"/api/v1/namespaces/{name}")
