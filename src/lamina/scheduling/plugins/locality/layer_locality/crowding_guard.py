"""
The crowding guard: what keeps locality from heating nodes.

    x       = (load with the pod - mean load with the pod) / size of a large pod
    barrier = 0  up to `begin`;  seconds · (x - begin) / (end - x)  up to `end`;  out of the question from there

A node near the mean pays nothing; one that is a large pod ahead of it has to earn that by being ready sooner. A controller's
pods are spread by themselves: a node with more than its share of them is out, unless every feasible node is.
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
    """What there is to know about nodes before it is clear which of them are feasible."""

    before: Floats
    """The load of each node."""
    after: Floats
    """The same with the pod on it."""
    owned: Ints | None
    """How many pods of the same controller each has; None for a pod without."""
    most: int
    """How many of them a node may have."""


def read_crowding(load: ClusterLoad, share: float, pod: Pod, nodes: NodeView) -> NodeCrowding:
    """Look at the nodes with a pod in mind; *share* is that of a controller's pods that one node may have."""
    key = owner_key(pod) if share < 1 else None
    if key is None:
        return NodeCrowding(load.of(nodes), load.of(nodes, pod), None, 0)
    most = max(1, math.ceil(share * nodes.owned_in_all(key)))
    return NodeCrowding(load.of(nodes), load.of(nodes, pod), nodes.owned(key), most)


def barrier(price: Barrier, load: ClusterLoad, pod: Pod, crowd: NodeCrowding, feasible: Bools) -> tuple[Floats, Bools]:
    """Return what each node costs in seconds for being crowded, and which are out of the question."""
    # Of the nodes that can have it: beside much larger ones a pod looks small, and each of them would seem far ahead.
    share = float((crowd.after - crowd.before).dot(feasible)) / max(int(np.count_nonzero(feasible)), 1)
    large = max(price.floor, load.large(pod), share)
    excess = crowd.after - (load.mean_with(pod, crowd.before, feasible, share) + price.begin * large)
    excess *= 1 / large
    out: Bools = excess >= price.width
    room = price.width - excess
    # Where it is out of the question the price is of no interest, as long as it is a number.
    np.putmask(room, out, 1.0)
    np.maximum(excess, 0.0, out=excess)
    excess *= price.seconds
    excess /= room
    return excess, out


def crowded(crowd: NodeCrowding, feasible: Bools) -> Bools | None:
    """Return which nodes have their share of the pods of one controller already; None when that rules out none, or all."""
    if crowd.owned is None:
        return None
    over: Bools = crowd.owned >= crowd.most
    # Somebody feasible who is not over, that is.
    return over if np.count_nonzero(over) and np.count_nonzero(feasible > over) else None
