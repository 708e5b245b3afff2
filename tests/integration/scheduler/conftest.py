"""One control plane for all tests of the live scheduler, emptied between them: starting one takes longer than most."""

from collections.abc import Iterator

import pytest

from testbed import Testbed
from testbed.fixtures import started


@pytest.fixture(scope="package")
def own_plane() -> Iterator[Testbed]:
    with started() as bed:
        yield bed


@pytest.fixture
def bed(own_plane: Testbed) -> Testbed:
    """A cluster without nodes and pods, whatever the test before has done to it."""
    server = own_plane.parts["kube-apiserver"]
    if not server.running:
        server.start()
    own_plane.api("DELETE", "/api/v1/namespaces/default/pods?gracePeriodSeconds=0")
    own_plane.api("DELETE", "/api/v1/nodes")
    own_plane.kubectl("delete", "leases,secrets", "--all", "-n", "lamina-system", "--ignore-not-found")
    return own_plane
