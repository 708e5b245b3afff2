"""
The evaluations of the shapes a profile has seen lately, kept up to date and bounded in memory.

A shape that was seen before is refreshed; a new one is evaluated from the beginning, with what plugins answered about other
shapes.
"""

from collections.abc import Mapping
from typing import Final

from lamina.model.decision import Refusal
from lamina.model.pod import Pod
from lamina.scheduling.runtime.plugin_results import PluginResultCache
from lamina.scheduling.runtime.profile import Profile, Scores
from lamina.scheduling.runtime.shape_evaluation import ShapeEvaluation
from lamina.scheduling.state.columns import NodeColumns

# What the kept evaluations of a profile may use in all: some 500 shapes at 5,000 nodes. Each new shape takes its part until
# then, and afterwards that of the one not seen for longest.
KEPT_BYTES: Final = 128 * 1024 * 1024
KEPT_AT_LEAST: Final = 16
# What codes, and what plugins note for themselves, take for each node beside the scores. Measured at 5,000 nodes in all:
# 0.15 MB for a shape with the plugins of kube-default, 0.27 MB with those of lamina-balanced, which notes most.
NOTED_BYTES: Final = 24


class EvaluationCache:
    """Evaluations of the shapes seen lately, longest unused first."""

    def __init__(self, profile: Profile, columns: NodeColumns) -> None:
        """Keep evaluations for this profile over these columns."""
        self._profile = profile
        self._columns = columns
        self._answers = PluginResultCache(columns)
        self._kept: dict[int, ShapeEvaluation] = {}

    def of(self, shape: int | None, pod: Pod) -> ShapeEvaluation:
        """Return an up-to-date evaluation for a pod; *shape* None means that nothing may be kept."""
        if shape is None:
            return ShapeEvaluation(self._profile, self._columns, pod, self._answers)
        # Taken out first: one that a plugin left half done by raising must not be found again.
        kept = self._kept.pop(shape, None)
        if kept is None or not kept.refresh(pod):
            memory = self._make_room() if kept is None else kept.memory
            kept = ShapeEvaluation(self._profile, self._columns, pod, self._answers, memory)
        self._kept[shape] = kept
        return kept

    def without(self, withheld: Mapping[int, Refusal], pod: Pod) -> ShapeEvaluation:
        """Return an evaluation of one pod from which rows are withheld; nothing of it is kept."""
        return ShapeEvaluation(self._profile, self._columns, pod, self._answers, withheld=withheld)

    def _make_room(self) -> Scores | None:
        """Let the oldest go when there are too many, and hand its memory on: memory never touched before is slow."""
        scored = (len(self._profile.scorers) + 1) * self._profile.weights.itemsize
        most = max(KEPT_AT_LEAST, KEPT_BYTES // (max(1, self._columns.size) * (scored + NOTED_BYTES)))
        if len(self._kept) < most:
            return None
        return self._kept.pop(next(iter(self._kept))).memory
