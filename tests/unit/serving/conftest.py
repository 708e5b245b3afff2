"""What tests of the server are given."""

import pytest

from tests.unit.serving.papers import Files


@pytest.fixture
def files(tmp_path) -> Files:
    """Certificates of our authority, which the server trusts."""
    return Files(tmp_path)
