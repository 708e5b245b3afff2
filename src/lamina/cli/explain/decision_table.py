"""A decision as a table: each node, each plugin's points, what was refused and why, how close it was."""

import re
from typing import Final

import msgspec
from msgspec import UNSET
from rich import box
from rich.table import Table

from lamina.cli.output.screen import Screen, literal
from lamina.model.decision import Decision, NodeVerdict, PluginScore
from lamina.model.locality_explanation import LocalityExplanation, Savings
from lamina.model.quantity import human_bytes

COLUMN: Final = 10
"""Letters of a plugin's name side by side."""


def print_decision(
    decision: Decision, *, more: str = "run the simulation with --detail full to see every node and every layer"
) -> None:
    """Print everything a decision tells of; *more* is how to be told of every node, if it is not."""
    screen = Screen()
    screen.say(
        f"attempt {decision.attempt} at {decision.at:,.1f} s, scheduler {literal(decision.profile)}: "
        f"{decision.feasible} of {decision.nodes} nodes fit"
    )
    screen.say(headline(decision, screen))
    if decision.verdicts or decision.chosen is not None:
        screen.say()
        screen.console.print(table(decision, screen))
    if decision.locality is not None and decision.chosen is not None:
        if decision.locality.layers:
            screen.say(f"layers on {literal(decision.chosen.node)}, bottom first:")
            screen.console.print(layers(decision.locality, screen))
        for line in savings(decision):
            screen.say(literal(line))
    for line in parts(decision):
        screen.say(literal(line))
    for note in decision.notes:
        screen.say(f"[yellow]note[/yellow] {literal(note)}")
    if not decision.verdicts:
        screen.say(f"[dim]{more}[/dim]")


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
        lines = folded(plugin)
        header = literal("\n".join([*lines, weight]))
        drawn.add_column(header, justify="right", min_width=max(map(len, lines)), no_wrap=True)
    drawn.add_column("total", justify="right", no_wrap=True)
    drawn.add_column("", overflow="fold")
    for verdict in _ranked(verdicts):
        drawn.add_row(*_row(verdict, plugins, decision, screen, facts=facts))
    return drawn


def folded(name: str) -> list[str]:
    """Break a plugin's name between its words, so that many columns fit side by side."""
    lines: list[str] = []
    for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[^A-Z]+", name) or [name]:
        if lines and len(lines[-1]) + len(word) <= COLUMN:
            lines[-1] += word
        else:
            lines.append(word)
    return lines


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
        missing, present, arriving = (score.facts[one] for one in ("missing", "present", "arriving"))
        said = [f"has {human_bytes(present)}", f"would pull {human_bytes(missing)}"]
        if arriving:
            said.insert(1, f"{human_bytes(arriving)} arriving")
        said.append(f"ready in {score.facts['ready_ms'] / 1000:,.1f} s")
        if score.facts["crowding_ms"] < 0:
            said.append("too crowded")
        elif score.facts["crowding_ms"]:
            said.append(f"crowding {score.facts['crowding_ms'] / 1000:,.1f} s")
        return ", ".join(said)
    if "images" in score.facts:
        count = score.facts["images"]
        return f"lists {count} of the images" if count else ""
    return literal(", ".join(f"{name} {value}" for name, value in score.facts.items()))


def layers(story: LocalityExplanation, screen: Screen) -> Table:
    """Draw the layers of the pod's images on the chosen node, bottom first."""
    drawn = Table(box=box.SIMPLE_HEAD if screen.is_terminal else box.ASCII2, pad_edge=False)
    drawn.add_column("layer", no_wrap=True)
    drawn.add_column("size", justify="right", no_wrap=True)
    drawn.add_column("", no_wrap=True)
    for layer in story.layers:
        state = f"arriving, {layer.seconds:,.1f} s" if layer.state == "arriving" else layer.state
        style = "[bold]{}[/bold]" if layer.state == "missing" else "{}"
        drawn.add_row(literal(short(layer.digest)), human_bytes(layer.size), style.format(state))
    return drawn


def short(digest: str) -> str:
    """Write as much of a digest as tells it from others."""
    algorithm, _, digits = digest.partition(":")
    return f"{algorithm}:{digits[:12]}"


def savings(decision: Decision) -> list[str]:
    """Say what choosing the node saves, against the mean and against the runner-up."""
    story, chosen = decision.locality, decision.chosen
    if story is None or chosen is None:
        return []
    said = [
        f"images ready on {chosen.node} in {story.seconds:,.1f} s, {human_bytes(story.download)} to download",
    ]
    others = [("the mean feasible node", story.against_mean)]
    if decision.runner_up is not None:
        others.append((f"{decision.runner_up.node}, which came second", story.against_runner_up))
    for name, saved in others:
        if saved is not None:
            said.append(f"against {name}: {_more(saved)}")
    return said


def parts(decision: Decision) -> list[str]:
    """Write down what other plugins explain, one line each, field by field as they call them."""
    if decision.parts is UNSET:
        return []
    return [f"{plugin}: {msgspec.json.encode(part).decode()}" for plugin, part in decision.parts.items()]


def _more(saved: Savings) -> str:
    seconds = f"{abs(saved.seconds):,.1f} s {'sooner' if saved.seconds >= 0 else 'later'}"
    return f"{seconds}, {human_bytes(abs(saved.bytes))} {'less' if saved.bytes >= 0 else 'more'} to download"
