"""``lamina scheduler``: bind pods through an API server, or only record what it would have done."""

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from lamina.cli.options.cli_command import CliCommand
from lamina.cli.options.shared_options import verbosity_option
from lamina.cli.options.standard_input import InputFile

if TYPE_CHECKING:
    from lamina.services.informers.usage.usage_settings import UsageSettings
    from lamina.services.scheduler.qos.qos_service import QosOptions

EXAMPLES: Final = """\b
Examples:
  lamina scheduler --kubeconfig ~/.kube/config
  lamina scheduler --config my-scheduler-config.yaml -v 2
  lamina scheduler --observe
  lamina scheduler --listen 0.0.0.0:10259 --log-format json
  lamina scheduler --config safe.yaml --prometheus http://127.0.0.1:9090
  lamina scheduler --config qos.yaml --qos-listen 127.0.0.1:10000 --qos-log /var/log/lamina/metrics.log
  lamina scheduler --record-dir /var/lib/lamina/recordings --record-files 32
  lamina scheduler --registries registries.yaml --docker-config ~/.docker/config.json

Without --config, the profile lamina-balanced schedules pods with `schedulerName: lamina`. With --observe, Lamina
evaluates every pod of every scheduler and binds none. If no node agent has reported an image, Lamina queries its
registry, provided that a node has pulled from there or --registries permits it. Endpoints: /livez /readyz /metrics, and
on loopback /debug/cache /debug/dump /debug/observed /debug/events /debug/decisions/NAMESPACE/POD.

With --record-dir the scheduler writes its input and its decisions to files that `lamina replay` checks; SIGUSR2
writes one at once.
"""

SCHEDULER_NAME: Final = "lamina"
NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


