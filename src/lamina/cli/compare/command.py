"""``lamina compare``: run one scenario under several profiles and seeds; print a table with confidence intervals."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from lamina.cli.options.cli_command import CliCommand
from lamina.cli.options.shared_options import output_option
from lamina.cli.options.standard_input import DASH, NAME, InputFile, OutputPath, copied, is_copy
from lamina.cli.output import interruption
from lamina.cli.report.report_file import report_option, report_path, write_report

if TYPE_CHECKING:
    from lamina.evaluation.comparison import ProfileComparison
    from lamina.model.errors import Mistake

EXAMPLES: Final = """\b
Examples:
  lamina compare examples/classic/scenario.yaml --profiles kube-default,image-locality,lamina-balanced
  lamina compare my.yaml --profiles kube-default,my-scheduler-config.yaml --seeds 20 --out /tmp/study
  lamina compare my.yaml --profiles lamina-balanced,kube-default --baseline kube-default -o csv
  lamina compare my.yaml --profiles kube-default,lamina-balanced --metrics not_started,evictions,startup_p99
  lamina compare my.yaml --profiles kube-default --schedulers kube-scheduler --runs 5
  lamina compare my.yaml --profiles kube-default,lamina-balanced --seeds 5 --report my.html
"""

RESULTS: Final = "results.jsonl"
COMPARISON: Final = "comparison.json"
MOST_SEEDS: Final = 10_000


class MetricsCommand(CliCommand):
    """A command whose help ends with the list of metrics."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the metrics with their units, then the examples."""
        from lamina.evaluation.run_metrics import METRICS

        with formatter.section("Metrics (* are rows of every table, + if they are not 0 or differ)"):
            marks = {"always": "*", "non-zero": "+", "differs": "+", "on request": ""}
            formatter.write_dl([(f"{one.name}{marks[one.shown]}", f"{one.title} ({one.label})") for one in METRICS])
        super().format_epilog(ctx, formatter)


@click.command(cls=MetricsCommand, epilog=EXAMPLES)
@click.argument("scenario", type=InputFile())
@click.option(
    "--profiles",
    multiple=True,
    metavar="FILE|NAME,...",
    help="Scheduler configurations, separated by commas; may be given more than once.",
)
@click.option(
    "--schedulers",
    multiple=True,
    metavar="NAME|COMMAND,...",
    help="Other schedulers, as for `simulate --scheduler`, separated by commas; may be given more than once.",
)
@click.option(
    "--seeds",
    "--runs",
    "seeds",
    type=click.IntRange(1, MOST_SEEDS),
    default=5,
    show_default=True,
    metavar="N",
    help="Run each profile and scheduler under the seeds 1 to N; intervals need at least two.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder with the files that the scenario imports; default: its own folder.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Runs in parallel; default: one per core. The result does not depend on it.",
)
@click.option("--baseline", metavar="FILE|NAME", help="Profile to compare the others with; default: the first one.")
@click.option(
    "--metrics",
    multiple=True,
    metavar="NAME,...",
    help="Rows to show, in this order, separated by commas; default: see the list below. JSON, YAML and CSV: all.",
)
@click.option(
    "--out",
    type=OutputPath(path_type=Path, file_okay=False, writable=True),
    help=f"Folder for {RESULTS} (a line per run) and {COMPARISON}.",
)
@report_option("figures, charts and the pods of the first seed")
@output_option("table", "json", "yaml", "csv")
@click.pass_context
def compare(  # noqa: PLR0913, PLR0917 - one for each option
    ctx: click.Context,
    scenario: Path,
    profiles: tuple[str, ...],
    schedulers: tuple[str, ...],
    seeds: int,
    data: Path | None,
    jobs: int | None,
    baseline: str | None,
    metrics: tuple[str, ...],
    out: Path | None,
    report: Path | None,
    output: str,
) -> None:
    """Run SCENARIO (a YAML file) under several profiles and seeds, and show which differences exceed chance."""
    from lamina.cli.compare import run_pool
    from lamina.cli.compare.comparison_notes import with_unproven, with_unsupported
    from lamina.cli.compare.comparison_table import shown_metrics
    from lamina.cli.output.out_folder import OutFolder
    from lamina.evaluation import comparison
    from lamina.evaluation.run_metrics import METRICS, chosen, class_metrics
    from lamina.model.errors import InputError
    from lamina.scheduling.config.named_profiles import current_name

    if data is None and is_copy(ctx, scenario):
        data = Path()
    listed = [current_name(name.strip()) for some in profiles for name in some.split(",")]
    # Show `stdin`, but read the copy of standard input.
    files = {NAME: str(copied(ctx))} if DASH in listed else {}
    names = [NAME if name == DASH else name for name in listed]
    foreign = [name.strip() for some in schedulers for name in some.split(",")]
    baseline = NAME if baseline == DASH else None if baseline is None else current_name(baseline)
    rows = [name.strip() for listed in metrics for name in listed.split(",")]
    mistakes = [
        *_wrong_scenario(scenario, data),
        *_wrong_profiles(names, files),
        *_wrong_schedulers(foreign, names),
        *_wrong_baseline(baseline, [*names, *foreign]),
        *_wrong_metrics(rows),
    ]
    if mistakes:
        raise InputError(mistakes)
    # Seed by seed, so that a process reuses the scenario it has just loaded.
    tasks = [
        run_pool.RunTask(scenario, name, seed, data, files.get(name, ""))
        for seed in range(1, seeds + 1)
        for name in names
    ]
    tasks += [
        run_pool.RunTask(scenario, name, seed, data, foreign=True) for seed in range(1, seeds + 1) for name in foreign
    ]
    page = report_path(report, out)
    if page is not None:
        tasks = run_pool.reported(tasks)
    # Create the folder before the runs: an unusable name is reported before hours of work.
    with OutFolder(out):
        with run_pool.RunPoolProgress(len(tasks)) as waiting:
            summaries = run_pool.run_all(tasks, jobs or run_pool.cores(), waiting.done)
        records = [one.pop(run_pool.RECORD) for one in summaries if run_pool.RECORD in one]
        runs = [comparison.Run(task.profile, task.seed, one) for task, one in zip(tasks, summaries, strict=True)]
        compared = comparison.compare(
            runs,
            baseline or tasks[0].profile,
            chosen(rows, "--metrics") if rows else (*METRICS, *class_metrics(summaries)),
        )
        compared = with_unproven(with_unsupported(compared), summaries)
        if out is not None:
            _write(out, summaries, compared)
        if page is not None:
            words = ["compare", str(scenario), *_options(names, foreign, compared)]
            write_report(page, words, records, compared, shown_metrics(compared, every_row=bool(rows)))
    _print(compared, output, out, every_row=bool(rows))


