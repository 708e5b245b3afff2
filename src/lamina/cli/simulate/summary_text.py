"""Print a run's summary."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from rich import box
from rich.table import Table

from lamina.cli.output.command_name import command_name
from lamina.cli.output.screen import Screen, literal
from lamina.model.plain import plural
from lamina.model.quantity import human_bytes

NODES: Final = 20
PENDING: Final = 10
"""Most pending pods to list; the rest are counted."""

NEVER_STARTED: Final = {
    "pending": "pending without a node",
    "pulling": "still pulling",
    "starting": "still starting",
    "stopping": "stopping",
    "rejected": "rejected by their node",
    "failed": "failed or evicted",
    "removed": "removed",
}
"""State of pods that never started → words."""

SPANS: Final = {
    "queue": "waiting to be tried",
    "decision": "decided and bound",
    "pull_queue": "waiting for its pulls",
    "download": "downloading",
    "unpack": "unpacking",
    "start": "starting",
    "total": "arrival to running",
}
"""Phase of a pod's start → words; the last is the total."""


def print_summary(figures: dict[str, Any], out: Path | None, pod: str = "") -> None:
    """Print a run's figures, where its files are, and the command that explains the decision about *pod*."""
    screen = Screen()
    pods = figures["pods"]
    screen.say(
        f"[bold]{literal(figures['scenario'])}[/bold] under [bold]{literal(figures['profile'])}[/bold], "
        f"seed {figures['seed']}: "
        f"{pods['started']} of {plural(pods['total'], 'pod')} started in {figures['virtual_seconds']:,.1f} virtual seconds"
    )
    for line in _lines(figures):
        screen.say(line)
    screen.say()
    screen.console.print(_seconds(screen, figures["startup_seconds"]))
    screen.console.print(_nodes(screen, figures["nodes"]))
    if len(figures["nodes"]) > NODES:
        screen.say(f"and {len(figures['nodes']) - NODES} more nodes")
    for pending in pods["pending"][:PENDING]:
        screen.say(f"[yellow]pending[/yellow] {literal(pending['pod'])}: {literal(pending['message'])}")
    if len(pods["pending"]) > PENDING:
        screen.say(f"and {len(pods['pending']) - PENDING} more pending pods")
    if out is not None:
        screen.say(literal(f"\ntrace, summary and tables are in {out}" + ("; next:" if pod else "")))
    if out is not None and pod:
        screen.say_command(f"{command_name()} explain {shlex.quote(pod)} --trace {shlex.quote(str(out))}")


def _lines(figures: dict[str, Any]) -> Iterator[str]:
    """Yield one line per figure; figures of things that did not happen are omitted."""
    never = figures["pods"]["not_started"]
    if never["total"]:
        parts = ", ".join(f"{never[phase]} {what}" for phase, what in NEVER_STARTED.items() if never[phase])
        yield f"[yellow]{plural(never['total'], 'pod')} not started[/yellow]: {parts}; start times cover the others"
    share = "" if figures["hits"] is None else f", {figures['hits']:.0%} of the needed bytes"
    yield (
        f"{figures['pulls']} image pulls, {human_bytes(figures['bytes_pulled'])} downloaded, "
        f"{human_bytes(figures['bytes_hit'])} found in place{share}"
    )
    # Summaries of older releases have the former names.
    peak_load = figures.get("peak_load", figures.get("heating"))
    imbalance = figures.get("imbalance", figures.get("balance"))
    if peak_load is not None:
        yield (
            f"requested cpu: the busiest node had {peak_load:.2f} times the mean, "
            f"coefficient of variation {imbalance:.2f}"
        )
    utilisation = figures["utilisation"]
    if utilisation["requested"] is not None:
        yield f"{utilisation['requested']:.0%} of all cpu was requested, {utilisation['used']:.0%} used"
    if figures.get("overload_seconds") is not None:
        yield f"nodes used more than 90 % of their cpu or memory for {figures['overload_seconds']:,.0f} node-seconds"
    if "qos" in figures:
        yield from promise_lines(figures["qos"])
    if figures["slowdown"]["mean"] is not None:
        slowdown = figures["slowdown"]
        yield f"bounded slowdown: {slowdown['mean']:.2f} on average, {slowdown['p95']:.2f} at p95"
    gc = figures["gc"]
    if gc["images"]:
        yield (
            f"{plural(gc['images'], 'image')} removed by GC, {human_bytes(gc['bytes'])}; "
            f"{gc['pressure_images']} of them because a disk was nearly full"
        )
    troubles = [
        f"{number} {what}"
        for number, what in (
            (figures["evictions"], "pods evicted"),
            (figures["failures"], "pods failed"),
            (figures["restarts"], "restarts"),
            (figures["pull_failures"], "failed pulls that were retried"),
        )
        if number
    ]
    if troubles:
        yield ", ".join(troubles)
    yield from _scheduler_lines(figures)
    yield from _latency_lines(figures["latency"])


