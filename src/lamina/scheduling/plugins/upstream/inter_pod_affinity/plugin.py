"""
InterPodAffinity: places pods near other pods or away from them, within zones, nodes or other topology domains.

Required terms filter: the affinity and anti-affinity of the pod, and the anti-affinity of placed pods. Everything else
scores: the preferences of the pod, and the preferences and required affinity of placed pods that match the pod. Numbers
and messages are upstream's. As upstream, pods that are being deleted count until they are gone.

The API server merges ``matchLabelKeys`` and ``mismatchLabelKeys`` into the selectors when it creates a pod.
"""

from collections.abc import Hashable, Sequence
from typing import Annotated, ClassVar, Final

import msgspec
import numpy as np

from lamina.model.pod import Pod
from lamina.scheduling.contract.cycle_state import CycleState, StateKey
from lamina.scheduling.contract.plugin_registry import PluginArgs
from lamina.scheduling.contract.points import MAX_SCORE, Reads, Verdicts
from lamina.scheduling.contract.status import SKIP, Status
from lamina.scheduling.plugins.upstream.inter_pod_affinity.affinity_domains import not_apart, not_near, preference
from lamina.scheduling.plugins.upstream.inter_pod_affinity.affinity_evictions import AffinityEvictions
from lamina.scheduling.plugins.upstream.inter_pod_affinity.affinity_refusals import (
    KEPT_AWAY,
    NAME,
    NOT_APART,
    NOT_NEAR,
    REFUSALS,
)
from lamina.scheduling.state.cluster_changes import ChangeKind, ClusterChange
from lamina.scheduling.state.columns import Bools, Ints
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.namespace_labels import explicit
from lamina.scheduling.state.placed_terms import REQUIRED
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView

REFUSED: Final[StateKey[Ints]] = StateKey("inter-pod-affinity/refused")
RAW: Final[StateKey[Ints]] = StateKey("inter-pod-affinity/raw")


class InterPodAffinityArgs(PluginArgs, frozen=True, kw_only=True, rename="camel"):
    """Arguments of InterPodAffinity."""

    hard_pod_affinity_weight: Annotated[int, msgspec.Meta(ge=0, le=100)] = 1
    """Weight of the required affinity of placed pods in scores."""
    ignore_preferred_terms_of_existing_pods: bool = False
    """Whether pods without preferences of their own are not scored."""


