"""``lamina simulate``: run a scenario; write a trace, a summary and Batsim's tables."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from lamina.cli.options.cli_command import CliCommand
from lamina.cli.options.shared_options import output_option
from lamina.cli.options.standard_input import InputFile, OutputPath, ProfileName, is_copy, label
from lamina.cli.report.report_file import report_option, report_path
from lamina.cli.simulate.result_names import JOBS, MACHINES, SCHEDULE, SUMMARY, TRACE

if TYPE_CHECKING:
    from lamina.cli.output.run_progress import RunProgress
    from lamina.cli.simulate.foreign_options import ForeignChoice
    from lamina.cli.simulate.live_view import LiveView
    from lamina.cli.simulate.run_report import RunReport
    from lamina.simulator.run import Latency, SimulationResult
    from lamina.simulator.workloads import Scenario

EXAMPLES: Final = """\b
Examples:
  lamina simulate examples/founding/scenario.yaml
  lamina simulate examples/classic/scenario.yaml --profile kube-default --out /tmp/classic
  lamina simulate my.yaml --profile my-scheduler-config.yaml --seed 7 -o json
  lamina simulate examples/churn/scenario.yaml --live --latency 5ms --until 10m
  lamina simulate examples/churn/scenario.yaml --report churn.html
  lamina simulate - --profile lamina-local < examples/founding/scenario.yaml
  lamina simulate my.yaml --scheduler kube-scheduler --decisions my.decisions --out /tmp/kube
  lamina simulate my.yaml --replay my.decisions --out /tmp/again
  lamina simulate my.yaml --scheduler "./my-scheduler --kubeconfig {kubeconfig}" --settle silence=500ms
  lamina simulate my.yaml --scheduler attach
  lamina simulate my.yaml --scheduler "batsim:pybatsim easyBackfill" --batsim timeout=60s
  lamina simulate my.yaml --scheduler batsim:tcp://127.0.0.1:28000
