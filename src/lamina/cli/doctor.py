"""``lamina doctor``: check runtime, cluster and registries, and say what to fix."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from lamina.cli.options.cli_command import CliCommand
from lamina.cli.options.shared_options import output_option
from lamina.cli.options.standard_input import InputFile

if TYPE_CHECKING:
    from lamina.services.doctor.finding import Finding

EXAMPLES: Final = """\b
Examples:
  lamina doctor
  lamina doctor --kubeconfig ~/.kube/config --registries registries.yaml
  sudo lamina doctor --runtime containerd --no-cluster
  lamina doctor -o json | jq '.[] | select(.verdict == "fix")'

As root on a node it checks the node's runtime; with a kubeconfig it checks the cluster. It also requests one image from
each registry that is configured or that nodes have pulled from. It changes nothing. Exit code 1: a finding needs a fix.
"""
COLORS: Final = {"ok": "green", "warn": "yellow", "fix": "red", "skip": "bright_black"}
WIDTH: Final = 20
"""Width of the subject column, in characters."""


@click.command(cls=CliCommand, epilog=EXAMPLES)
@click.option("--runtime", type=click.Choice(["auto", "containerd", "crio", "cri"]), default="auto", show_default=True)
@click.option("--socket", type=click.Path(path_type=Path), help="Socket of the runtime; default: the usual paths.")
@click.option("--storage", type=click.Path(path_type=Path), help="CRI-O's storage folder; default: the usual path.")
@click.option("--kubeconfig", type=InputFile(), help="Kubeconfig of the cluster; default: as kubectl.")
@click.option("--context", default="", help="Context of the kubeconfig.")
@click.option("--cluster/--no-cluster", default=True, help="Check the cluster.")
@click.option("--registries", type=InputFile(), help="The scheduler's --registries file.")
@click.option("--docker-config", type=InputFile(), help="Docker's config.json with registry credentials.")
@click.option("--ask-registries/--no-ask-registries", default=True, help="Request an image from each registry.")
@output_option("table", "json", "yaml")
def doctor(  # noqa: PLR0913, PLR0917 - one argument for each option
    runtime: str,
    socket: Path | None,
    storage: Path | None,
    kubeconfig: Path | None,
    context: str,
    cluster: bool,
    registries: Path | None,
    docker_config: Path | None,
    ask_registries: bool,
    output: str,
) -> None:
    """Check runtime, cluster and registries: one line for each finding, with what to do."""
    import asyncio

    import msgspec

    from lamina.clients.oci.keyring import Keyring
    from lamina.clients.oci.registry_config import RegistryConfig, load_registry_config
    from lamina.services.doctor.all_checks import DoctorOptions, run_checks
    from lamina.services.doctor.finding import anything_broken

    order = DoctorOptions(
        runtime=runtime,
        socket=socket,
        storage=storage,
        kubeconfig=kubeconfig,
        context=context,
        cluster=cluster,
        rules=load_registry_config(registries) if registries is not None else RegistryConfig(),
        keyring=Keyring.from_file(docker_config) if docker_config is not None else None,
        ask_registries=ask_registries,
    )
    findings: list[Finding] = []

    def report(finding: "Finding") -> None:
        findings.append(finding)
        if output == "table":
            show(finding)

    asyncio.run(run_checks(order, report))
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(findings), indent=2))
    elif output == "yaml":
        click.echo(msgspec.yaml.encode(findings), nl=False)
    if anything_broken(findings):
        click.get_current_context().exit(1)


def show(finding: "Finding") -> None:
    """Print one finding, and what to do on the line below."""
    verdict = click.style(f"{finding.verdict:<5}", fg=COLORS[finding.verdict])
    click.echo(f"{verdict} {finding.subject:<{WIDTH}} {_plain(finding.told)}")
    if finding.advice:
        click.echo(f"{'':<{6 + WIDTH}} → {finding.advice}")


def _plain(told: str) -> str:
    """Replace characters that would start another line or control the terminal: the text may be untrusted."""
    return "".join(one if one.isprintable() else " " for one in told)
