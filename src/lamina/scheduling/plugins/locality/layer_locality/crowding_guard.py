"""
Crowding guard: keeps locality from overloading nodes.

    x       = (load with the pod - mean load with the pod) / size of a large pod
    barrier = 0  up to `begin`;  seconds · (x - begin) / (end - x)  up to `end`;  score 0 from there

A node near the mean load has no penalty. A node that is a large pod ahead must make up for it by being ready sooner.
Pods of one controller are spread separately: a node with more than its share of them scores 0, unless every feasible
node has.
"""

import math

import msgspec
import numpy as np

from lamina.model.pod import Pod
from lamina.scheduling.plugins.locality.layer_locality.args import Barrier
from lamina.scheduling.state.cluster_load import ClusterLoad
from lamina.scheduling.state.columns import Bools, Floats, Ints
from lamina.scheduling.state.pod_counts import owner_key
from lamina.scheduling.state.view import NodeView


class NodeCrowding(msgspec.Struct, frozen=True):
    """Load and replicas of nodes, before feasibility is known."""

    before: Floats
    """Load of each node."""
    after: Floats
    """Load of each node with the pod."""
    owned: Ints | None
    """Number of pods of the same controller on each node; None for a pod without a controller."""
    most: int
    """Maximum number of them per node."""


def read_crowding(load: ClusterLoad, share: float, pod: Pod, nodes: NodeView) -> NodeCrowding:
    """Collect load and replicas for a pod; *share* is the maximum share of a controller's pods per node."""
    key = owner_key(pod) if share < 1 else None
    if key is None:
        return NodeCrowding(load.of(nodes), load.of(nodes, pod), None, 0)
    most = max(1, math.ceil(share * nodes.owned_in_all(key)))
    return NodeCrowding(load.of(nodes), load.of(nodes, pod), nodes.owned(key), most)


def barrier(price: Barrier, load: ClusterLoad, pod: Pod, crowd: NodeCrowding, feasible: Bools) -> tuple[Floats, Bools]:
    """Return each node's penalty in seconds, and which nodes score 0."""
    # Only feasible nodes: measured against much larger nodes, a pod looks small and feasible nodes seem far ahead.
    share = float((crowd.after - crowd.before).dot(feasible)) / max(int(np.count_nonzero(feasible)), 1)
    large = max(price.floor, load.large(pod), share)
    excess = crowd.after - (load.mean_with(pod, crowd.before, feasible, share) + price.begin * large)
    excess *= 1 / large
    out: Bools = excess >= price.width
    room = price.width - excess
    # The penalty of excluded nodes is not used, but it must be a number.
    np.putmask(room, out, 1.0)
    np.maximum(excess, 0.0, out=excess)
    excess *= price.seconds
    excess /= room
    return excess, out


def crowded(crowd: NodeCrowding, feasible: Bools) -> Bools | None:
    """Return which nodes have their share of a controller's pods already; None if that excludes no node, or all."""
    if crowd.owned is None:
        return None
    over: Bools = crowd.owned >= crowd.most
    # At least one feasible node must be below the limit.
    return over if np.count_nonzero(over) and np.count_nonzero(feasible > over) else None
