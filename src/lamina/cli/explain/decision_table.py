"""Print a decision: node and reason, margin, score of each plugin, and what the chosen node saves."""

from typing import Final

import msgspec
from msgspec import UNSET
from rich import box
from rich.table import Table

from lamina.cli.explain.verdict_table import tables
from lamina.cli.output.screen import Screen, literal
from lamina.model.decision import Decision
from lamina.model.locality_explanation import LocalityExplanation, Savings
from lamina.model.plain import plural
from lamina.model.quantity import human_bytes

MORE: Final = "run the simulation with --detail full to see every node and every layer"


def print_decision(decision: Decision, *, profile: str = "", more: str = MORE, screen: Screen | None = None) -> None:
    """
    Print all of a decision.

    *profile* is the name of the configuration, if known; a decision only has the scheduler's name. *more* is printed if
    the decision omits nodes, and says how to see them.
    """
    screen = screen or Screen()
    scheduler = f"scheduler {literal(decision.profile)}"
    screen.say(
        f"profile {literal(profile)} ({scheduler})" if profile else f"profile of {scheduler}",
    )
    screen.say(
        f"attempt {decision.attempt} at {decision.at:,.1f} s: {decision.feasible:,} of {plural(decision.nodes, 'node')} fit"
    )
    screen.say(headline(decision, screen))
    if decision.verdicts or decision.chosen is not None:
        screen.say()
        show_nodes(decision, screen)
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
    """Return the outcome in one line."""
    if decision.chosen is None or decision.outcome != "placed":
        return literal(f"{decision.pod}: {decision.message}")
    text = f"{literal(decision.pod)} {screen.arrow} [bold]{literal(decision.chosen.node)}[/bold]"
    margin = decision.margin
    if decision.tied > 1:
        return f"{text}, one of {decision.tied} equally good nodes"
    if margin is None:
        return f"{text}, the only node that fits" if decision.feasible == 1 else text
    assert decision.runner_up is not None, "a margin needs a runner-up"
    return f"{text}, {plural(margin, 'point')} ahead of {literal(decision.runner_up.node)}"


def show_nodes(decision: Decision, screen: Screen, *, facts: bool = True) -> None:
    """Print the nodes as tables in the layout that fits the screen; *facts* adds the inputs of scores."""
    for drawn in tables(decision, screen, facts=facts):
        screen.console.print(drawn)


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
    """Return the first characters of a digest, enough to distinguish it."""
    algorithm, _, digits = digest.partition(":")
    return f"{algorithm}:{digits[:12]}"


def savings(decision: Decision) -> list[str]:
    """Return what the chosen node saves, compared with the mean node and with the runner-up."""
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
    """Return the explanations of other plugins, one line each, with the plugin's field names."""
    if decision.parts is UNSET:
        return []
    return [f"{plugin}: {msgspec.json.encode(part).decode()}" for plugin, part in decision.parts.items()]


def _more(saved: Savings) -> str:
    seconds = f"{abs(saved.seconds):,.1f} s {'sooner' if saved.seconds >= 0 else 'later'}"
    return f"{seconds}, {human_bytes(abs(saved.bytes))} {'less' if saved.bytes >= 0 else 'more'} to download"
