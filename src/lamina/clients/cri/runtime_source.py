"""
Interface of all runtime sources.

    look      return the current holdings, or raise `RuntimeSourceError`
    changed   wait until another look is useful
    close     close connections to the runtime

Sources do not retry; the caller decides what a failure means.
"""

from pathlib import Path
from typing import Protocol

from lamina.model.errors import LaminaError
from lamina.model.holdings import Holdings


class RuntimeSourceError(LaminaError):
    """A runtime cannot be queried; *problem* is one line with the reason and what to try."""

    def __init__(self, runtime: str, problem: str) -> None:
        super().__init__(runtime, problem)
        self.runtime, self.problem = runtime, problem

    def __str__(self) -> str:
        return f"{self.runtime}: {self.problem}"


class RuntimeSource(Protocol):
    """A runtime whose images can be read."""

    place: Path
    """Its socket, or the folder of its files."""

    async def look(self) -> Holdings:
        """Return the current holdings. Raises `RuntimeSourceError`."""

    async def changed(self) -> None:
        """Return when something may have changed since the last look began; cancelling it is safe."""

    async def close(self) -> None:
        """Close connections to the runtime."""
