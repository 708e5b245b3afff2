"""``lamina annotate``: write the node annotations that scheduling agents read, or remove them."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from lamina.cli.options.cli_command import CliCommand
from lamina.cli.options.shared_options import output_option, print_data, verbosity_option
from lamina.cli.options.standard_input import InputFile
from lamina.model.plain import plural

if TYPE_CHECKING:
    from lamina.services.annotator.annotation_plan import AnnotationWrite
    from lamina.services.annotator.wiring import AnnotationKind
    from lamina.services.informers.usage.usage_settings import UsageSettings

EXAMPLES: Final = """\b
Examples:
  lamina annotate usage --prometheus http://127.0.0.1:9090 --dry-run
  lamina annotate allocation --dry-run -o json
  lamina annotate usage --config usage.yaml --every 60
  lamina annotate usage --metrics-server
  lamina annotate allocation --once
  lamina annotate congestion --prometheus http://prometheus.monitoring:9090
  lamina annotate usage --remove

Writes annotations only, and only on nodes whose numbers have changed. See docs/scheduling-agents-data.md.
"""
MOST_ROWS: Final = 200
PAUSE: Final = 60.0
"""Default seconds between two rounds."""


@click.command(cls=CliCommand, epilog=EXAMPLES)
@click.argument("what", type=click.Choice(["usage", "allocation", "congestion"]))
@click.option("--prometheus", "url", default="", help="Address of a Prometheus server with node-exporter's metrics.")
@click.option("--metrics-server", is_flag=True, help="Read the cluster's metrics API instead; for usage only.")
@click.option("--config", type=InputFile(), help="File that configures the source of usage.")
@click.option("--once", is_flag=True, help="Write once, and exit.")
@click.option("--dry-run", is_flag=True, help="Print what would be written, and exit.")
@output_option("table", "json", "yaml")
@click.option("--remove", is_flag=True, help="Remove the annotations from every node, and exit.")
@click.option(
    "--every",
    type=click.FloatRange(1, 86_400),
    help="Seconds between two rounds; default: the value in the file, or 60.",
)
@click.option(
    "--max-writes-per-second",
    "per_second",
    type=click.FloatRange(0, 1000, min_open=True),
    default=5.0,
    show_default=True,
    help="Rate limit of writes to the API server, for all nodes together.",
)
@click.option(
    "--refresh",
    type=click.FloatRange(10, 86_400),
    default=600.0,
    show_default=True,
    help="Seconds after which unchanged numbers are written again.",
)
@click.option(
    "--forget",
    type=click.FloatRange(10, 864_000),
    default=1800.0,
    show_default=True,
    help="Seconds without data after which a node's annotations are removed.",
)
@click.option("--kubeconfig", type=InputFile(), help="Kubeconfig of the cluster; default: as kubectl.")
@click.option("--context", default="", help="Context of the kubeconfig.")
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@verbosity_option()
def annotate(  # noqa: PLR0913, PLR0917 - one argument for each option
    what: "AnnotationKind",
    url: str,
    metrics_server: bool,
    config: Path | None,
    once: bool,
    dry_run: bool,
    output: str,
    remove: bool,
    every: float | None,
    per_second: float,
    refresh: float,
    forget: float,
    kubeconfig: Path | None,
    context: str,
    log_format: str,
    verbosity: int,
) -> None:
    """Write the usage, allocation or congestion of every node into its annotations."""
    import asyncio

    from lamina.clients.kube.access import load_access
    from lamina.model.duration import seconds
    from lamina.model.errors import InputError
    from lamina.services.annotator import logs
    from lamina.services.annotator.wiring import AnnotatorOptions
    from lamina.services.annotator.wiring import annotate as run

    if output != "table" and not dry_run:
        raise InputError.one("--output", f"{output} needs --dry-run; add it, or omit --output")
    settings = _settings(what, url, metrics_server, config, remove)
    pause = seconds(settings.every) if every is None else every
    _check(settings, once or dry_run, refresh, forget, remove)
    _check_samples(settings, pause, remove)
    logs.set_up(verbosity, "json" if log_format == "json" else "text")
    options = AnnotatorOptions(
        what=what,
        access=load_access(kubeconfig, context),
        settings=settings,
        once=once,
        dry_run=dry_run,
        remove=remove,
        every=pause,
        per_second=per_second,
        refresh=refresh,
        forget=forget,
    )
    show = _show if output == "table" else functools.partial(_print, output)
    asyncio.run(run(options, show if dry_run else _say_remark))


def _settings(what: str, url: str, metrics_server: bool, config: Path | None, remove: bool) -> "UsageSettings":
    from lamina.cli.options.prometheus_url import prometheus
    from lamina.model.errors import InputError
    from lamina.services.informers.usage.usage_settings import UsageSettings, load_settings

    named = [name for name, given in _sources(url, metrics_server, config).items() if given]
    if len(named) > 1:
        raise InputError.one(named[0], f"not together with {named[1]}; choose one")
    if what == "allocation" and named:
        raise InputError.one(named[0], "allocation is the sum of pod requests and needs no source; omit this option")
    if what == "congestion" and metrics_server:
        raise InputError.one("--metrics-server", "has no congestion data; use --prometheus URL")
    if url:
        return UsageSettings(every=PAUSE, prometheus=prometheus(url))
    if config is not None:
        return load_settings(config, PAUSE)
    if not metrics_server and what != "allocation" and not remove:
        raise InputError.one(what, "needs a source; add --prometheus URL, --config FILE or --metrics-server")
    return UsageSettings(every=PAUSE, metrics_server=metrics_server)


def _sources(url: str, metrics_server: bool, config: Path | None) -> dict[str, bool]:
    return {"--prometheus": bool(url), "--config": config is not None, "--metrics-server": metrics_server}


def _check(settings: "UsageSettings", one_look: bool, refresh: float, forget: float, remove: bool) -> None:
    from lamina.model.errors import InputError

    if settings.metrics_server and one_look and not remove:
        raise InputError.one("--metrics-server", "one sample has no deviation; omit --once and --dry-run")
    if forget <= refresh:
        raise InputError.one("--forget", f"must be longer than --refresh, which is {refresh:g} s")


def _check_samples(settings: "UsageSettings", every: float, remove: bool) -> None:
    from lamina.model.duration import seconds
    from lamina.model.errors import InputError
    from lamina.services.informers.usage.usage_settings import too_seldom

    problem = too_seldom(seconds(settings.window), every) if settings.metrics_server and not remove else ""
    if problem:
        raise InputError.one("--every", problem)


def _say_remark(_: Sequence["AnnotationWrite"], remark: str) -> None:
    if remark:
        click.echo(remark, err=True)


def _print(output: str, changes: Sequence["AnnotationWrite"], remark: str) -> None:
    """Print the planned writes as data; a value of null removes the annotation."""
    print_data([{"node": one.node, "why": one.why, "annotations": one.annotations} for one in changes], output)
    _say_remark(changes, remark)


def _show(changes: Sequence["AnnotationWrite"], remark: str) -> None:
    """Print the planned writes as a table of at most `MOST_ROWS` nodes."""
    from rich import box
    from rich.table import Table

    from lamina.cli.output.screen import Screen, literal

    screen = Screen()
    if changes:
        table = Table(box=box.SIMPLE_HEAD if screen.is_terminal else box.ASCII2, pad_edge=False)
        for column in ("node", "why"):
            table.add_column(column, no_wrap=True)
        table.add_column("annotations", overflow="fold")
        for change in changes[:MOST_ROWS]:
            said = "\n".join(
                f"{key}={value}" if value is not None else f"{key} -" for key, value in change.annotations.items()
            )
            table.add_row(literal(change.node), change.why, literal(said))
        screen.console.print(table)
    more = f", of which {MOST_ROWS} are shown" if len(changes) > MOST_ROWS else ""
    screen.say(f"{plural(len(changes), 'node')} would be written{more}")
    if remark:
        screen.say(literal(remark))
