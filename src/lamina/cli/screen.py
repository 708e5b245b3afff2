"""What is printed, and how: colours and blocks on a terminal, plain text in a pipe."""

import sys
from typing import Final

from rich.console import Console

PIPED_WIDTH: Final = 110


class Screen:
    """Where output goes, and the signs it is drawn with."""

    def __init__(self, console: Console | None = None) -> None:
        """Draw on *console*, or on standard output as it is found."""
        self.console = console or _standard_output()
        self.is_terminal = self.console.is_terminal
        blocks = self.is_terminal and self.console.encoding.startswith("utf")
        self.full, self.empty = ("█", "░") if blocks else ("#", ".")
        self.times = "×" if blocks else "x"
        self.arrow, self.tick = ("→", "✔") if blocks else ("->", "*")
        self.rule_sign = "─" if blocks else "-"

    def bar(self, part: int, whole: int, width: int) -> str:
        """Draw a share of a whole."""
        filled = round(width * part / whole) if whole else 0
        if part and not filled:
            filled = 1
        return self.full * filled + self.empty * (width - filled)

    def title(self, text: str) -> None:
        """Begin a chapter."""
        self.console.print()
        self.console.rule(f"[bold]{text}[/bold]", align="left", characters=self.rule_sign)

    def say(self, text: str = "") -> None:
        """Print a line or paragraph."""
        self.console.print(text)


def _standard_output() -> Console:
    if sys.stdout.isatty():
        return Console(highlight=False)
    return Console(highlight=False, no_color=True, width=PIPED_WIDTH, force_terminal=False)
