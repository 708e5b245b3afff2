"""
`python -m testbed`: build the parts, start and stop control planes, list those that are up.

Exit codes: 0 done, 1 something does not work, 2 bad usage.
"""

import sys
import time
from typing import Final

import click

from testbed import building, containerd, runs
from testbed import parts as catalog
from testbed import real_nodes as kubelets
from testbed.bed import SMALLEST, Testbed
from testbed.errors import TestbedError
from testbed.launching import LAUNCHERS

EXAMPLES: Final = """\b
Examples:
  python -m testbed up --nodes 3
  python -m testbed status
  python -m testbed down
"""
UP_EXAMPLES: Final = """\b
Examples:
  python -m testbed up --nodes 1000
  python -m testbed up --name old --version 1.30.14
  python -m testbed up --parts kube-scheduler,kube-controller-manager --real-nodes 2
"""
BUILD_EXAMPLES: Final = """\b
Examples:
  python -m testbed build
  python -m testbed build etcd kube-apiserver kubectl
  python -m testbed build kube-scheduler kubectl --version 1.37.1 --version 1.30.14
  python -m testbed build random-scheduler kube-batch volcano kwok
"""

versions = click.Choice(catalog.VERSIONS)
named = click.option(
    "--name", default="default", show_default=True, help="Name of the testbed; several can be up at once."
)


@click.group(epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
def testbed() -> None:
    """A real Kubernetes control plane on this machine's loopback interface."""


@testbed.command(epilog=UP_EXAMPLES)
@named
@click.option("--version", type=versions, default=catalog.KUBERNETES, show_default=True, help="Of Kubernetes.")
@click.option("--nodes", type=click.IntRange(0, 10_000), default=0, help="Nodes that exist in the API only.")
@click.option("--real-nodes", type=click.IntRange(0, 9), default=0, help="Nodes that run containers; root only.")
@click.option("--parts", "wanted", default="", metavar="A,B", help=f"Parts to start besides {' and '.join(SMALLEST)}.")
def up(name: str, version: str, nodes: int, real_nodes: int, wanted: str) -> None:
    """Start a testbed and leave it running."""
    begun = time.monotonic()
    asked = listed(wanted, list(LAUNCHERS))
    folder = runs.folder(name)
    needed = [*SMALLEST, "kubectl", *asked]
    if real_nodes:
        containerd.check()
        needed += kubelets.PARTS
    building.build([catalog.find(part, version) for part in dict.fromkeys(needed)])
    bed = Testbed.start(version, asked, folder=folder)
    try:
        bed.add_nodes({"name": f"node-{number}"} for number in range(1, nodes + 1))
        for number in range(1, real_nodes + 1):
            bed.add_real_node(f"real-{number}")
        note = runs.remember(name, bed)
    except BaseException:
        bed.stop()
        raise
    bed.leave()
    ending = "" if name == "default" else f" --name {name}"
    click.echo(f"Kubernetes {version} is up at {note.url}, {time.monotonic() - begun:.1f} s")
    click.echo(f"  export KUBECONFIG={note.kubeconfig}")
    click.echo(f"  {note.kubectl} get nodes")
    click.echo(f"  python -m testbed down{ending}")


@testbed.command(epilog="\b\nExamples:\n  python -m testbed down\n  python -m testbed down --all")
@named
@click.option("--all", "everything", is_flag=True, help="End every testbed that is up.")
def down(name: str, everything: bool) -> None:
    """End a testbed that `up` started, and remove its files."""
    one = runs.find(runs.checked(name))
    notes = list(runs.every()) if everything else [one] if one else []
    if not notes:
        click.echo("nothing is up" if everything else f"no testbed {name!r} is up")
    for note in notes:
        was = "ended" if note.running else "was dead; cleared away"
        runs.down(note)
        click.echo(f"{note.name}: {was}")


@testbed.command(epilog="\b\nExamples:\n  python -m testbed status")
def status() -> None:
    """List the testbeds that `up` started."""
    notes = list(runs.every())
    if not notes:
        click.echo("nothing is up")
    for note in notes:
        click.echo(f"{note.name}: Kubernetes {note.version} at {note.url}")
        click.echo(f"  kubeconfig {note.kubeconfig}")
        for part, process in note.parts.items():
            click.echo(f"  {part:24} {f'process {process.pid}' if process.running else 'dead'}")


@testbed.command(epilog=BUILD_EXAMPLES)
@click.option(
    "--version",
    "wanted",
    type=versions,
    multiple=True,
    default=[catalog.KUBERNETES],
    help="Kubernetes version; may be repeated.",
)
@click.argument("names", nargs=-1, metavar="[PART]...", type=click.Choice(catalog.names()))
def build(wanted: tuple[str, ...], names: tuple[str, ...]) -> None:
    """
    Build parts into the cache folder, and print where they are.

    Without a PART: the control plane and what runs its nodes. The schedulers of other projects, and kwok, are built only
    when they are named.
    """
    chosen = catalog.select(names, wanted)
    building.build(chosen)
    for part in chosen:
        click.echo(f"{part.name:24} {part.version:8} {building.place(part)}")


def listed(text: str, known: list[str]) -> list[str]:
    """Return the names of a comma-separated list. Raises UsageError for an unknown name."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in known:
            raise click.UsageError(f"there is no part {name!r}; choose from {', '.join(known)}")
    return names


def main() -> None:
    """Run the command; a failure prints one line or the end of a log, and no traceback."""
    try:
        testbed(prog_name="python -m testbed")
    except TestbedError as error:
        click.echo(f"testbed: {error}", err=True)
        sys.exit(1)
