"""
What plugins answered about all nodes, shared by shapes that look the same to a plugin.

A new shape is seldom new to everybody: another image with the same requests and tolerations is news to one plugin out of
four. What was answered is kept with the positions the logs had then. Where the plugin looks at each node by itself it is
asked about the rows that changed since, and the rest of the answer holds; where anything else it reads has changed, it
answers anew. What shapes are handed is shared: they read it, and copy it before they write.
"""

from collections.abc import Callable, Hashable
from typing import Final

import numpy as np

from lamina.model.decision import Refusal
from lamina.model.pod import Pod
from lamina.scheduling.framework.columns import Bools, Ints, NodeColumns
from lamina.scheduling.framework.cycle_state import CycleState
from lamina.scheduling.framework.points import Verdicts
from lamina.scheduling.framework.profile import FilterPart, ScorePart
from lamina.scheduling.framework.view import NodeRow, NodeView, only

# Up to this many changed rows are asked one by one in plain integers; more, as arrays. Measured with the plugins in tree
# after placements: 3.5 µs a row against 29 µs for any number of them.
FEW: Final = 8
# What the answers of one kind may use; beyond that the one not asked for longest is let go.
KEPT_BYTES: Final = 32 * 1024 * 1024
KEPT_AT_LEAST: Final = 64
# What an answer must be made of for rows of it to be replaced.
SCORES: Final = np.dtype(np.int64)
CODES: Final = (SCORES, np.dtype(np.bool_))

Version = tuple[int, ...]
Key = tuple[str, Hashable]


def a_few_of(columns: NodeColumns) -> int:
    """Return how many rows may have changed for it to be worth looking at those only."""
    return columns.size // 4 + FEW


class Kept:
    """An answer, and where the logs stood when it was given."""

    __slots__ = ("positions", "tell", "values", "version")

    def __init__(self, version: Version, positions: list[int], values: Ints | Bools | None) -> None:
        """Keep codes or scores; None when all nodes passed."""
        self.version = version
        self.positions = positions
        """Of what is read row by row."""
        self.values = values
        self.tell: Callable[[int], Refusal] | None = None
        """What a filter's codes mean."""


