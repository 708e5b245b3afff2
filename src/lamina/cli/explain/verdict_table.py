"""
The nodes of a decision as tables: one row per node, or one column per node where rows are too wide.

The wide table ends with a column of notes: the mark of the chosen node, the inputs of a score, the reason of a refusal.
On a narrow screen scored nodes are side by side, as many as fit, the chosen node first. Refused nodes are listed below,
by reason. A name longer than its column continues on the next line: names and reasons are never cut.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from rich import box
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table

from lamina.cli.output.screen import Screen, literal
from lamina.model.decision import Decision, NodeVerdict, PluginScore
from lamina.model.quantity import human_bytes

HEAD: Final = 10
"""Letters per line of a plugin's name at the head of a column."""
LABEL: Final = 16
"""Letters per line of a plugin's name at the left of a row."""
NODE_COLUMN: Final = 16
"""Smallest width of a node's column: two nodes fit into 60 columns, three into 80."""
BORDER: Final = 3
"""Screen columns that each further table column takes besides its text."""
EDGES: Final = 2
"""Screen columns that the first table column takes besides its text."""
NOTE_LINES: Final = 3
"""Most lines of a note in the wide table; with a longer note the table is transposed."""


def tables(decision: Decision, screen: Screen, *, facts: bool = True) -> Iterator[RenderableType]:
    """
    Draw every node of the decision in the layout that fits; *facts* adds the inputs of scores.

    In brief detail a decision has only the chosen node and the runner-up.
    """
    told = decision.verdicts or tuple(one for one in (decision.chosen, decision.runner_up) if one is not None)
    verdicts = sorted(
        told, key=lambda one: (is_chosen(decision, one), -1 if one.total is None else one.total), reverse=True
    )
    wide = _Wide(decision, screen, verdicts, facts=facts)
    if wide.fits:
        yield wide.table()
        return
    scored = [one for one in verdicts if one.refusal is None]
    yield from _turned(decision, screen, scored, facts=facts)
    yield from _refused([one for one in verdicts if one.refusal is not None])


def is_chosen(decision: Decision, verdict: NodeVerdict) -> bool:
    """Return whether the pod was placed on this verdict's node."""
    return decision.outcome == "placed" and decision.chosen is not None and verdict.node == decision.chosen.node


