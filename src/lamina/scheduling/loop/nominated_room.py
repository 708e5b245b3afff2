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
from lamina.scheduling.runtime.what_if import NONE_SKIPPED, refusal_if, skipped_in, skipped_plugins
from lamina.scheduling.state.cluster_state import ClusterState
from lamina.scheduling.state.hypothesis import as_if


def withheld_from(cluster: ClusterState, profile: Profile, pod: Pod, evaluation: ShapeEvaluation) -> dict[int, Refusal]:
    """Return feasible rows that do not fit beside the pods nominated there, with the refusal."""
    withheld: dict[int, Refusal] = {}
    if evaluation.stop is not None:
        return withheld
    skipped = skipped_in(evaluation)
    for node, ahead in cluster.nominations.ahead_of(pod):
        row = cluster.row(node)
        if row < 0 or not evaluation.feasible[row]:
            continue
        supposed = as_if(cluster.columns, there=[(row, one) for one in ahead])
        refusal = refusal_if(profile, supposed, pod, row, skipped)
        if refusal is not None:
            withheld[row] = refusal
    return withheld


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
    ahead = [(row, one) for name, pods in nominations.ahead_of(pod) if name == node.name for one in pods]
    skipped = skipped_plugins(profile, pod, cluster.columns) if ahead else NONE_SKIPPED
    refusal = refusal_if(profile, as_if(cluster.columns, gone=leaving, there=ahead), pod, row, skipped)
    if refusal is None or refusal.final:
        return refusal is None
    return any(one.priority < pod.priority and cluster.leaves(one) for one in there)
