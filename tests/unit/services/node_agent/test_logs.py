"""How much an agent says."""

import io
import logging
from collections.abc import Iterator

import pytest

from lamina.services.log_lines import Verbosity
from lamina.services.node_agent import logs


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    """Leave logging as it was found."""
    root = logging.getLogger("lamina")
    before = root.handlers[:], root.propagate, root.level, Verbosity.level
    yield
    root.handlers[:], root.propagate, Verbosity.level = before[0], before[1], before[3]
    root.setLevel(before[2])


def test_verbosity_says_how_much():
    logs.set_up(logs.REPORTS, "text", io.StringIO())

    assert [True, False, False] == [logs.verbose(level) for level in (logs.REPORTS, logs.IMAGES, logs.LOOKS)]
