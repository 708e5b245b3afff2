"""``lamina evaluate``: run a designed study; write its results, a digest and a report."""

from pathlib import Path
from typing import Final

import click

from lamina.cli.options.cli_command import CliCommand
from lamina.cli.options.standard_input import OutputPath

EXAMPLES: Final = """\b
Examples:
  lamina evaluate examples/churn/study.yaml --out /tmp/study
  lamina evaluate examples/churn/study.yaml --out /tmp/study --jobs 4   # continues a study that was interrupted
"""


@click.command(cls=CliCommand, epilog=EXAMPLES)
@click.argument("study", type=click.Path(path_type=Path))
@click.option(
    "--out",
    required=True,
    type=OutputPath(path_type=Path, file_okay=False, writable=True),
    help="Folder for the results; finished runs in it are not repeated.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Runs in parallel; default: one per core. The result does not depend on it.",
)
def evaluate(study: Path, out: Path, jobs: int | None) -> None:
    """Run STUDY (a YAML file: scenario, profiles, seeds, factors); write CSV, JSON, Markdown and an HTML report."""
    from lamina.cli.compare import run_pool
    from lamina.cli.evaluate.study_folder import StudyFolder
    from lamina.cli.output.out_folder import OutFolder
    from lamina.model.plain import plural

    with OutFolder(out):
        folder = StudyFolder(study, out)
        waiting = folder.unfinished()
        total = len(folder.tasks)
        if len(waiting) < total:
            click.echo(f"{total - len(waiting)} of {plural(total, 'run')} are in {out} already", err=True)
        with run_pool.RunPoolProgress(len(waiting)) as progress:
            run_pool.run_all(waiting, jobs or run_pool.cores(), progress.done)
        results = folder.write_results()
    click.echo(results, nl=False)
    click.echo(f"\nresults, digest and report are in {out}")