"""


@click.command(cls=CliCommand, epilog=EXAMPLES)
@click.argument("scenario", type=InputFile())
@click.option(
    "--profile",
    type=ProfileName(),
    metavar="FILE|NAME",
    help="Scheduler configuration; default: the scenario's.",
)
@click.option(
    "--scheduler",
    metavar="NAME|COMMAND|FILE|attach|batsim:COMMAND",
    help="Schedule with another program, which Lamina starts: kube-scheduler, a command in quotes with {kubeconfig}, "
    "{server} or {port} in it, or a YAML file that describes it. With `attach`, you start it. A command or an endpoint "
    "after `batsim:` is a decision process that speaks Batsim's protocol.",
)
@click.option(
    "--settle",
    metavar="METHOD",
    help="How Lamina knows that the scheduler has finished: log, metrics, sessions, lamina or silence[=DURATION]; default: "
    "the best for the scheduler.",
)
@click.option(
    "--batsim",
    multiple=True,
    metavar="SETTING",
    help="Setting of a run with a decision process after `batsim:`; may be repeated: compute-sharing, dynamic-jobs, "
    "acknowledge, forward-profiles, forward-unknown-events, sched-config=TEXT, timeout=DURATION (of an answer; default: "
    "5m).",
)
@click.option(
    "--decisions",
    type=OutputPath(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Record everything that the scheduler did.",
)
@click.option(
    "--replay",
    type=InputFile(),
    metavar="FILE",
    help="Repeat a run from its --decisions file, without the scheduler; trace and summary are the same, byte for byte.",
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
    help=f"Folder for {TRACE}, {SUMMARY}, {JOBS}, {SCHEDULE} and {MACHINES}.",
)
@report_option("figures, charts, and every pod with the reason for its node")
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
    scheduler: str | None,
    settle: str | None,
    batsim: tuple[str, ...],
    decisions: Path | None,
    replay: Path | None,
    seed: int,
    data: Path | None,
    until: str | None,
    latency: str,
    out: Path | None,
    report: Path | None,
    live: bool,
    live_always: bool,
    detail: Any,
    output: str,
) -> None:
    """Run SCENARIO (a YAML file) in virtual time under a scheduler profile, or under another scheduler."""
    from lamina.simulator.workloads import load_scenario

    costs, end = _latency(latency), _until(until)
    foreign = None
    if (scheduler, settle, decisions, replay, batsim) != (None, None, None, None, ()):
        # Imported only here: it brings the API server.
        from lamina.cli.simulate.foreign_options import ForeignChoice, ForeignOptions

        options = ForeignOptions(scheduler=scheduler, settle=settle, batsim=batsim, decisions=decisions, replay=replay)
        options.check(profile)
        given = ctx.get_parameter_source("seed") is not click.core.ParameterSource.DEFAULT
        foreign = ForeignChoice(options, seed, costs, seed_given=given)
        seed = foreign.seed
    if data is None and is_copy(ctx, scenario):
        data = Path()
    loaded = load_scenario(scenario, seed, data)
    for note in loaded.notes:
        click.echo(f"note: {note}", err=True)
    if end is not None:
        loaded = msgspec.structs.replace(loaded, until=end)
    if foreign is None and profile is None and loaded.scheduler:
        from lamina.cli.simulate.foreign_options import ForeignChoice, ForeignOptions, scheduler_of

        named = ForeignOptions(scheduler=scheduler_of(loaded, scenario))
        foreign = ForeignChoice(named, seed, costs, seed_given=True)
    from lamina.cli.simulate.run_report import RunReport

    settings = {"seed": seed, "detail": detail, "latency": costs}
    chosen = ["--scheduler", scheduler] if scheduler else ["--profile", profile] if profile else []
    reported = RunReport(
        report_path(report, out), ["simulate", label(ctx, str(scenario)), *chosen, "--seed", str(seed)]
    )
    with _watching(loaded, live, live_always) as watching:
        settings["observer"] = reported.beside(watching.observe)
        if foreign is not None:
            figures, pod = _run_foreign(foreign, loaded, out, decisions, settings, reported)
        else:
            figures, pod = _run_profile(ctx, loaded, scenario, profile, out, settings, reported)
    _print(figures, output, out, pod)
    if figures.get("stopped"):
        from lamina.simulator.decider import RunStoppedError

        raise RunStoppedError(figures["stopped"])


def _run_profile(  # noqa: PLR0913, PLR0917 - the run's parts, each from an option
    ctx: click.Context,
    scenario: "Scenario",
    file: Path,
    profile: str | None,
    out: Path | None,
    settings: dict[str, Any],
    reported: "RunReport",
) -> tuple[dict[str, Any], str]:
    """Run under a profile of Lamina's; return the summary and the pod to explain."""
    from lamina.cli.options.scenario_profile import chosen_for
    from lamina.cli.output.out_folder import OutFolder
    from lamina.cli.simulate.run_files import RunFiles
    from lamina.simulator.run import simulate as run
    from lamina.simulator.run import summary

    chosen, config = chosen_for(scenario, file, profile)
    scenario = scenario.under(label(ctx, chosen))
    with OutFolder(out), RunFiles(out) as files:
        result = run(scenario, config, trace=files.trace, **settings)
        figures = summary(result)
        files.fill(result, scenario, figures)
        reported.write(result, scenario, figures)
    return figures, _last_placed(result)


def _run_foreign(
    foreign: "ForeignChoice",
    scenario: "Scenario",
    out: Path | None,
    decisions: Path | None,
    settings: dict[str, Any],
    reported: "RunReport",
) -> tuple[dict[str, Any], str]:
    """Run under another scheduler, or repeat such a run; return the summary."""
    from lamina.cli.output.out_folder import OutFolder
    from lamina.cli.simulate.run_files import RunFiles
    from lamina.simulator.run import simulate as run
    from lamina.simulator.run import summary

    foreign.check_scenario(scenario)
    scenario = scenario.under(foreign.name)
    with OutFolder(out), RunFiles(out, decisions) as files, foreign.running(scenario, files.decisions) as decider:
        settings["latency"] = decider.latency
        result = run(scenario, decider=decider.make_decider, trace=files.trace, **settings)
        figures = {**summary(result), **decider.figures()}
        files.fill(result, scenario, figures, decider.notes)
        reported.write(result, scenario, figures)
    return figures, ""


def _last_placed(result: "SimulationResult") -> str:
    """Return the last pod that started, whose placement can be explained; empty if there is none."""
    placed = [one.pod for one in result.pods if one.started is not None]
    return placed[-1] if placed else ""


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
        from lamina.cli.simulate.run_files import figures_json

        click.echo(figures_json(figures), nl=False)
    elif output == "yaml":
        click.echo(msgspec.yaml.encode(figures), nl=False)
    else:
        from lamina.cli.simulate.summary_text import print_summary

        print_summary(figures, out, pod)
