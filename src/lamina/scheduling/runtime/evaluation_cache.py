"""
Cache of evaluations for recently seen pod shapes of a profile, bounded in memory.

A known shape is refreshed. A new shape is evaluated for all nodes, using cached plugin results of other shapes.
"""

from collections.abc import Mapping
from typing import Final

from lamina.model.decision import Refusal
from lamina.model.pod import Pod
from lamina.scheduling.runtime.plugin_results import PluginResultCache
from lamina.scheduling.runtime.profile import Profile, Scores
from lamina.scheduling.runtime.shape_evaluation import ShapeEvaluation
from lamina.scheduling.state.columns import NodeColumns

# Memory limit of a profile's evaluations in bytes: some 500 shapes at 5,000 nodes. Beyond it, a new shape replaces the
# least recently used one.
KEPT_BYTES: Final = 128 * 1024 * 1024
KEPT_AT_LEAST: Final = 16
# Bytes per node for filter codes and plugin state, in addition to scores. Measured in total at 5,000 nodes: 0.15 MB per
# shape with kube-default, and 0.27 MB with lamina-balanced, which stores most.
NOTED_BYTES: Final = 24


class EvaluationCache:
    """Evaluations of recently seen shapes, least recently used first."""

    def __init__(self, profile: Profile, columns: NodeColumns) -> None:
        """Cache evaluations of this profile over these columns."""
        self._profile = profile
        self._columns = columns
        self._results = PluginResultCache(columns)
        self._kept: dict[int, ShapeEvaluation] = {}

    def of(self, shape: int | None, pod: Pod) -> ShapeEvaluation:
        """Return an up-to-date evaluation for a pod. Without a *shape*, the evaluation is not cached."""
        if shape is None:
            return ShapeEvaluation(self._profile, self._columns, pod, self._results)
        # Removed first: if a plugin raises, the incomplete evaluation must not stay in the cache.
        kept = self._kept.pop(shape, None)
        if kept is None or not kept.refresh(pod):
            memory = self._make_room() if kept is None else kept.memory
            kept = ShapeEvaluation(self._profile, self._columns, pod, self._results, memory)
        self._kept[shape] = kept
        return kept

    def without(self, withheld: Mapping[int, Refusal], pod: Pod) -> ShapeEvaluation:
        """Return an evaluation of one pod without the *withheld* rows. It is not cached."""
        return ShapeEvaluation(self._profile, self._columns, pod, self._results, withheld=withheld)

    def _make_room(self) -> Scores | None:
        """
        Evict the least recently used evaluation if the cache is full.

        Return its memory for reuse, because fresh memory is slow.
        """
        scored = (len(self._profile.scorers) + 1) * self._profile.weights.itemsize
        most = max(KEPT_AT_LEAST, KEPT_BYTES // (max(1, self._columns.size) * (scored + NOTED_BYTES)))
        if len(self._kept) < most:
            return None
        return self._kept.pop(next(iter(self._kept))).memory