def _scheduler_lines(figures: dict[str, Any]) -> Iterator[str]:
    """Yield how the scheduler of another program behaved."""
    if "batsim" in figures:
        batsim = figures["batsim"]
        yield f"{literal(batsim['scheduler'])} answered {plural(batsim['messages'], 'message')}"
    if "settle" in figures:
        yield from settle_lines(figures["settle"], figures["starved"])


def _latency_lines(latency: str) -> Iterator[str]:
    if latency == "measured":
        yield "attempts took the time measured on this machine: another run gives other figures"
    elif latency == "stated":
        yield "decisions took the time that the scheduler stated in its messages"
    elif latency != "free":
        yield f"each attempt took {latency}"


def promise_lines(qos: dict[str, Any]) -> Iterator[str]:
    """Yield one line for each class of controllers: how they kept the availability that they promised."""
    for name, one in qos["classes"].items():
        evicted = sum(one["disruptions"].values())
        yield (
            f"{literal(name)}: {one['met']:.0%} of {plural(one['controllers'], 'controller')} kept the SLO; "
            f"availability {one['mean']:.3f} on average, {one['min']:.3f} at least"
            + (f"; {plural(evicted, 'eviction')}" if evicted else "")
        )
    if qos["capacity_lost"] is not None:
        yield f"{qos['capacity_lost']:.1%} of the cpu that pods could have used was lost"


def settle_lines(settle: dict[str, Any], starved: dict[str, Any]) -> Iterator[str]:
    """Yield how the foreign scheduler settled, and which pods it left behind."""
    cost = "" if settle["ms_per_decision"] is None else f", {settle['ms_per_decision']:,.1f} ms per decision"
    yield f"{literal(settle['scheduler'])} settled by {literal(settle['method'])}: {plural(settle['checks'], 'check')}{cost}"
    if not settle["proven"]:
        yield (
            "[yellow]not proven[/yellow]: nothing shows for certain that the scheduler had finished; it may have decided later"
        )
    if settle["limits_hit"]:
        yield f"[yellow]{plural(settle['limits_hit'], 'time limit')} ended a wait[/yellow]: the figures may be wrong"
    if starved["total"]:
        names = ", ".join(map(literal, starved["pods"][:PENDING]))
        more = f" and {starved['total'] - PENDING} more" if starved["total"] > PENDING else ""
        yield f"[yellow]{plural(starved['total'], 'pod')} starved[/yellow], pending although a node has room: {names}{more}"


def _seconds(screen: Screen, startup: dict[str, dict[str, float | None]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD if screen.is_terminal else box.ASCII2, pad_edge=False)
    table.add_column("seconds")
    for column in startup["total"]:
        table.add_column(column, justify="right")
    for name, what in SPANS.items():
        if name == "total":
            table.add_section()
        table.add_row(what, *("-" if value is None else f"{value:,.2f}" for value in startup[name].values()))
    return table


def _nodes(screen: Screen, nodes: list[dict[str, Any]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD if screen.is_terminal else box.ASCII2, pad_edge=False)
    for column in ("node", "pods", "pulls", "downloaded"):
        table.add_column(column, justify="left" if column == "node" else "right")
    table.add_column("")
    busiest = max((node["bytes_pulled"] for node in nodes), default=0)
    for node in nodes[:NODES]:
        table.add_row(
            literal(node["node"]),
            str(node["pods"]),
            str(node["pulls"]),
            human_bytes(node["bytes_pulled"]),
            screen.bar(node["bytes_pulled"], busiest, 20),
        )
    return table
