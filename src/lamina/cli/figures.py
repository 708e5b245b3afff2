"""A run's summary as a page of text."""

from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from lamina.cli.screen import Screen, literal
from lamina.model.quantity import human_bytes


def show(figures: dict[str, Any], out: Path | None) -> None:
    """Print what a run came to, and where the files are."""
    screen = Screen()
    pods = figures["pods"]
    screen.say(
        f"[bold]{literal(figures['scenario'])}[/bold] under [bold]{literal(figures['profile'])}[/bold], "
        f"seed {figures['seed']}: "
        f"{pods['started']} of {pods['total']} pods started in {figures['virtual_seconds']:,.1f} virtual seconds"
    )
    screen.say(
        f"{figures['pulls']} image pulls, {human_bytes(figures['bytes_pulled'])} downloaded, "
        f"{human_bytes(figures['bytes_hit'])} found in place"
    )
    if figures["heating"] is not None:
        screen.say(
            f"requested cpu: the busiest node had {figures['heating']:.2f} times the mean, "
            f"coefficient of variation {figures['balance']:.2f}"
        )
    seconds = Table(box=box.SIMPLE_HEAD if screen.is_terminal else box.ASCII2, pad_edge=False)
    seconds.add_column("seconds")
    for column in ("p50", "p95", "p99", "mean", "max"):
        seconds.add_column(column, justify="right")
    for name, what in (
        ("waiting", "arrival to binding"),
        ("pulling", "binding to running"),
        ("total", "arrival to running"),
    ):
        spread = figures["startup_seconds"][name]
        seconds.add_row(what, *("-" if value is None else f"{value:,.2f}" for value in spread.values()))
    screen.say()
    screen.console.print(seconds)
    nodes = Table(box=box.SIMPLE_HEAD if screen.is_terminal else box.ASCII2, pad_edge=False)
    for column in ("node", "pods", "pulls", "downloaded"):
        nodes.add_column(column, justify="left" if column == "node" else "right")
    busiest = max((node["bytes_pulled"] for node in figures["nodes"]), default=0)
    nodes.add_column("")
    for node in figures["nodes"][:20]:
        nodes.add_row(
            literal(node["node"]),
            str(node["pods"]),
            str(node["pulls"]),
            human_bytes(node["bytes_pulled"]),
            screen.bar(node["bytes_pulled"], busiest, 20),
        )
    screen.console.print(nodes)
    if len(figures["nodes"]) > 20:
        screen.say(f"and {len(figures['nodes']) - 20} more nodes")
    for pending in pods["pending"][:10]:
        screen.say(f"[yellow]pending[/yellow] {literal(pending['pod'])}: {literal(pending['message'])}")
    if len(pods["pending"]) > 10:
        screen.say(f"and {len(pods['pending']) - 10} more pending pods")
    if out is not None:
        screen.say(literal(f"\ntrace and summary are in {out}; next: lamina explain POD --trace {out}"))
