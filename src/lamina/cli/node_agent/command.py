"""``lamina node-agent``: report this node's image layers to the cluster, or print them."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from lamina.cli.options.cli_command import CliCommand
from lamina.cli.options.shared_options import output_option, verbosity_option
from lamina.cli.options.standard_input import InputFile

if TYPE_CHECKING:
    from lamina.clients.cri.runtime_source import RuntimeSource
    from lamina.services.node_agent.pipe_receiver import ReaderChannel
    from lamina.services.node_agent.runtime_reader import OpenSource

EXAMPLES: Final = """\b
Examples:
  lamina node-agent --once
  lamina node-agent --once -o json --runtime crio --storage /var/lib/containers/storage
  lamina node-agent --watch --socket /run/containerd/containerd.sock
  lamina node-agent --kubeconfig ~/.kube/config --node n1 --node-uid 5cf3f9c7-...
\b
As two containers of one pod, so that the one with the runtime's socket has neither token nor network:
  lamina node-agent --role reader --pipe /run/lamina/pipe
  lamina node-agent --role publisher --pipe /run/lamina/pipe

It never writes to the runtime and opens no port. See docs/node-agent.md.
"""
CHILD_FD_PREFIX: Final = "fd:"


@click.command("node-agent", cls=CliCommand, epilog=EXAMPLES)
@click.option("--once", is_flag=True, help="Print what this node holds, and exit. Needs no cluster.")
@click.option(
    "--watch", is_flag=True, help="Print it whenever it changes. Needs no cluster; with --role reader, log the changes."
)
@output_option("table", "json")
@click.option(
    "--runtime",
    type=click.Choice(["auto", "containerd", "crio", "cri"]),
    default="auto",
    show_default=True,
    help="Runtime to read: containerd's own API, CRI-O's files, or the CRI of any runtime.",
)
@click.option("--socket", type=click.Path(path_type=Path), help="Socket of the runtime; default: the usual paths.")
@click.option("--storage", type=click.Path(path_type=Path), help="CRI-O's storage folder.")
@click.option("--disk", type=click.Path(path_type=Path), help="A folder on the file system that stores images.")
@click.option(
    "--role",
    type=click.Choice(["both", "reader", "publisher"]),
    default="both",
    show_default=True,
    help="Which half of the node agent to run.",
)
@click.option("--pipe", help="The named pipe between the two halves.")
@click.option("--node", default="", help="This node's name; default: from the token.")
@click.option("--node-uid", default="", help="This node's uid; default: from the token.")
@click.option("--kubeconfig", type=InputFile(), help="Kubeconfig of the cluster; default: as kubectl.")
@click.option("--context", default="", help="Context of the kubeconfig.")
@click.option(
    "--heartbeat",
    type=click.FloatRange(10, 36_000),
    default=600.0,
    show_default=True,
    help="Seconds between two reports when nothing changes.",
)
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@verbosity_option()
def node_agent(  # noqa: PLR0913, PLR0917 - one argument for each option
    once: bool,
    watch: bool,
    output: str,
    runtime: str,
    socket: Path | None,
    storage: Path | None,
    disk: Path | None,
    role: str,
    pipe: str | None,
    node: str,
    node_uid: str,
    kubeconfig: Path | None,
    context: str,
    heartbeat: float,
    log_format: str,
    verbosity: int,
) -> None:
    """Report which image layers this node holds."""
    from lamina.services.node_agent import logs, wiring

    _check(once, watch, role, pipe)
    logs.set_up(verbosity, "json" if log_format == "json" else "text")

    async def open_source() -> "RuntimeSource":
        from lamina.clients.cri.runtime_discovery import find_source

        return await find_source(runtime, socket=socket, storage=storage, disk=disk)

    if once or (watch and role != "reader"):
        _print(open_source, node, watch=watch, output=output)
    elif role == "reader":
        _read(open_source, pipe or "", watch=watch)
    else:
        from lamina.clients.kube.access import load_access
        from lamina.services.node_agent.reader_channels import ChildProcessChannel, NamedPipeChannel

        options = {"--runtime": runtime, "--socket": socket, "--storage": storage, "--disk": disk}
        saying = ["-v", str(verbosity), "--log-format", log_format]
        looking = [f"{name}={value}" for name, value in options.items() if value is not None]
        door: ReaderChannel = (
            NamedPipeChannel(Path(pipe or ""))
            if role == "publisher"
            else ChildProcessChannel(lambda one: _child(one, looking + saying))
        )
        access = load_access(kubeconfig, context)
        wiring.run(wiring.serve_publisher(access, door, node=node, node_uid=node_uid, heartbeat=heartbeat))


def _check(once: bool, watch: bool, role: str, pipe: str | None) -> None:
    from lamina.model.errors import InputError

    if once and watch:
        raise InputError.one("--once", "not together with --watch; choose one")
    if once and (role != "both" or pipe is not None):
        raise InputError.one("--once", "not together with --role or --pipe; it only prints")
    if watch and role == "publisher":
        raise InputError.one("--watch", "not with --role publisher, which has no runtime; use --role reader")
    if watch and role == "both" and pipe is not None:
        raise InputError.one("--watch", "not together with --pipe; it only prints")
    if role == "both" and pipe is not None:
        raise InputError.one("--pipe", "needs --role reader or --role publisher; add one")
    if role != "both" and not pipe:
        raise InputError.one("--role", f"{role} needs the named pipe between reader and publisher; add --pipe PATH")
    if role == "publisher" and pipe is not None and pipe.startswith(CHILD_FD_PREFIX):
        raise InputError.one("--pipe", "a publisher needs a path")


def _child(number: int, words: list[str]) -> list[str]:
    import sys

    return [
        sys.executable,
        "-m",
        "lamina.cli.main",
        "node-agent",
        "--role=reader",
        f"--pipe={CHILD_FD_PREFIX}{number}",
        *words,
    ]


def _read(open_source: "OpenSource", pipe: str, *, watch: bool) -> None:
    import os

    from lamina.model.errors import InputError
    from lamina.services.node_agent import wiring
    from lamina.services.node_agent.pipe_sender import open_fifo

    if not pipe.startswith(CHILD_FD_PREFIX):
        wiring.refuse_token()
        wiring.confined()
        wiring.run(wiring.serve_reader(open_source, lambda: open_fifo(Path(pipe)), watch=watch))
        return
    # Started by a node agent with both roles: its pipe is already open, and no other one follows.
    number = pipe.removeprefix(CHILD_FD_PREFIX)
    try:
        os.set_blocking(int(number), False)
    except (ValueError, OSError):
        raise InputError.one("--pipe", f"{pipe!r:.40} is not an open pipe; write a path") from None
    wiring.confined()
    wiring.run(wiring.serve_reader(open_source, lambda: int(number), once=True))


def _print(open_source: "OpenSource", node: str, *, watch: bool, output: str) -> None:
    import os

    from lamina.cli.node_agent.node_inventory import InventoryPrinter, look_once, watch_runtime
    from lamina.clients.cri.runtime_source import RuntimeSourceError
    from lamina.services.node_agent import wiring

    wiring.confined()
    printer = InventoryPrinter(node or os.uname().nodename, output)
    if watch:
        wiring.run(watch_runtime(open_source, printer))
        return
    try:
        wiring.run(look_once(open_source, printer))
    except RuntimeSourceError as trouble:
        click.echo(str(trouble), err=True)
        click.get_current_context().exit(1)
