"""``lamina extender``: serve scheduling agents to the stock kube-scheduler over HTTP."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from lamina.cli.options.cli_command import CliCommand
from lamina.cli.options.shared_options import output_option, print_data, verbosity_option
from lamina.cli.options.standard_input import InputFile

if TYPE_CHECKING:
    from lamina.scheduling.contract.scheduling_agent import SchedulingAgentRegistry
    from lamina.services.extender.configuration import ReplyMode, UsageEntry
    from lamina.services.extender.settings import ExtenderSettings

SCHEDULER_FILES: Final = ("/etc/lamina-tls/ca.crt", "/etc/lamina-tls/tls.crt", "/etc/lamina-tls/tls.key")
"""CA, certificate and key of the scheduler, at the paths where the manifests mount them."""

EXAMPLES: Final = """\b
Examples:
  lamina extender --agents layers --kubeconfig ~/.kube/config
  lamina extender --agents safe,congestion --prometheus http://127.0.0.1:9090 -v 2
  lamina extender --agents layers,safe --print-config > scheduler-config.yaml
  lamina extender --list-agents -o json
  lamina extender --agents layers --print-config --scheduler-name batch --namespace batch
  lamina extender --config extender.yaml --log-format json
  lamina extender --agents layers --listen 0.0.0.0:5401 --tls-cert tls.crt --tls-key tls.key \\
      --tls-client-ca ca.crt --client-name kube-scheduler
  HTTP_PORT=5402 LOG_LEVEL=DEBUG lamina extender --agents foo --state body

