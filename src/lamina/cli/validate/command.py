"""``lamina validate``: check the files that Lamina reads."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from lamina.cli.options.cli_command import CliCommand
from lamina.cli.options.shared_options import output_option, print_data
from lamina.cli.options.standard_input import InputFile, is_copy, label

if TYPE_CHECKING:
    from lamina.cli.validate.file_kinds import FileKind
    from lamina.model.errors import Mistake

EXAMPLES: Final = """\b
Examples:
  lamina validate examples/founding/scenario.yaml
  lamina validate scenario.yaml my-scheduler-config.yaml images.jsonl.zst
  lamina profiles lamina-balanced | lamina validate -
  lamina validate --kind registries registries.yaml -o json

Prints one line for each file with its kind and `ok`, or one line for each mistake: FILE:LINE: what is wrong; what to try.
Exit code 1: a file has a mistake. It checks the files only, and contacts no cluster and no registry.
"""

# Not imported from `file_kinds`, which would import every reader to print a help text; a test compares the two.
KINDS: Final = (
    "scenario",
    "scheduler",
    "extender",
    "usage",
    "registries",
    "docker-config",
    "kubeconfig",
    "catalog",
    "trace",
    "recording",
    "images",
    "swf",
    "kube-scheduler-simulator",
)


@click.command(cls=CliCommand, epilog=EXAMPLES)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=InputFile())
@click.option("--kind", type=click.Choice(KINDS), help="Kind of the files; default: recognized by their content.")
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder with the files that scenarios import; default: the folder of each scenario.",
)
@output_option("table", "json", "yaml")
@click.pass_context
def validate(
    ctx: click.Context, files: tuple[Path, ...], kind: "FileKind | None", data: Path | None, output: str
) -> None:
    """Check each FILE (- for standard input) that Lamina reads, and report every mistake with its line."""
    from lamina.cli.output.progress_bar import with_progress
    from lamina.cli.validate.file_kinds import check, recognize
    from lamina.model.errors import InputError

    results = []
    for path in with_progress(files, len(files), "files"):
        name = label(ctx, str(path))
        found = kind
        mistakes: Sequence[Mistake] = ()
        try:
            found = kind or recognize(path)
            check(found, path, Path() if data is None and is_copy(ctx, path) else data)
        except InputError as error:
            mistakes = error.mistakes
        lines = [str(one).replace(str(path), name) for one in mistakes]
        results.append({"file": name, "kind": found, "ok": not mistakes, "mistakes": lines})
        if output == "table":
            _show(name, found, lines)
    if output != "table":
        print_data(results, output)
    ctx.exit(0 if all(one["ok"] for one in results) else 1)


def _show(name: str, kind: "FileKind | None", mistakes: Sequence[str]) -> None:
    if not mistakes:
        click.echo(f"{name}: {kind}: ok")
    for line in mistakes:
        click.echo(line)
