"""
What every way of looking at a runtime has in common.

    look      what there is now, or `RuntimeSourceError`
    changed   waits until looking again may be worth it
    close     lets go of the runtime

Nobody here tries again: who asks decides what a failure means.
"""

from pathlib import Path
from typing import Protocol

from lamina.model.errors import LaminaError
from lamina.model.holdings import Holdings


class RuntimeSourceError(LaminaError):
    """A runtime that cannot be asked; *problem* is one line that says why and what to try."""

    def __init__(self, runtime: str, problem: str) -> None:
        super().__init__(runtime, problem)
        self.runtime, self.problem = runtime, problem

    def __str__(self) -> str:
        return f"{self.runtime}: {self.problem}"


class RuntimeSource(Protocol):
    """A runtime that can be looked at."""

    place: Path
    """Its socket, or the folder of its files."""

    async def look(self) -> Holdings:
        """Look at everything; raises `RuntimeSourceError`."""

    async def changed(self) -> None:
        """Return when something may have changed since the last look began; it may be cancelled and asked again."""

    async def close(self) -> None:
        """Let go of the runtime."""
