"""
Pytest fixture with a test cluster.

Write in your ``conftest.py``:

    pytest_plugins = ["lamina.testing.pytest_plugin"]
"""

from collections.abc import Iterator

import pytest

from lamina.testing.api_cluster import ApiCluster, apiserver


@pytest.fixture
def lamina_cluster() -> Iterator[ApiCluster]:
    """Serve a cluster of three equal nodes to one test; its clock moves only when the test says so."""
    with apiserver() as cluster:
        yield cluster
