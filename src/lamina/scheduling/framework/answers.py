"""
What plugins answered about all nodes, shared by shapes that look the same to a plugin.

A new shape is seldom new to everybody: another cpu request with the same tolerations and image is news to one plugin out
of four. An answer holds as long as nothing the plugin reads has changed. Plugins that read what every placement changes
would never be found again and are not kept.
"""

from collections.abc import Hashable
from typing import Final

from lamina.model.pod import Pod
from lamina.scheduling.framework.columns import Ints, NodeColumns
from lamina.scheduling.framework.cycle_state import CycleState
from lamina.scheduling.framework.points import Verdicts
from lamina.scheduling.framework.profile import FilterPart, ScorePart
from lamina.scheduling.framework.view import NodeView

# What the answers of one kind may use; beyond that all are let go, which is simple and rare.
KEPT_BYTES: Final = 32 * 1024 * 1024
KEPT_AT_LEAST: Final = 64

Version = tuple[int, ...]


class Answers:
    """Answers by plugin and signature."""

    def __init__(self, columns: NodeColumns) -> None:
        """Keep answers about these columns."""
        self._columns = columns
        self._verdicts: dict[tuple[str, Hashable], tuple[Version, Verdicts | None]] = {}
        self._scores: dict[tuple[str, Hashable], tuple[Version, Ints]] = {}

    def filter(self, part: FilterPart, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
        """Return what a filter says of all nodes; the codes are the caller's own."""
        if part.signer is None:
            return part.plugin.filter(state, pod, nodes)
        key, version = (part.name, part.signer.sign(pod)), self._version(part)
        kept = self._verdicts.get(key)
        if kept is None or kept[0] != version:
            if len(self._verdicts) >= self._most():
                self._verdicts.clear()
            kept = self._verdicts[key] = (version, part.plugin.filter(state, pod, nodes))
        verdicts = kept[1]
        return None if verdicts is None else Verdicts(verdicts.codes.copy(), verdicts.tell)

    def score(self, part: ScorePart, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Return what a scorer gives all nodes, before it normalises; to be read only."""
        if part.signer is None:
            return part.plugin.score(state, pod, nodes)
        key, version = (part.name, part.signer.sign(pod)), self._version(part)
        kept = self._scores.get(key)
        if kept is None or kept[0] != version:
            if len(self._scores) >= self._most():
                self._scores.clear()
            kept = self._scores[key] = (version, part.plugin.score(state, pod, nodes))
        return kept[1]

    def _most(self) -> int:
        return max(KEPT_AT_LEAST, KEPT_BYTES // (8 * max(1, self._columns.size)))

    def _version(self, part: FilterPart | ScorePart) -> Version:
        logs = self._columns.logs
        return (self._columns.structure, *[logs[facet].position for facet in part.facets])
