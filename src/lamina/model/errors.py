"""
The exceptions of Lamina. An exception means that the user or operator must act; an expected "no" is a return value.

    LaminaError
    ├── InputError        a file, flag or object that a user wrote is wrong; carries every mistake found
    └── WiringError       our own parts do not fit together; raised at start, never in a cycle

Packages that need a finer distinction derive their own from these two. ``exit_code`` separates errors of the input
from errors of the run.
"""

from collections.abc import Iterable
from typing import ClassVar

import msgspec


class Mistake(msgspec.Struct, frozen=True):
    """One mistake at one place of an input."""

    source: str
    """The file, flag or object with the mistake."""
    message: str
    """What is wrong and what to try."""
    path: str = ""
    """The field, as a user would write it: ``pods[2].requests.cpu``."""
    line: int = 0
    """1-based; 0 when the input has no lines."""

    def __str__(self) -> str:
        where = f"{self.source}:{self.line}" if self.line else self.source
        return f"{where}: {self.path}: {self.message}" if self.path else f"{where}: {self.message}"


class LaminaError(Exception):
    """Base class of all exceptions that Lamina raises."""

    exit_code: ClassVar[int] = 2
    """Exit code of a command that raises it: 2 for bad usage or input, 1 when the run itself found a problem."""


class InputError(LaminaError):
    """Input that cannot be used; ``mistakes`` lists everything that is wrong with it."""

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__(self.mistakes)

    @classmethod
    def one(cls, source: str, message: str, *, path: str = "", line: int = 0) -> "InputError":
        """Return an error with a single mistake."""
        return cls([Mistake(source=source, message=message, path=path, line=line)])

    def __str__(self) -> str:
        return "\n".join(str(mistake) for mistake in self.mistakes)


class WiringError(LaminaError):
    """A plugin, profile or service is configured or connected wrongly."""