class InterPodAffinity:
    """Filters and scores nodes by the pods in their domains."""

    name: ClassVar = NAME
    Args: ClassVar = InterPodAffinityArgs
    reads: ClassVar = Reads(others=frozenset({Facet.POD_AFFINITY, Facet.LABELS}))
    retry_on: ClassVar = frozenset(
        {
            ChangeKind.POD_PLACED,
            ChangeKind.POD_REMOVED,
            ChangeKind.NODE_ADDED,
            ChangeKind.NODE_REMOVED,
            ChangeKind.NODE_LABELS,
            ChangeKind.NAMESPACE_LABELS,
        }
    )

    def __init__(self, context: PluginContext, args: InterPodAffinityArgs) -> None:
        """Use the affinity terms of placed pods in *context*."""
        self._anti_affinity = context.anti_affinity
        self._scoring_terms = context.scoring_terms
        self._namespaces = context.namespace_labels
        self._hard_weight = args.hard_pod_affinity_weight
        self._ignores = args.ignore_preferred_terms_of_existing_pods

    # -- signatures --------------------------------------------------------------------------------------------------

    @property
    def edition(self) -> int:
        """Increases as terms of placed pods come and go, because a pod's signature lists those that match it."""
        return self._anti_affinity.edition + self._scoring_terms.edition + self._namespaces.edition

    def sign(self, pod: Pod) -> Hashable:
        """Return the terms of the pod, and the numbers of the terms of placed pods that match it."""
        kept_away = self._anti_affinity.sign(pod)
        scored = () if self._unscored(pod) else self._scoring_terms.sign(pod)
        if not pod.has_pod_terms:
            return (kept_away, scored) if scored else kept_away
        own = (pod.namespace, pod.required_pods, pod.repels, pod.preferred_pods, pod.avoided_pods)
        return (kept_away, scored, own, self._fits_itself(pod))

    def _fits_itself(self, pod: Pod) -> bool:
        return bool(pod.required_pods) and self._near(pod, pod)

    def _near(self, pod: Pod, other: Pod) -> bool:
        """Return whether *other* matches all required affinity terms of *pod*."""
        return all(self._namespaces.applies(explicit(term, pod), other) for term in pod.required_pods)

    def _unscored(self, pod: Pod) -> bool:
        return self._ignores and not pod.preferred_pods and not pod.avoided_pods

    # -- required terms ----------------------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | None:
        """Evaluate the domains of all required terms; skip the pod if there are none, which is the usual case."""
        closed = nodes.closed(pod)
        if closed is None and not pod.required_pods and not pod.repels:
            return SKIP
        codes = np.zeros(len(nodes), dtype=np.int64)
        # Written in reverse, because the first of several reasons wins.
        if closed is not None:
            codes[closed] = KEPT_AWAY
        if pod.repels:
            codes[not_apart(pod, nodes)] = NOT_APART
        if pod.required_pods:
            codes[not_near(pod, nodes, matches_itself=self._fits_itself(pod))] = NOT_NEAR
        state[REFUSED] = codes
        return None

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
        """Refuse nodes in domains that a required term excludes."""
        codes = state[REFUSED][nodes.rows]
        return Verdicts(codes.copy(), REFUSALS.__getitem__) if codes.any() else None

    def evictions(self, pod: Pod, nodes: NodeView, there: Sequence[Pod]) -> AffinityEvictions:
        """Count the pods that required terms are about, and the placed terms that are about *pod*."""
        return AffinityEvictions(pod, nodes, there, matches_itself=self._fits_itself(pod))

    # -- preferences -------------------------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | None:
        """Sum up the preferences by domain; skip the pod if none concerns it."""
        if self._unscored(pod):
            return SKIP
        rules = [one for one in nodes.scoring_terms().about(pod) if one.weight != REQUIRED or self._hard_weight]
        if not rules and not pod.preferred_pods and not pod.avoided_pods:
            return SKIP
        state[RAW] = preference(pod, nodes, rules, self._hard_weight)
        return None

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Return the sum of the weights of all preferences that a node meets; negative for anti-affinity."""
        return state[RAW][nodes.rows].copy()

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, feasible: Bools) -> Ints:
        """Give 100 to the most preferred feasible nodes and 0 to the least; 0 to all if there is no difference."""
        if not feasible.any():
            return np.zeros(len(scores), dtype=np.int64)
        values = scores[feasible]
        lowest, highest = int(values.min()), int(values.max())
        if lowest == highest:
            return np.zeros(len(scores), dtype=np.int64)
        # In the same steps as upstream, because the result is rounded down: 100 · (29/100) is 28.999….
        stretched = MAX_SCORE * ((np.clip(scores, lowest, highest) - lowest) / (highest - lowest))
        return stretched.astype(np.int64)

    # -- retries -----------------------------------------------------------------------------------------------------

    def worth_retrying(self, pod: Pod, change: ClusterChange) -> bool:
        """Return whether a pod arrived or left that a required term is about, or domains or namespaces changed."""
        other = change.pod
        if other is None:
            return True
        if change.kind is ChangeKind.POD_PLACED:
            return bool(pod.required_pods) and self._near(pod, other)
        return (
            self._anti_affinity.between(other, pod)
            or any(self._namespaces.applies(explicit(term, pod), other) for term in pod.repels)
            # After the last such pod left, a pod that matches itself is the first one of its group.
            or (self._fits_itself(pod) and self._near(pod, other))
        )
