"""The output console: colours and block characters on a terminal, plain text in a pipe."""

import io
import sys
from typing import Final, NoReturn

from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

PIPED_WIDTH: Final = 110
ROOMY: Final = 100


class Terminal(Console):
    """A console that raises on a closed pipe instead of ending the program."""

    def on_broken_pipe(self) -> NoReturn:
        """Raise BrokenPipeError: `lamina.cli.main` decides the exit code."""
        raise BrokenPipeError


def literal(text: object) -> str:
    """Return untrusted text (a name, a message) with markup escaped."""
    # Also remove terminal control characters: annotations and messages may come from any user of the cluster.
    return escape("".join(one if one.isprintable() or one == "\n" else "�" for one in str(text)))


class Screen:
    """A console and the characters to draw with."""

    def __init__(self, console: Console | None = None) -> None:
        """Draw on *console*, by default standard output."""
        self.console = console or _standard_output()
        self.is_terminal = self.console.is_terminal
        blocks = self.is_terminal and self.console.encoding.startswith("utf")
        self.full, self.empty = ("█", "░") if blocks else ("#", ".")
        self.times = "×" if blocks else "x"
        self.arrow, self.tick = ("→", "✔") if blocks else ("->", "*")
        self.rule_sign = "─" if blocks else "-"

    def bar(self, part: int, whole: int, width: int) -> str:
        """Draw the share *part* of *whole* as a bar of *width* characters."""
        filled = round(width * part / whole) if whole else 0
        if part and not filled:
            filled = 1
        return self.full * filled + self.empty * (width - filled)

    @property
    def narrow(self) -> bool:
        """Whether the screen has little more than the usual 80 columns."""
        return self.console.width < ROOMY

    def title(self, text: str) -> None:
        """Print a chapter title."""
        self.console.print()
        self.console.rule(f"[bold]{text}[/bold]", align="left", characters=self.rule_sign)

    def width_of(self, table: Table) -> int:
        """Return the columns a table takes if none of its lines is broken, whatever the screen's width."""
        # Measured without an upper bound: with one, every table would fit.
        return Measurement.get(self.console, self.console.options.update(max_width=10_000), table).maximum

    def say(self, text: str = "") -> None:
        """Print a line or paragraph."""
        self.console.print(text)

    def say_command(self, text: str) -> None:
        """Print a command on one line, whatever the terminal's width: a broken command cannot be pasted."""
        self.console.print(literal(text), soft_wrap=True)


def _standard_output() -> Console:
    if sys.stdout is None:
        return Console(file=io.StringIO())
    if sys.stdout.isatty():
        return Terminal(highlight=False)
    return Terminal(highlight=False, no_color=True, width=PIPED_WIDTH, force_terminal=False)
