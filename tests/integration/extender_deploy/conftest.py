"""A control plane with what an extender and its scheduler need."""

import pytest

from testbed import Testbed
from tests.integration.extender_deploy.processes import install


@pytest.fixture(scope="session")
def cluster(control_plane: Testbed) -> Testbed:
    """The shared control plane, with accounts, roles and kinds."""
    install(control_plane)
    return control_plane
