"""``lamina demo``: show three small clusters step by step; needs only Python."""

from typing import Final

import click

from lamina.cli.options.cli_command import CliCommand

EXAMPLES: Final = """\b
Examples:
  lamina demo
  lamina demo | less
"""


@click.command(cls=CliCommand, epilog=EXAMPLES)
@click.option("--seed", default=0, show_default=True, help="Seed for choosing between nodes of equal score.")
def demo(seed: int) -> None:
    """Show small clusters step by step: what each node holds, what it would pull, and why a node was chosen."""
    from lamina.cli.demo.tour import play

    play(seed)
