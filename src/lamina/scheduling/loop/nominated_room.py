"""
Nodes that are reserved for nominated pods, and nominations that no longer make sense.

As upstream, a pod must pass a node's filters twice: as the node is, and as if the nominated pods of equal or higher
priority ran there. A nomination ends when its pod is bound or deleted (`ClusterState`), or when the node
would not fit even without the evicted pods, and none of them still leaves.
"""

from lamina.model.decision import Refusal
from lamina.model.pod import Pod
from lamina.scheduling.runtime.profile import Profile
from lamina.scheduling.runtime.shape_evaluation import ShapeEvaluation
from lamina.scheduling.runtime.what_if import (
    NONE_SKIPPED,
    refusal_if,
    refusals_beside,
    skipped_in,
    skipped_plugins,
)
from lamina.scheduling.state.cluster_state import ClusterState
from lamina.scheduling.state.hypothesis import as_if


def withheld_from(cluster: ClusterState, profile: Profile, pod: Pod, evaluation: ShapeEvaluation) -> dict[int, Refusal]:
    """Return feasible rows that do not fit beside the pods nominated there, with the refusal."""
    ahead: dict[int, list[Pod]] = {}
    if evaluation.stop is None:
        for node, pods in cluster.nominations.ahead_of(pod):
            row = cluster.row(node)
            if row >= 0 and evaluation.feasible[row]:
                ahead[row] = pods
    return refusals_beside(profile, cluster.columns, pod, ahead, skipped_in(evaluation)) if ahead else {}


def fits_where_nominated(cluster: ClusterState, profile: Profile, pod: Pod, evaluation: ShapeEvaluation) -> bool:
    """Return whether a pod fits on the node it is nominated for, beside the others that are nominated there."""
    node = cluster.nominations.node_of(pod.uid)
    row = cluster.row(node)
    if row < 0 or not evaluation.feasible[row]:
        return False
    ahead = cluster.nominations.ahead_on(node, pod)
    return not ahead or not refusals_beside(profile, cluster.columns, pod, {row: ahead}, skipped_in(evaluation))


def keeps_nomination(cluster: ClusterState, profile: Profile, pod: Pod) -> bool:
    """
    Return whether a pod's nominated node would fit once the leaving pods are gone.

    As upstream, a pod also keeps its nomination while a pod that was evicted there still leaves: it evicts no others
    meanwhile. That does not hold for a node whose refusal is final.
    """
    nominations = cluster.nominations
    row = cluster.row(nominations.node_of(pod.uid))
    node = cluster.columns.nodes[row] if row >= 0 else None
    if node is None:
        return False
    victims = nominations.victims_of(pod.uid)
    there = cluster.cache.on(node.name)
    leaving = [(row, one) for one in there if one.deleting or one.uid in victims or one.uid in cluster.evictions]
    ahead = [(row, one) for one in nominations.ahead_on(node.name, pod)]
    skipped = skipped_plugins(profile, pod, cluster.columns) if ahead else NONE_SKIPPED
    refusal = refusal_if(profile, as_if(cluster.columns, gone=leaving, there=ahead), pod, row, skipped)
    if refusal is None or refusal.final:
        return refusal is None
    return any(one.uid in victims or (one.priority < pod.priority and cluster.leaves(one)) for one in there)