class Answers:
    """Answers by plugin and signature, longest unused first."""

    def __init__(self, columns: NodeColumns) -> None:
        """Keep answers about these columns."""
        self._columns = columns
        self._verdicts: dict[Key, Kept] = {}
        self._scores: dict[Key, Kept] = {}

    # -- filters -----------------------------------------------------------------------------------------------------

    def filter(self, part: FilterPart, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
        """Return what a filter says of all nodes; to be read only. *state* is what it prepared for this pod."""
        if part.signer is None:
            return part.plugin.filter(state, pod, nodes)
        key = (part.name, part.signer.sign(pod))
        # Taken out first: one that a plugin left half done by raising must not be found again.
        kept = self._verdicts.pop(key, None)
        if kept is None or not self._update_codes(kept, part, state, pod):
            self._make_room(self._verdicts)
            kept = Kept(self._version(part), self._positions(part), None)
            verdicts = part.plugin.filter(state, pod, nodes)
            if verdicts is not None:
                if verdicts.codes.shape != (len(nodes),) or verdicts.codes.dtype not in CODES:
                    return verdicts
                kept.values, kept.tell = verdicts.codes, verdicts.tell
        self._verdicts[key] = kept
        return None if kept.values is None or kept.tell is None else Verdicts(kept.values, kept.tell)

    def filter_some(self, part: FilterPart, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
        """Return what a filter says of some nodes: looked up where somebody has asked about most of them already."""
        key = self._nearly_known(self._verdicts, part, pod, len(nodes))
        if key is not None:
            kept = self._verdicts.pop(key)
            if self._update_codes(kept, part, state, pod):
                self._verdicts[key] = kept
                if kept.values is None or kept.tell is None:
                    return None
                return Verdicts(kept.values[nodes.rows], kept.tell)
        return part.plugin.filter(state, pod, nodes)

    def _update_codes(self, kept: Kept, part: FilterPart, state: CycleState, pod: Pod) -> bool:
        """Ask a filter about the rows that changed; False when it has to be asked about all of them."""
        rows = self._behind(part, kept)
        if not rows:
            return rows is not None
        if len(rows) > FEW or part.by_node is None:
            return self._replace_codes(kept, rows, part.plugin.filter(state, pod, only(self._columns, rows)))
        refused: list[int] = []
        for row in rows:
            # What is said of a row without a node is void; a node that takes the row over touches every facet.
            if not self._columns.alive.item(row):
                continue
            code = part.by_node.filter_node(state, pod, NodeRow(self._columns, row))
            if kept.values is None:
                if code:
                    refused.append(row)
            elif code != kept.values.item(row):
                # Not in place: shapes look at the old ones.
                kept.values = kept.values.copy()
                kept.values[row] = code
        if refused:
            # The first refusals of a filter that passed every node so far: asked as an array, for its words.
            return self._replace_codes(kept, refused, part.plugin.filter(state, pod, only(self._columns, refused)))
        return True

    def _replace_codes(self, kept: Kept, rows: list[int], verdicts: Verdicts | None) -> bool:
        if verdicts is None and kept.values is None:
            return True
        if kept.values is None:
            kept.values = np.zeros(self._columns.size, dtype=np.int64)
        elif verdicts is not None and verdicts.codes.dtype != kept.values.dtype:
            return False
        else:
            kept.values = kept.values.copy()
        kept.values[rows] = 0 if verdicts is None else verdicts.codes
        if verdicts is not None:
            kept.tell = verdicts.tell
        return True

    # -- scorers -----------------------------------------------------------------------------------------------------

    def score(self, part: ScorePart, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Return what a scorer gives all nodes, before it normalises; to be read at once, and only read."""
        if part.signer is None:
            return part.plugin.score(state, pod, nodes)
        key = (part.name, part.signer.sign(pod))
        kept = self._scores.pop(key, None)
        if kept is None or not self._update_scores(kept, part, state, pod):
            self._make_room(self._scores)
            scores = part.plugin.score(state, pod, nodes)
            if scores.shape != (len(nodes),) or scores.dtype != SCORES:
                return scores
            kept = Kept(self._version(part), self._positions(part), scores)
        self._scores[key] = kept
        assert kept.values is not None, "whoever scores says something"
        return kept.values

    def score_some(self, part: ScorePart, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Return what a scorer gives some nodes, likewise."""
        key = self._nearly_known(self._scores, part, pod, len(nodes))
        if key is not None:
            kept = self._scores.pop(key)
            if self._update_scores(kept, part, state, pod):
                self._scores[key] = kept
                assert kept.values is not None, "whoever scores says something"
                return kept.values[nodes.rows]
        return part.plugin.score(state, pod, nodes)

    def _update_scores(self, kept: Kept, part: ScorePart, state: CycleState, pod: Pod) -> bool:
        rows = self._behind(part, kept)
        if not rows:
            return rows is not None
        values = kept.values
        assert values is not None, "whoever scores says something"
        if len(rows) > FEW or part.by_node is None:
            scores = part.plugin.score(state, pod, only(self._columns, rows))
            values[rows] = scores
            return scores.dtype == SCORES
        for row in rows:
            if self._columns.alive.item(row):
                values[row] = part.by_node.score_node(state, pod, NodeRow(self._columns, row))
        return True

    # -- keeping -----------------------------------------------------------------------------------------------------

    def _behind(self, part: FilterPart | ScorePart, kept: Kept) -> list[int] | None:
        """List the rows that changed since, and count them as seen; None: something else did, or too many."""
        if kept.version != self._version(part):
            return None
        rows: list[int] = []
        logs, positions = self._columns.logs, kept.positions
        for place, facet in enumerate(part.by_row):
            log = logs[facet]
            if log.position != positions[place]:
                touched = log.since(positions[place])
                if touched is None:
                    return None
                rows = touched if not rows else rows + touched
                positions[place] = log.position
        if len(rows) <= 1:
            return rows
        rows = sorted(set(rows))
        return rows if len(rows) <= a_few_of(self._columns) else None

    def _nearly_known(self, among: dict[Key, Kept], part: FilterPart | ScorePart, pod: Pod, count: int) -> Key | None:
        """Find an answer that is so much newer than *count* rows that bringing it up to date is less work than asking."""
        if part.signer is None:
            return None
        key = (part.name, part.signer.sign(pod))
        kept = among.get(key)
        if kept is None:
            return None
        logs = self._columns.logs
        behind = sum([logs[facet].position - at for facet, at in zip(part.by_row, kept.positions, strict=True)])
        return key if 2 * behind <= count else None

    def _make_room(self, among: dict[Key, Kept]) -> None:
        if len(among) >= max(KEPT_AT_LEAST, KEPT_BYTES // (8 * max(1, self._columns.size))):
            del among[next(iter(among))]

    def _version(self, part: FilterPart | ScorePart) -> Version:
        logs = self._columns.logs
        structure = self._columns.structure
        return (structure, *[logs[facet].position for facet in part.as_one]) if part.as_one else (structure,)

    def _positions(self, part: FilterPart | ScorePart) -> list[int]:
        logs = self._columns.logs
        return [logs[facet].position for facet in part.by_row]
