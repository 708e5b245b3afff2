"""``lamina profiles``: list the built-in profiles, or print one as a configuration to copy and change."""

from typing import Final

import click

from lamina.cli.options.cli_command import CliCommand
from lamina.cli.options.shared_options import output_option, print_data

EXAMPLES: Final = """\b
Examples:
  lamina profiles
  lamina profiles -o json
  lamina profiles lamina-balanced > my-scheduler-config.yaml
"""


@click.command(cls=CliCommand, epilog=EXAMPLES)
@click.argument("name", required=False)
@output_option("table", "json", "yaml")
def profiles(name: str | None, output: str) -> None:
    """List the profiles, or print the configuration of one NAME (YAML, or JSON with -o json)."""
    from lamina.model.conversion import suggest
    from lamina.model.errors import InputError
    from lamina.model.yaml_document import read_yaml
    from lamina.scheduling.config.named_profiles import DEFAULT, NAMED, current_name

    if name is None and output != "table":
        listed = [{"name": one, "about": about, "default": one == DEFAULT} for one, (about, _) in NAMED.items()]
        print_data(listed, output)
    elif name is None:
        width = max(len(one) for one in NAMED)
        for one, (about, _) in NAMED.items():
            click.echo(f"{one:<{width}}  {about}{' (default)' if one == DEFAULT else ''}")
    elif current_name(name) in NAMED:
        text = NAMED[current_name(name)][1]
        click.echo(text, nl=False) if output != "json" else print_data(read_yaml(text, name).data, output)
    else:
        raise InputError.one("lamina profiles", f"there is no profile {name!r}; {suggest(name, NAMED)}")