def folded(name: str, width: int) -> list[str]:
    """Break a name between its words into lines of at most *width* letters; longer words are broken anywhere."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[^A-Z\-./_]*[\-./_]+|[A-Z]?[^A-Z\-./_]+", name)
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + len(word) <= width:
            lines[-1] += word
        else:
            lines.extend(word[start : start + width] for start in range(0, len(word), width))
    return lines or [""]


# -- one row per node ----------------------------------------------------------------------------------------------------


class _Wide:
    """The table with one row per node."""

    def __init__(self, decision: Decision, screen: Screen, verdicts: Sequence[NodeVerdict], *, facts: bool) -> None:
        self.decision = decision
        self.screen = screen
        self.verdicts = verdicts
        self.plugins = _weights(verdicts)
        self.notes = [_note(decision, one, facts=facts) for one in verdicts]

    @property
    def fits(self) -> bool:
        """Return whether every name fits on one line, and every note on three."""
        longest = max(map(len, self.notes), default=0)
        if not longest:
            return self.screen.width_of(self._head()) <= self.screen.console.width
        room = self.screen.console.width - self.screen.width_of(self.table(notes=False)) - BORDER
        word = max((len(word) for note in self.notes for word in note.split()), default=0)
        return room >= max(word, -(-longest // NOTE_LINES))

    def table(self, *, notes: bool = True) -> Table:
        drawn = self._head()
        if notes:
            drawn.add_column("", overflow="fold")
        for verdict, note in zip(self.verdicts, self.notes, strict=True):
            drawn.add_row(*self._cells(verdict), *([self._styled(verdict, note)] if notes else []))
        return drawn

    def _head(self) -> Table:
        drawn = _empty(self.screen)
        drawn.add_column("node", no_wrap=True)
        for plugin, weight in self.plugins.items():
            lines = folded(plugin, HEAD)
            head = literal("\n".join([*lines, _times(self.screen, weight)]))
            drawn.add_column(head, justify="right", min_width=max(map(len, lines)), no_wrap=True)
        drawn.add_column("total", justify="right", no_wrap=True)
        return drawn

    def _cells(self, verdict: NodeVerdict) -> list[str]:
        if verdict.refusal is not None:
            return [literal(verdict.node), *("" for _ in self.plugins), ""]
        given = {score.plugin: score.score for score in verdict.scores}
        style = "[bold]{}[/bold]" if is_chosen(self.decision, verdict) else "{}"
        return [
            style.format(literal(verdict.node)),
            *(str(given.get(plugin, "-")) for plugin in self.plugins),
            style.format(verdict.total),
        ]

    def _styled(self, verdict: NodeVerdict, note: str) -> str:
        if verdict.refusal is not None:
            return f"[dim]{literal(note)}[/dim]"
        if is_chosen(self.decision, verdict):
            return ", ".join([_mark(self.screen), *filter(None, [literal(note.removeprefix(MARK).removeprefix(", "))])])
        return literal(note)


# -- one column per node -------------------------------------------------------------------------------------------------


def _turned(decision: Decision, screen: Screen, scored: Sequence[NodeVerdict], *, facts: bool) -> Iterator[Table]:
    """Draw as many tables as needed, each with as many nodes side by side as fit."""
    labels = {plugin: _label(screen, plugin, weight) for plugin, weight in _weights(scored).items()}
    label = max((len(line) for text in labels.values() for line in text.split("\n")), default=0)
    room = screen.console.width - label - EDGES
    side_by_side = max(1, min(len(scored), room // (NODE_COLUMN + BORDER)))
    width = max(1, room // side_by_side - BORDER)
    for start in range(0, len(scored), side_by_side):
        nodes = scored[start : start + side_by_side]
        drawn = _empty(screen)
        drawn.add_column("node", no_wrap=True, min_width=label)
        for verdict in nodes:
            head = _node_head(decision, screen, verdict, width)
            drawn.add_column(head, justify="right", overflow="fold", max_width=width)
        for plugin, text in labels.items():
            given = [next((str(one.score) for one in node.scores if one.plugin == plugin), "-") for node in nodes]
            drawn.add_row(literal(text), *given)
        drawn.add_row("[bold]total[/bold]", *(f"[bold]{node.total}[/bold]" for node in nodes))
        if facts and any(_facts(node) for node in nodes):
            drawn.add_row("", *(literal("\n".join(_facts(node))) for node in nodes))
        yield drawn


def _label(screen: Screen, plugin: str, weight: int) -> str:
    return "\n  ".join(folded(plugin, LABEL)) + (f" {_times(screen, weight)}" if weight != 1 else "")


def _node_head(decision: Decision, screen: Screen, verdict: NodeVerdict, width: int) -> str:
    name = literal("\n".join(folded(verdict.node, width)))
    return f"{name}\n{_mark(screen)}" if is_chosen(decision, verdict) else name


def _refused(refused: Sequence[NodeVerdict]) -> Iterator[RenderableType]:
    """List refused nodes by plugin and reasons."""
    groups: dict[str, list[str]] = {}
    for verdict in refused:
        groups.setdefault(_refusal(verdict), []).append(verdict.node)
    for why, nodes in groups.items():
        yield f"refused by {literal(why)}"
        yield Padding(literal(", ".join(nodes)), (0, 0, 0, 2), expand=False)


# -- cells ---------------------------------------------------------------------------------------------------------------

MARK: Final = "* chosen"
"""The mark in ASCII; the drawn one has the same length."""


def _mark(screen: Screen) -> str:
    return f"[bold green]{screen.tick} chosen[/bold green]"


def _empty(screen: Screen) -> Table:
    return Table(box=box.SIMPLE_HEAD if screen.is_terminal else box.ASCII2, pad_edge=False)


def _times(screen: Screen, weight: int) -> str:
    return f"{screen.times}{weight}" if weight != 1 else ""


def _weights(verdicts: Sequence[NodeVerdict]) -> dict[str, int]:
    """Return the plugins that scored, in order, and their weights."""
    return {score.plugin: score.weight for verdict in verdicts for score in verdict.scores}


def _note(decision: Decision, verdict: NodeVerdict, *, facts: bool) -> str:
    if verdict.refusal is not None:
        return _refusal(verdict)
    mark = MARK if is_chosen(decision, verdict) else ""
    return ", ".join(filter(None, (mark, *(_facts(verdict) if facts else ()))))


def _refusal(verdict: NodeVerdict) -> str:
    assert verdict.refusal is not None, "only refused nodes have a refusal"
    return f"{verdict.refusal.plugin}: {', '.join(verdict.refusal.reasons)}"


def _facts(verdict: NodeVerdict) -> list[str]:
    return [fact for score in verdict.scores for fact in _facts_of(score)]


def _facts_of(score: PluginScore) -> list[str]:
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
        return said
    if "images" in score.facts:
        count = score.facts["images"]
        return [f"lists {count} of the images"] if count else []
    return [f"{name} {value}" for name, value in score.facts.items()]
