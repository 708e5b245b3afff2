"""``lamina doctor``: look whether everything is as it should be, and say what to do where it is not."""

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

Run on a node as root it looks at the node's runtime; with a kubeconfig at the cluster; and it asks each registry that
nodes pulled from, or that is configured, for one image. Nothing is changed. Exit code 1: something has to be done.
"""
COLORS: Final = {"ok": "green", "warn": "yellow", "fix": "red", "skip": "bright_black"}
WIDTH: Final = 20
"""Characters for the subject."""


@click.command(cls=CliCommand, epilog=EXAMPLES)
@click.option("--runtime", type=click.Choice(["auto", "containerd", "crio", "cri"]), default="auto", show_default=True)
@click.option("--socket", type=click.Path(path_type=Path), help="The runtime's; default: where runtimes have it.")
@click.option(
    "--storage", type=click.Path(path_type=Path), help="CRI-O's storage folder; default: where it usually is."
)
@click.option("--kubeconfig", type=InputFile(), help="How to reach the cluster; default: as kubectl.")
@click.option("--context", default="", help="Which context of the kubeconfig.")
@click.option("--cluster/--no-cluster", default=True, help="Whether to look at the cluster.")
@click.option("--registries", type=InputFile(), help="What the scheduler is given as --registries.")
@click.option("--docker-config", type=InputFile(), help="Credentials for registries.")
@click.option("--ask-registries/--no-ask-registries", default=True, help="Whether to ask registries for an image.")
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
    """Look at runtime, cluster and registries: one line each, with what to do."""
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

    def tell(finding: "Finding") -> None:
        findings.append(finding)
        if output == "table":
            show(finding)

    asyncio.run(run_checks(order, tell))
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(findings), indent=2))
    elif output == "yaml":
        click.echo(msgspec.yaml.encode(findings), nl=False)
    if anything_broken(findings):
        click.get_current_context().exit(1)


def show(finding: "Finding") -> None:
    """Print one line, and below it what to do."""
    verdict = click.style(f"{finding.verdict:<5}", fg=COLORS[finding.verdict])
    click.echo(f"{verdict} {finding.subject:<{WIDTH}} {_plain(finding.told)}")
    if finding.advice:
        click.echo(f"{'':<{6 + WIDTH}} → {finding.advice}")


def _plain(told: str) -> str:
    """Let nothing through that would begin another line or mean something to a terminal: some of it others wrote."""
    return "".join(one if one.isprintable() else " " for one in told)
