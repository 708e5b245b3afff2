"""
Nodes that are reserved for nominated pods, and nominations that no longer make sense.

As upstream, a pod must pass a node's filters twice: as the node is, and as if the nominated pods of equal or higher
priority ran there. A nomination ends when its pod is bound or deleted (`ClusterState`), or when the node would not fit
even without the evicted pods.
"""

from lamina.model.decision import Refusal
from lamina.model.pod import Pod
from lamina.scheduling.runtime.profile import Profile
from lamina.scheduling.runtime.shape_evaluation import ShapeEvaluation
from lamina.scheduling.runtime.what_if import refusal_if
from lamina.scheduling.state.cluster_state import ClusterState
from lamina.scheduling.state.hypothesis import as_if


def withheld_from(cluster: ClusterState, profile: Profile, pod: Pod, evaluation: ShapeEvaluation) -> dict[int, Refusal]:
    """Return feasible rows that do not fit beside the pods nominated there, with the refusal."""
    withheld: dict[int, Refusal] = {}
    if evaluation.stop is not None:
        return withheld
    for node, ahead in cluster.nominations.ahead_of(pod):
        row = cluster.row(node)
        if row < 0 or not evaluation.feasible[row]:
            continue
        supposed = as_if(cluster.columns, there=[(row, one) for one in ahead])
        refusal = refusal_if(profile, supposed, pod, row)
        if refusal is not None:
            withheld[row] = refusal
    return withheld


def still_fits(cluster: ClusterState, profile: Profile, pod: Pod) -> bool:
    """Return whether a pod's nominated node would fit once the leaving pods are gone."""
    nominations = cluster.nominations
    row = cluster.row(nominations.node_of(pod.uid))
    node = cluster.columns.nodes[row] if row >= 0 else None
    if node is None:
        return False
    victims = nominations.victims_of(pod.uid)
    leaving = [
        (row, one)
        for one in cluster.cache.on(node.name)
        if one.deleting or one.uid in victims or one.uid in cluster.evictions
    ]
    ahead = [(row, one) for name, pods in nominations.ahead_of(pod) if name == node.name for one in pods]
    return refusal_if(profile, as_if(cluster.columns, gone=leaving, there=ahead), pod, row) is None
