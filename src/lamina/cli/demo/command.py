"""``lamina demo``: three small clusters, step by step; nothing but Python needed."""

from typing import Final

import click

from lamina.cli.options.cli_command import CliCommand

EXAMPLES: Final = """\b
Examples:
  lamina demo
  lamina demo | less
"""


@click.command(cls=CliCommand, epilog=EXAMPLES)
@click.option("--seed", default=0, show_default=True, help="Decides between nodes of equal score.")
def demo(seed: int) -> None:
    """Play three small stories, with what each node holds, what it would have to pull and why the choice fell."""
    from lamina.cli.demo.tour import play

    play(seed)