def _options(names: Sequence[str], foreign: Sequence[str], compared: "ProfileComparison") -> list[str]:
    """Return the options that repeat the comparison."""
    options = ["--profiles", ",".join(names)] if names else []
    options += ["--schedulers", ",".join(foreign)] if foreign else []
    return [*options, "--baseline", compared.baseline, "--seeds", str(len(compared.seeds))]


# -- checks before the runs ----------------------------------------------------------------------------------------------


def _wrong_scenario(scenario: Path, data: Path | None) -> Iterable["Mistake"]:
    from lamina.cli.compare.run_pool import scenario_for
    from lamina.model.errors import InputError

    try:
        scenario_for(scenario, 1, data)
    except InputError as error:
        return error.mistakes
    return ()


def _wrong_profiles(names: Sequence[str], files: Mapping[str, str]) -> Iterable["Mistake"]:
    from lamina.cli.options.scheduler_profile import configuration, warned
    from lamina.model.errors import InputError, Mistake

    for name in dict.fromkeys(names):
        if not name:
            yield Mistake("--profiles", "an empty name; write the profiles with one comma between them")
            continue
        if names.count(name) > 1:
            yield Mistake("--profiles", f"{name!r} is listed {names.count(name)} times; once is enough")
        try:
            warned(configuration(files.get(name, name)))
        except InputError as error:
            for one in error.mistakes:
                # All other commands have this option in the singular.
                yield msgspec.structs.replace(one, source="--profiles") if one.source == "--profile" else one


def _wrong_schedulers(names: Sequence[str], profiles: Sequence[str]) -> Iterable["Mistake"]:
    from lamina.apiserver.batsim.batsim_peer import batsim_peer, is_batsim
    from lamina.apiserver.foreign_run import ATTACH, chosen_scheduler
    from lamina.model.errors import InputError, Mistake

    if not names and not profiles:
        yield Mistake("--profiles", "nothing to compare; name profiles, or schedulers with --schedulers")
    for name in dict.fromkeys(names):
        if not name or name == ATTACH:
            what = "an empty name" if not name else f"{ATTACH} needs a person for each run"
            yield Mistake("--schedulers", f"{what}; write names or commands with one comma between them")
            continue
        if names.count(name) > 1 or name in profiles:
            yield Mistake("--schedulers", f"{name!r} is listed more than once; once is enough")
        try:
            if is_batsim(name):
                batsim_peer(name)
            else:
                chosen_scheduler(name)
        except InputError as error:
            for one in error.mistakes:
                yield msgspec.structs.replace(one, source="--schedulers")


def _wrong_baseline(baseline: str | None, names: Sequence[str]) -> Iterable["Mistake"]:
    from lamina.model.conversion import suggest
    from lamina.model.errors import Mistake

    if baseline is not None and baseline not in names:
        yield Mistake("--baseline", f"{baseline!r} is not among the profiles; {suggest(baseline, filter(None, names))}")


def _wrong_metrics(names: Sequence[str]) -> Iterable["Mistake"]:
    from lamina.evaluation.run_metrics import chosen
    from lamina.model.errors import InputError

    try:
        chosen(names, "--metrics")
    except InputError as error:
        return error.mistakes
    return ()


# -- output --------------------------------------------------------------------------------------------------------------


def _write(out: Path, summaries: Sequence[dict[str, Any]], compared: "ProfileComparison") -> None:
    from lamina.trace.trace_writer import atomic_write

    written = {
        RESULTS: b"".join(msgspec.json.encode(one) + b"\n" for one in summaries),
        COMPARISON: msgspec.json.format(msgspec.json.encode(compared), indent=2) + b"\n",
    }
    for name, content in written.items():
        atomic_write(out / name, content)
        interruption.keep(out / name)


def _print(compared: "ProfileComparison", output: str, out: Path | None, *, every_row: bool) -> None:
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(compared), indent=2))
    elif output == "yaml":
        click.echo(msgspec.yaml.encode(compared), nl=False)
    elif output == "csv":
        from lamina.cli.compare.comparison_table import as_csv

        click.echo(as_csv(compared), nl=False)
    else:
        from lamina.cli.compare.comparison_table import print_comparison

        print_comparison(compared, out, every_row=every_row)
