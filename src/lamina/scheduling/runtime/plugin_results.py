"""
What plugins answered about all nodes, shared by shapes that look the same to a plugin.

A new shape is seldom new to everybody: another image with the same requests and tolerations is news to one plugin out of
four. What was answered is kept with the positions the logs had then. Where the plugin looks at each node by itself it is
asked about the rows that changed since, and the rest of the answer holds; where anything else it reads has changed, it
answers anew. What shapes are handed is shared: they read it, and copy it before they write.

What every placement changes is kept from the second time on that a signature is asked about: of requests that never come
again nothing is kept. Nor of a scorer that writes something down for later while it scores: that would be missing.
"""

from collections.abc import Callable, Hashable
from typing import Final

import numpy as np
import numpy.typing as npt

from lamina.model.decision import Refusal
from lamina.model.pod import Pod
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.points import Verdicts
from lamina.scheduling.runtime.profile import FilterPart, ScorePart
from lamina.scheduling.state.columns import WIDE, Bools, Ints, NodeColumns
from lamina.scheduling.state.view import NodeRow, NodeView, only

# Up to this many changed rows are asked one by one in plain integers; more, as arrays. Measured with the plugins in tree
# after placements: 3.5 µs a row against 29 µs for any number of them.
FEW: Final = 8
# What the answers of one kind may use; beyond that the one not asked for longest is let go.
KEPT_BYTES: Final = 32 * 1024 * 1024
KEPT_AT_LEAST: Final = 64
# Signatures seen once; beyond this many the list starts anew.
SEEN: Final = 4096
# What an answer must be made of for rows of it to be replaced.
SCORES: Final = np.dtype(np.int64)
CODES: Final = (SCORES, np.dtype(np.bool_))
NOTHING: Final[list[int]] = []

Version = tuple[int, ...]
Key = tuple[str, Hashable]


class CachedResult:
    """Where the logs stood when something was answered."""

    __slots__ = ("positions", "version")

    def __init__(self, version: Version, positions: list[int]) -> None:
        """Note the positions of what is read as one (with the structure), and of what is read row by row."""
        self.version = version
        self.positions = positions


class CachedCodes(CachedResult):
    """What a filter said."""

    __slots__ = ("codes", "tell")

    def __init__(self, version: Version, positions: list[int], verdicts: Verdicts | None) -> None:
        """Keep verdicts; None when all nodes passed."""
        super().__init__(version, positions)
        self.codes: Ints | Bools | None = None if verdicts is None else verdicts.codes
        """Never written to: shapes look at them."""
        self.tell: Callable[[int], Refusal] | None = None if verdicts is None else verdicts.tell

    def verdicts(self, rows: npt.NDArray[np.intp] | slice | None = None) -> Verdicts | None:
        """Return what was said of all nodes, or of some."""
        if self.codes is None or self.tell is None:
            return None
        return Verdicts(self.codes if rows is None else self.codes[rows], self.tell)

    def replace(self, rows: list[int], verdicts: Verdicts | None, size: int) -> bool:
        """Say something else of some rows; False when it was said in other terms."""
        if verdicts is None and self.codes is None:
            return True
        if self.codes is None:
            codes: Ints | Bools = np.zeros(size, dtype=np.int64)
        elif verdicts is not None and verdicts.codes.dtype != self.codes.dtype:
            return False
        else:
            codes = self.codes.copy()
        codes[rows] = 0 if verdicts is None else verdicts.codes
        self.codes = codes
        if verdicts is not None:
            self.tell = verdicts.tell
        return True


class CachedScores(CachedResult):
    """What a scorer gave."""

    __slots__ = ("scores",)

    def __init__(self, version: Version, positions: list[int], scores: Ints) -> None:
        """Keep scores."""
        super().__init__(version, positions)
        self.scores = scores


