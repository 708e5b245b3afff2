"""``lamina new-agent``: a package folder for a scheduling agent of one's own, ready to install, test and deploy."""

from pathlib import Path
from typing import Final

import click

from lamina.cli.options.cli_command import CliCommand
from lamina.cli.options.standard_input import OutputPath
from lamina.cli.output import interruption
from lamina.model.plain import plural

EXAMPLES: Final = """\b
Examples:
  lamina new-agent quiet-nodes
  lamina new-agent quiet-nodes --out ~/projects
  cd quiet-nodes && pip install -e '.[dev]' && pytest && lamina extender --agents quiet-nodes --state body
"""


@click.command("new-agent", cls=CliCommand, epilog=EXAMPLES)
@click.argument("name")
@click.option(
    "--out",
    type=OutputPath(path_type=Path),
    default=Path(),
    metavar="DIR",
    help="Where to put the folder NAME.  [default: here]",
)
def new_agent(name: str, out: Path) -> None:
    """
    Write a folder NAME with a scheduling agent of that name.

    It has a predicate and a priority that do something small, tests that pass, entry points by which Lamina finds it, a
    manifest, and a README with the steps from there. NAME has small letters, digits and dashes.
    """
    import shlex

    from lamina.cli.new_agent.folder import check_name, files, write

    check_name(name)
    folder = out / name
    written = files(name)
    write(folder, written)
    interruption.keep(folder)
    click.echo(f"{folder}: {plural(len(written), 'file')}. Next: cd {shlex.quote(str(folder))}, and follow README.md")
