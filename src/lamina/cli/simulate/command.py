"""``lamina simulate``: run a scenario; write a trace, a summary and Batsim's tables."""

import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import click
import msgspec

from lamina.cli.options.cli_command import CliCommand
from lamina.cli.options.shared_options import output_option
from lamina.cli.options.standard_input import InputFile, OutputPath, ProfileName, is_copy, label
from lamina.cli.output import interruption

if TYPE_CHECKING:
    from lamina.cli.output.run_progress import RunProgress
    from lamina.cli.simulate.live_view import LiveView
    from lamina.simulator.run import Latency, SimulationResult
    from lamina.simulator.workloads import Scenario
    from lamina.trace.trace_writer import AtomicFile

EXAMPLES: Final = """\b
Examples:
  lamina simulate examples/founding/scenario.yaml
  lamina simulate examples/classic/scenario.yaml --profile kube-default --out /tmp/classic
  lamina simulate my.yaml --profile my-scheduler-config.yaml --seed 7 -o json
  lamina simulate examples/churn/scenario.yaml --live --latency 5ms --until 10m
  lamina simulate - --profile lamina-local < examples/founding/scenario.yaml
"""

TRACE: Final = "trace.jsonl.zst"
SUMMARY: Final = "summary.json"
JOBS: Final = "jobs.csv"
SCHEDULE: Final = "schedule.csv"


@click.command(cls=CliCommand, epilog=EXAMPLES)
@click.argument("scenario", type=InputFile())
@click.option(
    "--profile",
    type=ProfileName(),
    metavar="FILE|NAME",
    help="Scheduler configuration; default: the scenario's.",
)
@click.option(
    "--seed",
    default=0,
    show_default=True,
    help="Seed for choosing between nodes of equal score, and for random values of the scenario.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder with the files that the scenario imports; default: its own folder.",
)
@click.option(
    "--until",
    metavar="DURATION",
    help="Virtual time at which the run ends at the latest, such as 90s or 2h; overrides the scenario.",
)
@click.option(
    "--latency",
    default="free",
    show_default=True,
    metavar="free|measured|DURATION",
    help="Virtual time of a scheduling attempt: none, as measured on this machine, or a duration such as 5ms.",
)
@click.option(
    "--out",
    type=OutputPath(path_type=Path, file_okay=False),
    help=f"Folder for {TRACE}, {SUMMARY}, {JOBS} and {SCHEDULE}.",
)
@click.option("--live", is_flag=True, help="Show figures during the run, if standard error is a terminal.")
@click.option(
    "--live-always", is_flag=True, help="Show figures during the run even if standard error is not a terminal."
)
@click.option(
    "--detail",
    type=click.Choice(["brief", "full"]),
    default="brief",
    show_default=True,
    help="Detail of each decision in the trace: the two best nodes, or every node.",
)
@output_option("table", "json", "yaml")
@click.pass_context
def simulate(  # noqa: PLR0913, PLR0917 - one for each option
    ctx: click.Context,
    scenario: Path,
    profile: str | None,
    seed: int,
    data: Path | None,
    until: str | None,
    latency: str,
    out: Path | None,
    live: bool,
    live_always: bool,
    detail: Any,
    output: str,
) -> None:
    """Run SCENARIO (a YAML file) in virtual time under a scheduler profile."""
    from lamina.cli.options.scenario_profile import chosen_for
    from lamina.cli.output.out_folder import OutFolder
    from lamina.simulator.run import simulate as run
    from lamina.simulator.run import summary
    from lamina.simulator.workloads import load_scenario

    costs, end = _latency(latency), _until(until)
    if data is None and is_copy(ctx, scenario):
        data = Path()
    loaded = load_scenario(scenario, seed, data)
    for note in loaded.notes:
        click.echo(f"note: {note}", err=True)
    if end is not None:
        loaded = msgspec.structs.replace(loaded, until=end)
    chosen, config = chosen_for(loaded, scenario, profile)
    loaded = loaded.under(label(ctx, chosen))
    with OutFolder(out), _watching(loaded, live, live_always) as watching, _RunFiles(out) as files:
        result = run(
            loaded,
            config,
            seed=seed,
            detail=detail,
            trace=files.trace,
            observer=watching.observe,
            latency=costs,
        )
        figures = summary(result)
        files.fill(result, loaded, figures)
    placed = [one.pod for one in result.pods if one.started is not None]
    _print(figures, output, out, placed[-1] if placed else "")


class _RunFiles:
    """The files of a run: either all of them, after the run has ended, or none."""

    def __init__(self, path: Path | None) -> None:
        """Open the trace under a temporary name; None as *path* writes no files."""
        from lamina.trace.trace_writer import TraceWriter

        self._path = path
        self._drafts: list[AtomicFile] = []
        self.trace: TraceWriter | None = None
        if path is not None:
            self.trace = TraceWriter(path / TRACE)

    def fill(self, result: "SimulationResult", scenario: "Scenario", figures: dict[str, Any]) -> None:
        """Write all files, and only then give them their final names."""
        if self._path is None or self.trace is None:
            return
        from lamina.simulator.run.batsim_files import jobs_csv, schedule_csv
        from lamina.trace.trace_writer import AtomicFile

        files = {
            JOBS: jobs_csv(result, scenario),
            SCHEDULE: schedule_csv(result, scenario),
            SUMMARY: _json(figures),
        }
        for name, content in files.items():
            draft = AtomicFile(self._path / name)
            self._drafts.append(draft)
            draft.write(content)
        self.trace.close()
        interruption.keep(self._path / TRACE)
        while self._drafts:
            self._drafts[0].keep()
            interruption.keep(self._drafts[0].path)
            del self._drafts[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove incomplete files; a trace that was closed is complete."""
        if self.trace is not None:
            self.trace.discard()
        for draft in self._drafts:
            draft.discard()


def _json(figures: dict[str, Any]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(figures), indent=2) + b"\n"


def _latency(text: str) -> "Latency":
    from lamina.model.errors import InputError
    from lamina.simulator.run.latency import read_latency

    try:
        return read_latency(text, time.perf_counter)
    except ValueError as error:
        raise InputError.one("--latency", str(error)) from error


def _until(text: str | None) -> float | None:
    from lamina.model.duration import seconds
    from lamina.model.errors import InputError

    if text is None:
        return None
    try:
        return seconds(text)
    except ValueError as error:
        raise InputError.one("--until", str(error)) from error


def _watching(scenario: "Scenario", live: bool, always: bool) -> "LiveView | RunProgress":
    from rich.console import Console

    from lamina.cli.output.run_progress import RunProgress, is_interactive
    from lamina.cli.simulate.live_view import LiveView

    if always:
        return LiveView(Console(stderr=True, force_terminal=True))
    return LiveView(Console(stderr=True)) if live and is_interactive() else RunProgress(scenario)


def _print(figures: dict[str, Any], output: str, out: Path | None, pod: str) -> None:
    if output == "json":
        click.echo(_json(figures), nl=False)
    elif output == "yaml":
        click.echo(msgspec.yaml.encode(figures), nl=False)
    else:
        from lamina.cli.simulate.summary_text import print_summary

        print_summary(figures, out, pod)


def _make(folder: Path) -> None:
    from lamina.model.errors import InputError

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError.one("--out", f"{folder} cannot be created: {error.strerror}") from error
