"""A decision as a table: each node, each plugin's points, what was refused and why, how close it was."""

from rich import box
from rich.table import Table

from lamina.cli.screen import Screen, literal
from lamina.model.decision import Decision, NodeVerdict, PluginScore
from lamina.model.quantity import human_bytes


def headline(decision: Decision, screen: Screen) -> str:
    """Say in one line what came out."""
    if decision.chosen is None or decision.outcome != "placed":
        return literal(f"{decision.pod}: {decision.message}")
    text = f"{literal(decision.pod)} {screen.arrow} [bold]{literal(decision.chosen.node)}[/bold]"
    margin = decision.margin
    if decision.tied > 1:
        return f"{text}, one of {decision.tied} equally good nodes"
    if margin is None:
        return f"{text}, the only node that fits" if decision.feasible == 1 else text
    assert decision.runner_up is not None, "a margin is to somebody"
    return f"{text}, {margin} points ahead of {literal(decision.runner_up.node)}"


def table(decision: Decision, screen: Screen, *, facts: bool = True) -> Table:
    """Draw every node that is told of; in brief detail that is the chosen one and the runner-up."""
    verdicts = decision.verdicts or tuple(one for one in (decision.chosen, decision.runner_up) if one is not None)
    plugins = list(dict.fromkeys(score.plugin for verdict in verdicts for score in verdict.scores))
    weights = {score.plugin: score.weight for verdict in verdicts for score in verdict.scores}
    drawn = Table(box=box.SIMPLE_HEAD if screen.is_terminal else box.ASCII2, pad_edge=False)
    drawn.add_column("node", no_wrap=True)
    for plugin in plugins:
        weight = f"{screen.times}{weights[plugin]}" if weights[plugin] != 1 else ""
        drawn.add_column(literal(plugin) + f"\n{weight}", justify="right", min_width=len(plugin), no_wrap=True)
    drawn.add_column("total", justify="right", no_wrap=True)
    drawn.add_column("", overflow="fold")
    for verdict in _ranked(verdicts):
        drawn.add_row(*_row(verdict, plugins, decision, screen, facts=facts))
    return drawn


def _ranked(verdicts: tuple[NodeVerdict, ...]) -> list[NodeVerdict]:
    return sorted(verdicts, key=lambda one: -1 if one.total is None else one.total, reverse=True)


def _row(verdict: NodeVerdict, plugins: list[str], decision: Decision, screen: Screen, *, facts: bool) -> list[str]:
    if verdict.refusal is not None:
        note = ", ".join(verdict.refusal.reasons)
        if not screen.narrow:
            note = f"{verdict.refusal.plugin}: {note}"
        return [literal(verdict.node), *("" for _ in plugins), "", f"[dim]{literal(note)}[/dim]"]
    given = {score.plugin: score for score in verdict.scores}
    chosen = decision.chosen is not None and verdict.node == decision.chosen.node and decision.outcome == "placed"
    mark = f"[bold green]{screen.tick} chosen[/bold green]" if chosen else ""
    style = "[bold]{}[/bold]" if chosen else "{}"
    notes = ", ".join(filter(None, (mark, *(_facts(score) for score in verdict.scores if facts))))
    return [
        style.format(literal(verdict.node)),
        *(str(given[plugin].score) if plugin in given else "-" for plugin in plugins),
        style.format(verdict.total),
        notes,
    ]


def _facts(score: PluginScore) -> str:
    if "missing" in score.facts:
        missing, present = score.facts["missing"], score.facts["present"]
        return f"has {human_bytes(present)}, would pull {human_bytes(missing)}"
    if "images" in score.facts:
        count = score.facts["images"]
        return f"lists {count} of the images" if count else ""
    return literal(", ".join(f"{name} {value}" for name, value in score.facts.items()))
