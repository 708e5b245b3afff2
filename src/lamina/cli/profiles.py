"""``lamina profiles``: what comes with Lamina, as configurations to copy and change."""

from typing import Final

import click

EXAMPLES: Final = """\b
Examples:
  lamina profiles
  lamina profiles lamina-balanced > my-scheduler-config.yaml
"""


@click.command(epilog=EXAMPLES)
@click.argument("name", required=False)
def profiles(name: str | None) -> None:
    """List the profiles, or print the configuration of one NAME."""
    from lamina.model.conversion import suggest
    from lamina.model.errors import InputError
    from lamina.scheduling.config.named_profiles import DEFAULT, NAMED

    if name is None:
        width = max(len(one) for one in NAMED)
        for one, (about, _) in NAMED.items():
            click.echo(f"{one:<{width}}  {about}{' (default)' if one == DEFAULT else ''}")
    elif name in NAMED:
        click.echo(NAMED[name][1], nl=False)
    else:
        raise InputError.one("lamina profiles", f"there is no profile {name!r}: {suggest(name, NAMED)}")