Routes: POST /scheduler/predicates/VERB, /scheduler/priorities/VERB, /scheduler/preemption/VERB; GET /version /livez /readyz
/metrics. Flags override environment variables, and those override the file. Without TLS it listens on loopback only.
"""


@click.command(cls=CliCommand, epilog=EXAMPLES)
@click.option("--agents", "names", help="Scheduling agents to serve, separated by commas (see `--list-agents`).")
@click.option("--config", type=InputFile(), help="An ExtenderConfiguration.")
@click.option("--listen", help="ADDRESS:PORT to listen on.  [default: 127.0.0.1:5401]")
@click.option("--pages", help="ADDRESS:PORT that serves probes and metrics without TLS.")
@click.option("--kubeconfig", type=InputFile(), help="Kubeconfig of the cluster; default: as kubectl.")
@click.option("--context", default="", help="Context of the kubeconfig.")
@click.option("--tls-cert", help="Server certificate; turns HTTPS on.")
@click.option("--tls-key", help="Its key.")
@click.option("--tls-client-ca", help="Require client certificates signed by this CA.")
@click.option(
    "--client-name",
    "client_names",
    multiple=True,
    help="Accept only client certificates with this name; may be repeated.",
)
@click.option("--insecure-http", is_flag=True, default=None, help="Serve plain HTTP to other machines as well.")
@click.option(
    "--reply",
    type=click.Choice(["sparse", "best", "full"]),
    help="Nodes to return in scores: above the lowest level (sparse), the best 100 of these (best), or all (full).",
)
@click.option(
    "--state", type=click.Choice(["watch", "body"]), help="Read the cluster's state from watches, or from each request."
)
@click.option("--prometheus", help="Address of a Prometheus server with the usage of nodes.")
@click.option("--metrics-server", is_flag=True, help="Read usage from the cluster's metrics API instead.")
@click.option("--registries", type=InputFile(), help="File with the permitted registries and how to reach them.")
@click.option("--no-registries", is_flag=True, help="Never query a registry.")
@click.option("--docker-config", type=InputFile(), help="Docker's config.json with registry credentials.")
@click.option(
    "--scheduler-name",
    "scheduler_names",
    multiple=True,
    help="schedulerName of a calling kube-scheduler; may be repeated.",
)
@click.option(
    "--namespace",
    default="lamina-system",
    show_default=True,
    help="With --print-config: namespace of kube-scheduler's lease, which is named after the first --scheduler-name.",
)
@click.option(
    "--asked-at",
    metavar="HOST:PORT",
    help="With --print-config: address at which kube-scheduler reaches the extender.  [default: --listen]",
)
@click.option("--print-config", is_flag=True, help="Print kube-scheduler's configuration for these options, and exit.")
@click.option("--list-agents", is_flag=True, help="List the scheduling agents, and exit.")
@output_option("table", "json", "yaml")
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@verbosity_option(None)
def extender(  # noqa: PLR0913, PLR0917 - one argument for each option
    names: str | None,
    config: Path | None,
    listen: str | None,
    pages: str | None,
    kubeconfig: Path | None,
    context: str,
    tls_cert: str | None,
    tls_key: str | None,
    tls_client_ca: str | None,
    client_names: tuple[str, ...],
    insecure_http: bool | None,
    reply: "ReplyMode | None",
    state: str | None,
    prometheus: str | None,
    metrics_server: bool,
    registries: Path | None,
    no_registries: bool,
    docker_config: Path | None,
    scheduler_names: tuple[str, ...],
    namespace: str,
    asked_at: str | None,
    print_config: bool,
    list_agents: bool,
    output: str,
    log_format: str,
    verbosity: int | None,
) -> None:
    """Serve the stock kube-scheduler: filter and score nodes by layers, risk, policy or congestion."""
    from lamina.model.errors import InputError
    from lamina.scheduling.plugins.in_tree import agents as known_agents
    from lamina.services.extender.configuration import AgentEntry, PartialExtenderSettings, TlsEntry, load_configuration
    from lamina.services.extender.environment_variables import read_environment
    from lamina.services.extender.settings import ExtenderFlags, chosen_agents, merge_settings

    known = known_agents()
    if output != "table" and not list_agents:
        raise InputError.one("--output", f"{output} needs --list-agents; add it, or omit --output")
    if list_agents:
        _list(known, output)
        return
    if no_registries and (registries is not None or docker_config is not None):
        other = "--registries" if registries is not None else "--docker-config"
        raise InputError.one(
            "--no-registries", f"not together with {other}, which configures registry queries; use one of them"
        )
    named_files = [tls_cert, tls_key, tls_client_ca, *client_names]
    flags = ExtenderFlags(
        listen=listen,
        pages=pages,
        agents=None if names is None else tuple(AgentEntry(name=one.strip()) for one in names.split(",")),
        reply=reply,
        state="body" if state == "body" else "watch" if state else None,
        tls=TlsEntry(
            cert_file=tls_cert or "",
            key_file=tls_key or "",
            client_ca_file=tls_client_ca or "",
            client_names=client_names,
        )
        if any(named_files)
        else None,
        insecure_http=insecure_http,
        usage=_usage(prometheus, metrics_server),
        registries=False if no_registries else None if registries is None else str(registries),
        scheduler_names=scheduler_names or None,
        verbosity=verbosity,
    )
    file = PartialExtenderSettings() if config is None else load_configuration(config, known)
    environment = read_environment(os.environ, chosen_agents(flags, file, known))
    settings = merge_settings(flags, environment, file, known)
    if print_config:
        for complaint in settings.complaints:
            click.echo(complaint, err=True)
        click.echo(_scheduler_config(settings, namespace, asked_at), nl=False)
        return
    _serve(settings, kubeconfig, context, docker_config, log_format)


def _list(known: "SchedulingAgentRegistry", output: str) -> None:
    """Print each scheduling agent with its summary and its verbs for filter, score and preemption."""
    if output != "table":
        listed = [
            {
                "name": name,
                "about": known[name].summary.strip(),
                "filters": list(known[name].predicates),
                "scores": list(known[name].priorities),
            }
            for name in known
        ]
        print_data(listed, output)
    for name in known if output == "table" else ():
        summary = known[name].summary.strip().rstrip(".")
        kinds = {"filters": known[name].predicates, "scores": known[name].priorities}
        verbs = "; ".join(f"{kind}: {', '.join(verbs)}" for kind, verbs in kinds.items() if verbs)
        click.echo(f"{name:<12} {summary[:1].upper()}{summary[1:]}. ({verbs})")
    for broken in known.broken.values():
        click.echo(broken, err=True)


def _usage(prometheus: str | None, metrics_server: bool) -> "UsageEntry | None":
    from lamina.cli.options.prometheus_url import prometheus as server
    from lamina.services.extender.configuration import UsageEntry

    if prometheus is None and not metrics_server:
        return None
    return UsageEntry(prometheus=None if prometheus is None else server(prometheus), metrics_server=metrics_server)


def _scheduler_config(settings: "ExtenderSettings", namespace: str, asked_at: str | None) -> str:
    """Return the kube-scheduler configuration that calls an extender with these settings."""
    from lamina.model.errors import InputError
    from lamina.services.extender.address import parse_address
    from lamina.services.extender.kube_scheduler_config import ExtenderTarget, SchedulerTlsFiles, kube_configuration
    from lamina.services.extender.settings import check_names

    check_names("--namespace", [namespace])
    try:
        address = settings.address if asked_at is None else parse_address(asked_at)
    except ValueError as error:
        raise InputError.one("--asked-at", str(error)) from None
    https = settings.tls is not None
    served = ExtenderTarget(
        settings.agents,
        str(address),
        SchedulerTlsFiles(*SCHEDULER_FILES) if https else None,
        https=https,
    )
    return kube_configuration([served], settings.scheduler_names, namespace=namespace)


def _serve(
    settings: "ExtenderSettings", kubeconfig: Path | None, context: str, docker_config: Path | None, log_format: str
) -> None:
    import asyncio
    import logging

    from lamina.clients.kube.access import load_access
    from lamina.clients.oci.keyring import Keyring
    from lamina.clients.oci.registry_config import RegistryConfig, load_registry_config
    from lamina.services.extender.log_level import apply_log_level
    from lamina.services.extender.wiring import ExtenderOptions, serve
    from lamina.serving.event_loop import new_loop

    rules = RegistryConfig() if settings.registries is True else None
    if isinstance(settings.registries, str):
        rules = load_registry_config(Path(settings.registries))
    apply_log_level(settings.log_level, "json" if log_format == "json" else "text")
    for complaint in settings.complaints:
        logging.getLogger("lamina").warning(complaint)
    options = ExtenderOptions(
        settings=settings,
        access=load_access(kubeconfig, context) if settings.state == "watch" else None,
        rules=rules,
        keyring=None if docker_config is None else Keyring.from_file(docker_config),
    )
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(serve(options))
