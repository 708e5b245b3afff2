"""Print what a pod's status and annotations say about its placement."""

from rich import box
from rich.table import Table

from lamina.cli.output.screen import Screen, literal
from lamina.model.plain import plural
from lamina.model.quantity import human_bytes
from lamina.wire.decision_note import DecisionNote, NotedSaving
from lamina.wire.kube.pod_placement import PodPlacement


def print_pod_status(told: PodPlacement) -> None:
    """Print why a pod is on its node or why it is pending, from the pod alone."""
    screen = Screen()
    if not told.node:
        why = f": {literal(told.message)}" if told.message else ""
        reason = f" ({told.reason})" if told.reason else ", and its scheduler has given no reason"
        screen.say(f"{literal(told.pod)} waits for scheduler {literal(told.scheduler)}{literal(reason)}{why}")
        return
    screen.say(
        f"{literal(told.pod)} {screen.arrow} [bold]{literal(told.node)}[/bold], by scheduler {literal(told.scheduler)}"
    )
    if told.odd_note:
        screen.say(f"[yellow]note[/yellow] {literal(told.odd_note)}")
        return
    if told.note is None:
        screen.say("[dim]the pod has no decision by Lamina: another scheduler placed it[/dim]")
        return
    if told.note.node != told.node:
        screen.say(f"[yellow]note[/yellow] the pod's decision names another node: {literal(told.note.node)}")
    _print_note(told.note, screen)


def _print_note(note: DecisionNote, screen: Screen) -> None:
    screen.say(f"attempt {note.attempt}: {note.feasible} of {plural(note.nodes, 'node')} fit")
    if note.tied > 1:
        screen.say(f"one of {note.tied} equally good nodes")
    elif note.runner_up is not None:
        screen.say(f"{plural(note.total - note.runner_up.total, 'point')} ahead of {literal(note.runner_up.node)}")
    if note.points:
        drawn = Table(box=box.SIMPLE_HEAD if screen.is_terminal else box.ASCII2, pad_edge=False)
        drawn.add_column("plugin", no_wrap=True)
        drawn.add_column("points", justify="right", no_wrap=True)
        for plugin, points in note.points.items():
            drawn.add_row(literal(plugin), str(points))
        drawn.add_row("[bold]total[/bold]", f"[bold]{note.total}[/bold]")
        screen.console.print(drawn)
    for line in _savings(note):
        screen.say(literal(line))
    screen.say("[dim]every node: --scheduler URL, while the scheduler keeps the decision[/dim]")


def _savings(note: DecisionNote) -> list[str]:
    if note.seconds is None:
        return ["its images were unknown: layers did not influence the choice"]
    said = [f"images ready in {note.seconds:,.1f} s, {human_bytes(note.download or 0)} to download, as estimated"]
    if note.against_mean is not None:
        said.append(f"against the mean feasible node: {_more(note.against_mean)}")
    if note.against_runner_up is not None and note.runner_up is not None:
        said.append(f"against {note.runner_up.node}, which came second: {_more(note.against_runner_up)}")
    return said


def _more(saved: NotedSaving) -> str:
    seconds = f"{abs(saved.seconds):,.1f} s {'sooner' if saved.seconds >= 0 else 'later'}"
    return f"{seconds}, {human_bytes(abs(saved.bytes))} {'less' if saved.bytes >= 0 else 'more'} to download"
