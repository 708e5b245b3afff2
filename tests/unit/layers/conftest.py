"""What several tests of the inventory begin with."""

import pytest

from lamina.layers.inventory import Inventory
from tests.unit.layers.shelf import APP, BIG, OS, TOOL


@pytest.fixture
def inventory():
    """Images are known, NEW is not; a node has row 4."""
    made = Inventory()
    made.learn([OS, APP, TOOL, BIG])
    made.join("n1", "uid-1", 4)
    return made
