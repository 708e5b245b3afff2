"""
The crowding guard: what keeps locality from heating nodes.

    x       = (load with the pod - mean load with the pod) / size of a large pod
    barrier = 0  up to `begin`;  seconds · (x - begin) / (end - x)  up to `end`;  out of the question from there

A node near the mean pays nothing; one that is a large pod ahead of it has to earn that by being ready sooner. A controller's
pods are spread by themselves: a node with more than its share of them is out, unless every node is.
"""

import math

import numpy as np

from lamina.model.pod import Pod
from lamina.scheduling.framework.columns import Bools, Floats
from lamina.scheduling.framework.load import ClusterLoad
from lamina.scheduling.framework.pod_counts import owner_key
from lamina.scheduling.framework.view import NodeView
from lamina.scheduling.plugins.locality.layer_locality.args import Barrier


def barrier(price: Barrier, load: ClusterLoad, pod: Pod, nodes: NodeView) -> tuple[Floats, Bools]:
    """Return what each node costs in seconds for being crowded, and which are out of the question."""
    large = max(price.floor, load.large(pod))
    excess = load.after(pod, nodes)
    excess -= load.mean_with(pod) + price.begin * large
    excess *= 1 / large
    out: Bools = excess >= price.width
    room = price.width - excess
    # Where it is out of the question the price is of no interest, as long as it is a number.
    room[out] = 1.0
    np.maximum(excess, 0.0, out=excess)
    excess *= price.seconds
    excess /= room
    return excess, out


def crowded(share: float, pod: Pod, nodes: NodeView, taking: Bools) -> Bools | None:
    """Return which nodes would have more than their share of the pods of one controller; None when that rules out none."""
    key = owner_key(pod)
    if key is None or share >= 1:
        return None
    count = nodes.owned(key)
    most = max(1, math.ceil(share * nodes.owned_in_all(key)))
    over: Bools = count >= most
    if not over.any() or over[taking].all():
        return None
    return over
