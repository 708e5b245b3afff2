"""Waiting for what another process does in its own time."""

import time
from collections.abc import Callable
from typing import Final, TypeVar

Found = TypeVar("Found")

PATIENCE: Final = 60.0


def eventually(look: Callable[[], Found], within: float = PATIENCE) -> Found:
    """What *look* answers as soon as it is something; a test that waits in vain fails here."""
    deadline = time.monotonic() + within
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline, f"nothing after {within:.0f} s"
        time.sleep(0.05)
