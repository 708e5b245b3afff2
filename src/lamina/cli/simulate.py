"""``lamina simulate``: a scenario in, a trace and a summary out."""

from pathlib import Path
from typing import Any, Final

import click
import msgspec

EXAMPLES: Final = """\b
Examples:
  lamina simulate examples/founding/scenario.yaml
  lamina simulate examples/classic/scenario.yaml --profile kube-default --out /tmp/classic
  lamina simulate my.yaml --profile my-scheduler-config.yaml --seed 7 -o json
"""

TRACE: Final = "trace.jsonl.zst"
SUMMARY: Final = "summary.json"


@click.command(epilog=EXAMPLES)
@click.argument("scenario", type=click.Path(path_type=Path))
@click.option("--profile", metavar="FILE|NAME", help="Scheduler configuration; default: what the scenario asks for.")
@click.option(
    "--seed",
    default=0,
    show_default=True,
    help="Decides between nodes of equal score, and draws what the scenario leaves to luck.",
)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help=f"Folder for {TRACE} and {SUMMARY}.")
@click.option(
    "--detail",
    type=click.Choice(["brief", "full"]),
    default="brief",
    show_default=True,
    help="How much of each decision is written to the trace: the two best nodes, or every node.",
)
@click.option("-o", "output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True)
def simulate(scenario: Path, profile: str | None, seed: int, out: Path | None, detail: Any, output: str) -> None:
    """Run SCENARIO (a YAML file) in virtual time under a scheduler profile."""
    from lamina.cli.profile_option import configuration
    from lamina.cli.running import Running
    from lamina.scheduling.config.named import DEFAULT
    from lamina.simulator.run import simulate as run
    from lamina.simulator.run import summary
    from lamina.simulator.workloads import load_scenario
    from lamina.trace.writer import TraceWriter, atomic_write

    loaded = load_scenario(scenario, seed)
    chosen = profile or loaded.profile or DEFAULT
    loaded = loaded.under(chosen)
    config = configuration(chosen)
    with Running(loaded) as running:
        if out is None:
            result = run(loaded, config, seed=seed, detail=detail, observer=running.observe)
        else:
            _make(out)
            with TraceWriter(out / TRACE) as trace:
                result = run(loaded, config, seed=seed, detail=detail, trace=trace, observer=running.observe)
    figures = summary(result)
    if out is not None:
        atomic_write(out / SUMMARY, msgspec.json.format(msgspec.json.encode(figures), indent=2) + b"\n")
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(figures), indent=2))
    elif output == "yaml":
        click.echo(msgspec.yaml.encode(figures), nl=False)
    else:
        from lamina.cli.figures import show

        show(figures, out)


def _make(folder: Path) -> None:
    from lamina.model.errors import InputError

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError.one("--out", f"{folder} cannot be made: {error.strerror}") from error
