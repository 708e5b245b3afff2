"""``lamina demo``: three small clusters, step by step; nothing but Python needed."""

from typing import Final

import click

EXAMPLES: Final = """\b
Examples:
  lamina demo
  lamina demo | less
"""


@click.command(epilog=EXAMPLES)
@click.option("--seed", default=0, show_default=True, help="Decides between nodes of equal score.")
def demo(seed: int) -> None:
    """Play three small stories, with what each node holds, what it would have to pull and why the choice fell."""
    from lamina.cli.demo.tour import play

    play(seed)