class PluginResultCache:
    """Answers by plugin and signature, longest unused first."""

    def __init__(self, columns: NodeColumns) -> None:
        """Keep answers about these columns."""
        self._columns = columns
        self._verdicts: dict[Key, CachedCodes] = {}
        self._scores: dict[Key, CachedScores] = {}
        self._seen: set[Key] = set()
        """What was asked once by those who are kept from the second time on."""
        self._missed: tuple[Version, list[int] | None] = ((), None)
        """The rows that were looked up last, and of which time: several plugins that read the same ask one after another."""
        self._view: NodeView | None = None
        """Those rows as arrays, once somebody has asked."""

    # -- filters -----------------------------------------------------------------------------------------------------

    def filter(self, part: FilterPart, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
        """Return what a filter says of all nodes; to be read only. *state* is what it prepared for this pod."""
        if part.signer is None or len(pod.requests) > WIDE:
            return part.plugin.filter(state, pod, nodes)
        key = (part.name, part.signer.sign(pod))
        # Taken out first: one that a plugin left half done by raising must not be found again.
        kept = self._verdicts.pop(key, None)
        if kept is None or not self._update_codes(kept, part, state, pod):
            verdicts = part.plugin.filter(state, pod, nodes)
            if verdicts is not None and not (verdicts.codes.shape == (len(nodes),) and verdicts.codes.dtype in CODES):
                return verdicts
            # When all pass there is nothing to keep but that.
            if verdicts is not None and part.placing and not self._comes_again(("filter", key)):
                return verdicts
            self._make_room(self._verdicts)
            kept = CachedCodes(self._version(part), self._positions(part), verdicts)
        self._verdicts[key] = kept
        return kept.verdicts()

    def _update_codes(self, kept: CachedCodes, part: FilterPart, state: CycleState, pod: Pod) -> bool:
        """Ask a filter about the rows that changed; False when it has to be asked about all of them."""
        columns = self._columns
        rows = self._behind(part, kept)
        if not rows:
            return rows is not None
        if len(rows) <= FEW and part.by_node is not None:
            # What is said of a row without a node is void; a node that takes the row over touches every facet.
            codes = {
                row: part.by_node.filter_node(state, pod, NodeRow(columns, row))
                for row in rows
                if columns.alive.item(row)
            }
            was = kept.codes
            rows = [row for row, code in codes.items() if code != (0 if was is None else was.item(row))]
            if not rows:
                return True
        # A row of which something else is said now is asked about as an array, for the words.
        return kept.replace(rows, part.plugin.filter(state, pod, self._only(rows)), columns.size)

    # -- scorers -----------------------------------------------------------------------------------------------------

    def score(self, part: ScorePart, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Return what a scorer gives all nodes, before it normalises; to be read at once, and only read."""
        if part.signer is None or len(pod.requests) > WIDE:
            return part.plugin.score(state, pod, nodes)
        key = (part.name, part.signer.sign(pod))
        kept = self._scores.pop(key, None)
        if kept is None or not self._update_scores(kept, part, state, pod):
            written = state.written
            scores = part.plugin.score(state, pod, nodes)
            if scores.shape != (len(nodes),) or scores.dtype != SCORES:
                return scores
            if state.written != written:
                # Its `normalize` may go by that, and whoever is handed a kept answer has a state without it.
                return scores
            if part.placing and not self._comes_again(("score", key)):
                return scores
            self._make_room(self._scores)
            kept = CachedScores(self._version(part), self._positions(part), scores)
        self._scores[key] = kept
        return kept.scores

    def _update_scores(self, kept: CachedScores, part: ScorePart, state: CycleState, pod: Pod) -> bool:
        """Ask a scorer likewise. In place: whoever was handed them has read them."""
        rows = self._behind(part, kept)
        if not rows:
            return rows is not None
        if len(rows) > FEW or part.by_node is None:
            nodes = self._only(rows)
            scores = part.plugin.score(state, pod, nodes)
            kept.scores[nodes.rows] = scores
            return scores.dtype == SCORES
        for row in rows:
            if self._columns.alive.item(row):
                kept.scores[row] = part.by_node.score_node(state, pod, NodeRow(self._columns, row))
        return True

    # -- keeping -----------------------------------------------------------------------------------------------------

    def _behind(self, part: FilterPart | ScorePart, kept: CachedResult) -> list[int] | None:
        """List the rows that changed since, and count them as seen; None: something else did, or too many."""
        logs, positions, version = self._columns.logs, kept.positions, kept.version
        if version[0] != self._columns.structure or (part.as_one and version != self._version(part)):
            return None
        now = [logs[facet].position for facet in part.by_row]
        if now == positions:
            return NOTHING
        when = (*part.by_row, *positions, *now)
        if self._missed[0] != when:
            self._missed = (when, self._touched(part, positions))
            self._view = None
        kept.positions = now
        return self._missed[1]

    def _touched(self, part: FilterPart | ScorePart, positions: list[int]) -> list[int] | None:
        """List the rows that changed since the logs stood there; None: too many, or too long ago."""
        rows: list[int] = []
        for facet, position in zip(part.by_row, positions, strict=True):
            touched = self._columns.logs[facet].since(position)
            if touched is None:
                return None
            rows = touched if not rows else rows + touched
        if len(rows) <= 1:
            return rows
        rows = sorted(set(rows))
        # Of more than a quarter of them it is as quick to ask about all.
        return rows if len(rows) <= self._columns.size // 4 + FEW else None

    def _only(self, rows: list[int]) -> NodeView:
        if rows is not self._missed[1]:
            return only(self._columns, rows)
        if self._view is None:
            self._view = only(self._columns, rows)
        return self._view

    def _comes_again(self, key: Key) -> bool:
        if key in self._seen:
            return True
        if len(self._seen) >= SEEN:
            self._seen.clear()
        self._seen.add(key)
        return False

    def _make_room(self, among: dict[Key, CachedCodes] | dict[Key, CachedScores]) -> None:
        if len(among) >= max(KEPT_AT_LEAST, KEPT_BYTES // (8 * max(1, self._columns.size))):
            del among[next(iter(among))]

    def _version(self, part: FilterPart | ScorePart) -> Version:
        logs = self._columns.logs
        structure = self._columns.structure
        return (structure, *[logs[facet].position for facet in part.as_one]) if part.as_one else (structure,)

    def _positions(self, part: FilterPart | ScorePart) -> list[int]:
        logs = self._columns.logs
        return [logs[facet].position for facet in part.by_row]
