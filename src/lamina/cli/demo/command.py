"""``lamina demo``: show three small clusters step by step; needs only Python."""

import os
import tempfile
from pathlib import Path
from typing import Final

import click

from lamina.cli.options.cli_command import CliCommand
from lamina.cli.options.standard_input import OutputPath

EXAMPLES: Final = """\b
Examples:
  lamina demo
  lamina demo | less
  lamina demo --report demo.html
"""


@click.command(cls=CliCommand, epilog=EXAMPLES)
@click.option("--seed", default=0, show_default=True, help="Seed for choosing between nodes of equal score.")
@click.option(
    "--report",
    type=OutputPath(path_type=Path, dir_okay=False),
    metavar="FILE.html",
    help="File of the report about the last part; default: a file in the temporary folder, which the demo names.",
)
def demo(seed: int, report: Path | None) -> None:
    """Show small clusters step by step: what each node holds, what it would pull, and why a node was chosen."""
    from lamina.cli.demo.tour import play
    from lamina.cli.report.report_file import report_path

    # A file for each user: another user's file in the shared folder cannot be replaced.
    play(seed, report_path(report, None) or Path(tempfile.gettempdir()) / f"lamina-demo-{os.getuid()}.html")
