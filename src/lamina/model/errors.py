"""
The exceptions of Lamina. An exception means that someone must act; an expected "no" is a value.

    LaminaError
    ├── InputError        a file, flag or object a person wrote is wrong; carries every mistake found
    └── WiringError       our own parts do not fit together; raised at start, never in a cycle

Rooms that need a finer distinction derive their own from these two. An error that is no fault of the input, but of what
was run, says so by its ``exit_code``.
"""

from collections.abc import Iterable
from typing import ClassVar

import msgspec


class Mistake(msgspec.Struct, frozen=True):
    """One thing that is wrong with one place of an input."""

    source: str
    """The file (or flag, or object) it stands in."""
    message: str
    """What is wrong and what to try."""
    path: str = ""
    """The field, as a person would write it: ``pods[2].requests.cpu``."""
    line: int = 0
    """1-based; 0 when the input has no lines."""

    def __str__(self) -> str:
        where = f"{self.source}:{self.line}" if self.line else self.source
        return f"{where}: {self.path}: {self.message}" if self.path else f"{where}: {self.message}"


class LaminaError(Exception):
    """Root of everything Lamina raises on purpose."""

    exit_code: ClassVar[int] = 2
    """How a command ends that raises it: 2 for bad usage or input, 1 when the run itself found a problem."""


class InputError(LaminaError):
    """What somebody handed us cannot be used; ``mistakes`` lists all that is wrong with it."""

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__(self.mistakes)

    @classmethod
    def one(cls, source: str, message: str, *, path: str = "", line: int = 0) -> "InputError":
        """Say a single mistake."""
        return cls([Mistake(source=source, message=message, path=path, line=line)])

    def __str__(self) -> str:
        return "\n".join(str(mistake) for mistake in self.mistakes)


class WiringError(LaminaError):
    """A plugin, profile or service was put together wrongly."""
