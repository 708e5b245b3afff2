"""``lamina version``: print the installed version."""

from typing import Final

import click

from lamina.cli.options.cli_command import CliCommand
from lamina.cli.options.shared_options import output_option, print_data

EXAMPLES: Final = """\b
Examples:
  lamina version
  lamina version -o json
"""


@click.command(cls=CliCommand, epilog=EXAMPLES)
@output_option("table", "json", "yaml")
def version(output: str) -> None:
    """Print the version of Lamina and of Python."""
    import platform
    from importlib import metadata

    installed = metadata.version("lamina")
    if output == "table":
        click.echo(f"lamina {installed}")
    else:
        told = {"lamina": installed, "python": platform.python_version(), "platform": platform.platform()}
        print_data(told, output)
