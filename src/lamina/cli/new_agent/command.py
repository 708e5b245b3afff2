"""``lamina new-agent``: create a package for your own scheduling agent, ready to install, test and deploy."""

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
    help="Folder in which to create NAME.  [default: the current folder]",
)
def new_agent(name: str, out: Path) -> None:
    """
    Create a folder NAME with a scheduling agent of that name.

    The package has a small predicate and priority, passing tests, the entry points by which Lamina finds it, a
    manifest, and a README with the next steps. NAME consists of lowercase letters, digits and dashes.
    """
    import shlex

    from lamina.cli.new_agent.folder import check_name, files, write

    check_name(name)
    folder = out / name
    written = files(name)
    write(folder, written)
    interruption.keep(folder)
    click.echo(f"{folder}: {plural(len(written), 'file')}. Next: cd {shlex.quote(str(folder))}, and follow README.md")