@click.command(cls=CliCommand, epilog=EXAMPLES)
@click.option("--config", type=InputFile(), help="A KubeSchedulerConfiguration.")
@click.option("--profile", help="Instead of --config: a profile that comes with Lamina (see `lamina profiles`).")
@click.option(
    "--scheduler-name", help=f"schedulerName of the pods to place, without --config.  [default: {SCHEDULER_NAME}]"
)
@click.option("--kubeconfig", type=InputFile(), help="Kubeconfig of the cluster; default: as kubectl.")
@click.option("--context", default="", help="Context of the kubeconfig.")
@click.option("--observe", is_flag=True, help="Decide and record the savings, but bind nothing.")
@click.option("--leader-elect/--no-leader-elect", default=None, help="Override the configuration's leader election.")
@click.option("--listen", default="127.0.0.1:10259", show_default=True, help="ADDRESS:PORT that serves the endpoints.")
@click.option("--registries", type=InputFile(), help="File with the permitted registries and how to reach them.")
@click.option("--no-registries", is_flag=True, help="Never query a registry.")
@click.option(
    "--registry-deadline",
    type=click.FloatRange(0.0, 60.0),
    default=2.0,
    show_default=True,
    help="Longest time in seconds that a pod waits for a registry.",
)
@click.option("--docker-config", type=InputFile(), help="Docker's config.json with registry credentials.")
@click.option("--usage", type=InputFile(), help="File that configures the source of node usage.")
@click.option("--prometheus", help="Instead of --usage: address of a Prometheus server with the usage of nodes.")
@click.option("--record-dir", type=click.Path(path_type=Path), help="Write recordings for `lamina replay` here.")
@click.option(
    "--record-files",
    type=click.IntRange(1, 10_000),
    default=16,
    show_default=True,
    help="Number of recordings to keep; the oldest are removed.",
)
@click.option(
    "--record-size",
    type=click.IntRange(1, 4096),
    default=64,
    show_default=True,
    help="Largest size of one recording in MiB; a larger one is not written.",
)
@click.option(
    "--record-events",
    type=click.IntRange(10, 1_000_000),
    default=20_000,
    show_default=True,
    help="Events and decisions in one recording; the last two recordings are kept in memory.",
)
@click.option(
    "--qos-listen",
    default="127.0.0.1:10000",
    show_default=True,
    help="ADDRESS:PORT that serves the QoS page, if a profile enables QosAware.",
)
@click.option(
    "--qos-log",
    type=click.Path(path_type=Path),
    help="Log every pod that QosAware has measured to its end here, as CSV; four files of 16 MiB.",
)
@click.option("--seed", type=int, help="Seed for choosing between nodes of equal score; default: random.")
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@verbosity_option()
def scheduler(  # noqa: PLR0913, PLR0917 - one argument for each option
    config: Path | None,
    profile: str | None,
    scheduler_name: str | None,
    kubeconfig: Path | None,
    context: str,
    observe: bool,
    leader_elect: bool | None,
    listen: str,
    registries: Path | None,
    no_registries: bool,
    registry_deadline: float,
    docker_config: Path | None,
    usage: Path | None,
    prometheus: str | None,
    record_dir: Path | None,
    record_files: int,
    record_size: int,
    record_events: int,
    qos_listen: str,
    qos_log: Path | None,
    seed: int | None,
    log_format: str,
    verbosity: int,
) -> None:
    """Schedule pods on nodes that already hold their image layers."""
    import asyncio

    from lamina.cli.options.scheduler_profile import configuration
    from lamina.clients.kube.access import load_access
    from lamina.clients.oci.keyring import Keyring
    from lamina.clients.oci.registry_config import RegistryConfig, load_registry_config
    from lamina.model.errors import InputError
    from lamina.scheduling.config.named_profiles import DEFAULT
    from lamina.services.scheduler import logs
    from lamina.services.scheduler.event_ring import RingLimits
    from lamina.services.scheduler.options import SchedulerOptions
    from lamina.services.scheduler.recordings import RecordingSettings
    from lamina.services.scheduler.wiring import serve
    from lamina.serving.event_loop import new_loop

    if config is not None and profile is not None:
        raise InputError.one(
            "--profile", "not together with --config, whose file has its own profiles; use one of them"
        )
    if config is not None and scheduler_name is not None:
        raise InputError.one(
            "--scheduler-name", "not together with --config, whose file names its schedulers; use one of them"
        )
    if no_registries and (registries is not None or docker_config is not None):
        other = "--registries" if registries is not None else "--docker-config"
        raise InputError.one(
            "--no-registries", f"not together with {other}, which configures registry queries; use one of them"
        )
    if math.isnan(registry_deadline):
        raise InputError.one("--registry-deadline", "nan is not a number of seconds; write one from 0 to 60")
    name = scheduler_name if scheduler_name is not None else SCHEDULER_NAME
    if not NAME.fullmatch(name) or len(name) > 253:
        raise InputError.one("--scheduler-name", f"{name!r:.80} is not a valid name; use a-z, 0-9, with - or . between")
    if config is not None:
        chosen = configuration(
            f"{config}" if "/" in f"{config}" else f"./{config}", extenders="--observe" if observe else ""
        )
        kubeconfig = kubeconfig or _path(chosen.config.client_connection.kubeconfig)
    else:
        chosen = configuration(profile or DEFAULT).called(name)
    host, port = _address(listen, "--listen")
    rules = RegistryConfig() if registries is None else load_registry_config(registries)
    keyring = None if docker_config is None else Keyring.from_file(docker_config)
    logs.set_up(verbosity, "json" if log_format == "json" else "text")
    options = SchedulerOptions(
        configuration=chosen,
        access=load_access(kubeconfig, context),
        observe=observe,
        leader_elect=leader_elect,
        host=host,
        port=port,
        rules=None if no_registries else rules,
        keyring=keyring,
        registry_deadline=registry_deadline,
        usage=_usage(usage, prometheus),
        seed=seed,
        record=None if record_dir is None else RecordingSettings(record_dir, record_files, record_size * 1024**2),
        ring=RingLimits(record_events),
        qos=_qos(qos_listen, qos_log),
        detail="full" if verbosity >= logs.SCORES else "savings",
    )
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(serve(options))


def _usage(file: Path | None, prometheus: str | None) -> "UsageSettings | None":
    from lamina.cli.options.prometheus_url import prometheus as server
    from lamina.model.errors import InputError
    from lamina.services.informers.usage.usage_settings import UsageSettings, load_settings

    if file is not None and prometheus is not None:
        raise InputError.one("--prometheus", "not together with --usage, whose file names its source; use one of them")
    if file is not None:
        return load_settings(file)
    return None if prometheus is None else UsageSettings(prometheus=server(prometheus))


def _qos(listen: str, log: Path | None) -> "QosOptions":
    from lamina.services.scheduler.qos.qos_log import QosLogSettings
    from lamina.services.scheduler.qos.qos_service import QosOptions

    return QosOptions(*_address(listen, "--qos-listen"), None if log is None else QosLogSettings(log))


def _path(text: str) -> Path | None:
    return Path(text) if text else None


def _address(listen: str, option: str) -> tuple[str, int]:
    from lamina.model.errors import InputError

    host, _, port = listen.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise InputError.one(option, f"{listen!r} is not ADDRESS:PORT; write for example 127.0.0.1:10259")
    return host.strip("[]"), int(port)
