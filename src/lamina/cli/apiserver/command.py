"""``lamina apiserver``: serve a Kubernetes API in front of a simulated cluster, until stopped."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from lamina.cli.options.cli_command import CliCommand
from lamina.cli.options.standard_input import InputFile, OutputPath, ProfileName, is_copy

if TYPE_CHECKING:
    from lamina.apiserver.real_time import ClockPace
    from lamina.scheduling.config.loader import Configuration
    from lamina.simulator.workloads import Scenario

EXAMPLES: Final = """\b
Examples:
  lamina apiserver
  lamina apiserver --nodes 100 --profile kube-default --real-time
  lamina apiserver examples/classic/scenario.yaml --kubeconfig /tmp/classic.kubeconfig
  lamina apiserver --manual --ready-file /tmp/ready.json
  lamina apiserver --real-time=60 --tls --service-account /tmp/service-account

Any Kubernetes client can connect with the kubeconfig: kubectl, a scheduler, a controller. Without --profile, a pod is
placed only if a client binds it. The server listens on 127.0.0.1 only and accepts every user of this machine.

Time: by default the virtual clock jumps to the next event when clients have sent no request for --quiet seconds. That is
quick, but not exact; to measure a scheduler, use `lamina simulate --scheduler`.
"""
NODES: Final = 3
MOST_NODES: Final = 100_000
LARGEST_FACTOR: Final = 1_000_000.0
LONGEST_QUIET: Final = 60.0


@click.command(cls=CliCommand, epilog=EXAMPLES)
@click.argument("scenario", type=InputFile(), required=False)
@click.option(
    "--nodes",
    type=click.IntRange(0, MOST_NODES),
    metavar="N",
    help=f"Without a SCENARIO: number of equal nodes, with 4 cpu and 16 GiB each.  [default: {NODES}]",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder with the files that the scenario imports; default: its own folder.",
)
@click.option("--seed", default=0, show_default=True, help="Seed of uids, generated names and the scenario.")
@click.option(
    "--profile",
    type=ProfileName(),
    metavar="FILE|NAME",
    help="Let Lamina schedule pods with this configuration; default: only clients schedule.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port of 127.0.0.1; default: any free port.")
@click.option("--tls", is_flag=True, help="Serve HTTPS, with a certificate authority made for this start.")
@click.option(
    "--service-account",
    type=OutputPath(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Write token, namespace and ca.crt to FOLDER, as programs in a pod expect them; needs --tls.",
)
@click.option(
    "--real-time",
    "real_time",
    is_flag=False,
    flag_value="1",
    metavar="[=FACTOR]",
    help="Let virtual time follow the wall clock, FACTOR times as fast.  [default factor: 1]",
)
@click.option("--manual", is_flag=True, help="Move the clock only by POST /lamina/clock.")
@click.option("--quiet", metavar="DURATION", help="Time without a request before the clock jumps.  [default: 200ms]")
@click.option(
    "--epoch",
    metavar="now|TIME",
    help="Date of virtual second 0, such as 2026-01-01T00:00:00Z.  [default: now with --real-time, else 2026-01-01]",
)
@click.option(
    "--kubeconfig",
    type=OutputPath(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where to write the kubeconfig; removed at the end. Default: a temporary file.",
)
@click.option(
    "--ready-file",
    type=OutputPath(path_type=Path, dir_okay=False),
    metavar="FILE",
    help='When the server is ready, write {"url", "kubeconfig", "pid"} to FILE; removed at the end.',
)
@click.pass_context
def apiserver(  # noqa: PLR0913, PLR0917 - one for each option
    ctx: click.Context,
    scenario: Path | None,
    nodes: int | None,
    data: Path | None,
    seed: int,
    profile: str | None,
    port: int,
    tls: bool,
    service_account: Path | None,
    real_time: str | None,
    manual: bool,
    quiet: str | None,
    epoch: str | None,
    kubeconfig: Path | None,
    ready_file: Path | None,
) -> None:
    """Serve a Kubernetes API in front of a simulated cluster: that of SCENARIO, or equal nodes."""
    from lamina.apiserver.served_cluster import ServedCluster, ServedClusterSettings
    from lamina.cli.apiserver.cluster_server import serve
    from lamina.cli.apiserver.epoch_option import read_epoch
    from lamina.serving.event_loop import new_loop

    if data is None and scenario is not None and is_copy(ctx, scenario):
        data = Path()
    settings = ServedClusterSettings(
        pace=_pace(real_time, manual, quiet),
        scenario=_scenario(scenario, nodes, seed, data),
        epoch=read_epoch(epoch or ("now" if real_time else "")),
        seed=seed,
        configuration=_configuration(profile),
        port=port,
        tls=tls,
        kubeconfig=kubeconfig,
        service_account=service_account,
    )
    serve(lambda: ServedCluster(settings), settings, ready_file, new_loop)


def _scenario(path: Path | None, nodes: int | None, seed: int, data: Path | None) -> "Scenario":
    from lamina.apiserver.served_cluster import equal_nodes
    from lamina.model.errors import InputError
    from lamina.simulator.workloads import load_scenario

    if path is None:
        if data is not None:
            raise InputError.one("--data", "is for the imports of a SCENARIO; name one, or omit --data")
        return equal_nodes(NODES if nodes is None else nodes)
    if nodes is not None:
        raise InputError.one("--nodes", f"not together with {path}, which has nodes of its own; use one of them")
    loaded = load_scenario(path, seed, data)
    for note in loaded.notes:
        click.echo(f"note: {note}", err=True)
    return loaded


def _configuration(profile: str | None) -> "Configuration | None":
    from lamina.cli.options.scheduler_profile import configuration, warned
    from lamina.scheduling.config.named_profiles import current_name

    return None if profile is None else warned(configuration(current_name(profile)))


def _pace(factor: str | None, manual: bool, quiet: str | None) -> "ClockPace":
    from lamina.apiserver.real_time import QUIET, ManualPace, QuietPace, RealTimePace
    from lamina.model.duration import seconds
    from lamina.model.errors import InputError

    given = [name for name, on in (("--real-time", factor is not None), ("--manual", manual), ("--quiet", quiet)) if on]
    if len(given) > 1:
        raise InputError.one(given[0], f"not together with {given[1]}: both say how time passes; use one of them")
    if manual:
        return ManualPace()
    if factor is not None:
        return RealTimePace(_factor(factor))
    try:
        pause = QUIET if quiet is None else seconds(quiet)
    except ValueError as error:
        raise InputError.one("--quiet", str(error)) from error
    if not 0.0 < pause <= LONGEST_QUIET:
        raise InputError.one("--quiet", f"{quiet} is not above 0 and at most {LONGEST_QUIET:g}s; try 200ms")
    return QuietPace(pause)


def _factor(text: str) -> float:
    from lamina.model.errors import InputError
    from lamina.model.plain import shown

    try:
        factor = float(text)
    except ValueError:
        message = f"{shown(text)} is not a number; write --real-time=10, or put SCENARIO before --real-time"
        raise InputError.one("--real-time", message) from None
    if not 0.0 < factor <= LARGEST_FACTOR:
        raise InputError.one("--real-time", f"{text} is not above 0 and at most {LARGEST_FACTOR:,.0f}; try 10")
    return factor
