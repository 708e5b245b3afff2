"""``lamina qos``: print the debug page of a scheduler with QosAware, once or again and again."""

from pathlib import Path
from typing import Final

import click

from lamina.cli.options.cli_command import CliCommand
from lamina.cli.options.shared_options import output_option
from lamina.cli.options.standard_input import InputFile

EXAMPLES: Final = """\b
Examples:
  lamina qos
  lamina qos --watch
  lamina qos --format replicas
  lamina qos --url http://127.0.0.1:10000 -o json
  lamina qos --kubeconfig ~/.kube/config --pod lamina-system/lamina-scheduler-7d9f8
  lamina qos --context production -o yaml

Without options, the page is read from this machine. With --kubeconfig, --context or --pod it is read through the API
server's proxy: then the scheduler must serve it to other machines (`lamina scheduler --qos-listen 0.0.0.0:10000`).
Without --pod, the first running pod of Lamina's Deployment answers; a standby measures too.
"""
URL: Final = "http://127.0.0.1:10000"
NAMESPACE: Final = "lamina-system"


@click.command(cls=CliCommand, epilog=EXAMPLES)
@click.option("--url", help=f"Address of the scheduler's QoS page.  [default: {URL}]")
@click.option("--kubeconfig", type=InputFile(), help="Read through the API server's proxy, with this kubeconfig.")
@click.option("--context", default="", help="Read through the proxy, with this context of the kubeconfig.")
@click.option(
    "--pod", default="", help=f"Read through the proxy, from this pod; NAME is in {NAMESPACE}, or NAMESPACE/NAME."
)
@click.option(
    "--port", type=click.IntRange(1, 65535), default=10000, show_default=True, help="Port of the page in the pod."
)
@click.option("-w", "--watch", is_flag=True, help="Print again and again, until Ctrl-C.")
@click.option(
    "--every",
    type=click.FloatRange(0.2, 3600.0),
    default=2.0,
    show_default=True,
    help="Seconds between two prints with --watch.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["controllers", "replicas"]),
    default="controllers",
    show_default=True,
    help="Lines of the table: one for each controller, or one for each replica.",
)
@output_option("table", "json", "yaml")
def qos(  # noqa: PLR0913, PLR0917 - one parameter for each option
    url: str | None,
    kubeconfig: Path | None,
    context: str,
    pod: str,
    port: int,
    watch: bool,
    every: float,
    form: str,
    output: str,
) -> None:
    """Show how the controllers of a cluster keep their promised availability."""
    from lamina.cli.qos.page_source import PodPage, UrlPage
    from lamina.cli.qos.printing import print_once, print_repeatedly
    from lamina.model.errors import InputError

    proxied = kubeconfig is not None or bool(context) or bool(pod)
    if url is not None and proxied:
        raise InputError.one(
            "--url", "not together with --kubeconfig, --context or --pod, which use the proxy; use one"
        )
    source = PodPage(kubeconfig, context, pod, port) if proxied else UrlPage(url or URL)
    path = f"/{form}" if output == "table" else "/qos.json"
    if watch:
        print_repeatedly(source, path, output, every)
    else:
        print_once(source, path, output)
