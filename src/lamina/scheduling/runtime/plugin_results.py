"""
Cache of plugin results for all nodes, shared by shapes with the same signature for a plugin.

A new shape is seldom new to every plugin: another image with the same requests and tolerations has a new signature for
one plugin in four. A result is stored with the positions of the row journals. If the plugin reads nodes row by row,
only the changed rows are evaluated again; if another facet it reads changed, all rows are. Shapes share the cached
arrays: they read them, and copy them before writing.

Results that every placement changes are cached from the second request for a signature on, so that unique requests take
no memory. Results of a scorer that stores data in the cycle state while scoring are not cached: that data would be
missing.
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

# Maximum number of changed rows that are evaluated one by one in plain integers; more rows are evaluated as arrays.
# Measured with the in-tree plugins after placements: 3.5 µs per row, against 29 µs for any number of rows.
FEW: Final = 8
# Memory limit in bytes for codes, and again for scores; beyond it, the least recently used result is evicted.
KEPT_BYTES: Final = 32 * 1024 * 1024
KEPT_AT_LEAST: Final = 64
# Maximum number of signatures seen once; the set is cleared when full.
SEEN: Final = 4096
# Required types for updating single rows of a result.
SCORES: Final = np.dtype(np.int64)
CODES: Final = (SCORES, np.dtype(np.bool_))
NOTHING: Final[list[int]] = []

Version = tuple[int, ...]
Key = tuple[str, Hashable]


class CachedResult:
    """Journal positions at the time of a cached result."""

    __slots__ = ("positions", "version")

    def __init__(self, version: Version, positions: list[int]) -> None:
        """Store the positions of facets read as a whole (*version*) and of facets read row by row."""
        self.version = version
        self.positions = positions


class CachedCodes(CachedResult):
    """A filter's cached result."""

    __slots__ = ("codes", "tell")

    def __init__(self, version: Version, positions: list[int], verdicts: Verdicts | None) -> None:
        """Store verdicts; None if all nodes passed."""
        super().__init__(version, positions)
        self.codes: Ints | Bools | None = None if verdicts is None else verdicts.codes
        """Never written to: shapes share it."""
        self.tell: Callable[[int], Refusal] | None = None if verdicts is None else verdicts.tell

    def verdicts(self, rows: npt.NDArray[np.intp] | slice | None = None) -> Verdicts | None:
        """Return the verdicts for all nodes, or for some rows."""
        if self.codes is None or self.tell is None:
            return None
        return Verdicts(self.codes if rows is None else self.codes[rows], self.tell)

    def replace(self, rows: list[int], verdicts: Verdicts | None, size: int) -> bool:
        """Replace the codes of some rows; return False if the new codes have another type."""
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
    """A scorer's cached raw scores."""

    __slots__ = ("scores",)

    def __init__(self, version: Version, positions: list[int], scores: Ints) -> None:
        """Store scores."""
        super().__init__(version, positions)
        self.scores = scores


class PluginResultCache:
    """Results by plugin and signature, least recently used first."""

    def __init__(self, columns: NodeColumns) -> None:
        """Cache results for these columns."""
        self._columns = columns
        self._verdicts: dict[Key, CachedCodes] = {}
        self._scores: dict[Key, CachedScores] = {}
        self._seen: set[Key] = set()
        """Keys requested once, of plugins whose results are cached from the second request on."""
        self._missed: tuple[Version, list[int] | None] = ((), None)
        """
        The changed rows found last, with their journal positions.

        Several plugins that read the same facets reuse them.
        """
        self._view: NodeView | None = None
        """The same rows as a view, once requested."""

    # -- filters -----------------------------------------------------------------------------------------------------

    def filter(self, part: FilterPart, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
        """
        Return a filter's verdicts for all nodes; read-only.

        *state* holds what its `pre_filter` prepared for this pod.
        """
        if part.signer is None or len(pod.requests) > WIDE:
            return part.plugin.filter(state, pod, nodes)
        key = (part.name, part.signer.sign(pod))
        # Removed first: if a plugin raises, the incomplete result must not stay in the cache.
        kept = self._verdicts.pop(key, None)
        if kept is None or not self._update_codes(kept, part, state, pod):
            verdicts = part.plugin.filter(state, pod, nodes)
            if verdicts is not None and not (verdicts.codes.shape == (len(nodes),) and verdicts.codes.dtype in CODES):
                return verdicts
            # "All nodes pass" takes no memory, so it is cached at once.
            if verdicts is not None and part.placing and not self._comes_again(("filter", key)):
                return verdicts
            self._make_room(self._verdicts)
            kept = CachedCodes(self._version(part), self._positions(part), verdicts)
        self._verdicts[key] = kept
        return kept.verdicts()

    def _update_codes(self, kept: CachedCodes, part: FilterPart, state: CycleState, pod: Pod) -> bool:
        """Evaluate a filter for the changed rows; return False if all rows must be evaluated."""
        columns = self._columns
        rows = self._behind(part, kept)
        if not rows:
            return rows is not None
        if len(rows) <= FEW and part.by_node is not None:
            # Codes of a row without a node are meaningless; a node that reuses the row touches every facet.
            codes = {
                row: part.by_node.filter_node(state, pod, NodeRow(columns, row))
                for row in rows
                if columns.alive.item(row)
            }
            was = kept.codes
            rows = [row for row, code in codes.items() if code != (0 if was is None else was.item(row))]
            if not rows:
                return True
        # Rows with a new code are evaluated as arrays, since only `filter` returns the reasons.
        return kept.replace(rows, part.plugin.filter(state, pod, self._only(rows)), columns.size)

    # -- scorers -----------------------------------------------------------------------------------------------------

    def score(self, part: ScorePart, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Return a scorer's raw scores for all nodes; read-only, and valid until the next call."""
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
                # `normalize` may use the stored data, and another pod's state would not have it.
                return scores
            if part.placing and not self._comes_again(("score", key)):
                return scores
            self._make_room(self._scores)
            kept = CachedScores(self._version(part), self._positions(part), scores)
        self._scores[key] = kept
        return kept.scores

    def _update_scores(self, kept: CachedScores, part: ScorePart, state: CycleState, pod: Pod) -> bool:
        """Evaluate a scorer for the changed rows, in place: earlier readers are done with the array."""
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

    # -- cache -------------------------------------------------------------------------------------------------------

    def _behind(self, part: FilterPart | ScorePart, kept: CachedResult) -> list[int] | None:
        """List the rows that changed since *kept* and mark them as seen; None if all rows must be evaluated."""
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
        """List rows changed since these journal positions; None if too many changed or the journal is too short."""
        rows: list[int] = []
        for facet, position in zip(part.by_row, positions, strict=True):
            touched = self._columns.logs[facet].since(position)
            if touched is None:
                return None
            rows = touched if not rows else rows + touched
        if len(rows) <= 1:
            return rows
        rows = sorted(set(rows))
        # Beyond a quarter of the rows, evaluating all rows is as fast.
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
