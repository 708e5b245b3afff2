"""
Objectives: the state of the whole cluster with the pod on a node, for every node at once. Lower is better.

Placing the pod on each node and evaluating the cluster would take one pass per node. Instead, each objective is derived
from sums over the current cluster, of which one node changes by a known amount:

    mean                    m' = m + d/n                              d: what the pod adds to the node's share
    squared differences     S' = S + 2·e·d + d²·(1 - 1/n)             e: difference of the node's share from the mean

The same holds for vectors and products of pairs. Results are valid for nodes with room for the pod.

The sums are over differences from the mean, not over shares: with nearly equal nodes, the difference of two large sums
would be rounding noise, which the scores would stretch over the whole scale.
"""

import numpy as np

from lamina.scheduling.plugins.agents.pigeon.cluster_resources import ClusterResources
from lamina.scheduling.plugins.agents.pigeon.demand_statistics import DemandStatistics
from lamina.scheduling.state.columns import Floats, Ints


def load_balance(cluster: ClusterResources, asked: Floats, prime: int) -> Floats:
    """Return the standard deviation of the nodes' shares, with the pod on each node."""
    shares, added = cluster.shares(prime, float(asked[prime]))
    count = _count(cluster)
    off = _off(shares, cluster, count)
    squares = float(off.dot(off)) + added * (2.0 * off + added * (1.0 - 1.0 / count))
    deviation: Floats = np.sqrt(np.maximum(squares, 0.0) / count)
    return deviation


def consolidate(cluster: ClusterResources, asked: Floats, prime: int) -> Floats:
    """
    Return how far nodes are from being either empty or full.

        1 - √(mean t²)    t = (m - u)/m below the mean m, (u - m)/(1 - m) above; 0 where the mean is not between 0 and 1

    Most nodes stay on the same side of the mean wherever the pod goes; only the others are sorted.
    """
    shares, added = cluster.shares(prime, float(asked[prime]))
    count = _count(cluster)
    off = _off(shares, cluster, count)
    # How far the pod moves the mean, for each node.
    moved = added / count
    least, most = moved.min(), moved.max()
    counted = off[cluster.counted]
    between = np.sort(counted[(counted >= least) & (counted < most)])
    split = np.searchsorted(between, moved).astype(np.int64, copy=False)
    below = _squares_from(moved, counted[counted < least], between, split)
    above = _squares_from(moved, counted[counted >= most], between[::-1], len(between) - split)
    # Remove the node's own term and add it with the pod.
    for change, place in ((-1.0, off), (1.0, off + added)):
        squares = change * np.square(place - moved)
        lower = place < moved
        below += np.where(lower, squares, 0.0)
        above += np.where(lower, 0.0, squares)
    mean = float(shares.dot(cluster.counted)) / count + moved
    sensible = (mean > 0.0) & (mean < 1.0)
    mean = np.where(sensible, mean, 0.5)
    tension = np.maximum(below, 0.0) / np.square(mean) + np.maximum(above, 0.0) / np.square(1.0 - mean)
    return np.where(sensible, 1.0 - np.sqrt(tension / count), 0.0)


def adaptive_bin_packing(cluster: ClusterResources, asked: Floats, demand: DemandStatistics) -> Floats:
    """
    Return the difference between the variation of nodes' usage and of pods' requests (Tantawi and Steinder, ICAC 2019).

    Both are coefficients of variation over several resources. For equal pods, nodes should be equal: pods spread. For
    mixed pods, nodes should be mixed: pods pack, and large pods keep room.
    """
    count = _count(cluster)
    both = [cluster.shares(line, float(amount)) for line, amount in enumerate(asked)]
    # Overcommitted nodes are capped at 1. With the pod, a node with room for it does not exceed 1.
    before = np.minimum([shares for shares, _ in both], 1.0)
    added = np.array([more for _, more in both])
    off = np.array([_off(shares, cluster, count) for shares in before])
    products = off @ off.T
    after = (before @ cluster.counted / count)[:, np.newaxis] + added / count
    gain = _dot(after, added)
    varied = _dot(after, products @ after) + gain * (2.0 * _dot(after, off) + gain * (1.0 - 1.0 / count))
    supply = _variation(varied / count, _dot(after, after))
    return np.abs(supply - demand_variation(cluster, demand))


def demand_variation(cluster: ClusterResources, demand: DemandStatistics) -> float:
    """Return the coefficient of variation of pod requests, as shares of a mean node."""
    capacity = cluster.mean_capacity()
    unit = np.divide(1.0, capacity, out=np.zeros(len(capacity)), where=capacity > 0)
    mean = demand.mean * unit
    varied = mean @ (demand.covariance * np.outer(unit, unit)) @ mean
    return float(_variation(np.array([varied]), np.array([mean @ mean]))[0])


def _dot(first: Floats, second: Floats) -> Floats:
    """Return the dot product of two vectors for each node."""
    products: Floats = np.einsum("ij,ij->j", first, second)
    return products


def _variation(varied: Floats, squared_mean: Floats) -> Floats:
    """Return √(mᵀ·Σ·m) / mᵀ·m (Albert and Zhang 2010) from its two parts; 0 where a part is 0."""
    some = (varied > 0.0) & (squared_mean > 0.0)
    return np.where(some, np.sqrt(np.maximum(varied, 0.0)) / np.where(some, squared_mean, 1.0), 0.0)


def _count(cluster: ClusterResources) -> int:
    return int(np.count_nonzero(cluster.counted))


def _off(shares: Floats, cluster: ClusterResources, count: int) -> Floats:
    """Return each share's difference from the mean; 0 for rows that are not nodes."""
    off: Floats = (shares - float(shares.dot(cluster.counted)) / count) * cluster.counted
    return off


def _squares_from(place: Floats, always: Floats, some: Floats, first: Ints) -> Floats:
    """Return the sum of squared distances from each *place* to *always* and to the first *first* values of *some*."""
    sums, squares = np.zeros(len(some) + 1), np.zeros(len(some) + 1)
    np.cumsum(some, out=sums[1:])
    np.cumsum(np.square(some), out=squares[1:])
    sums += always.sum()
    squares += always.dot(always)
    distances: Floats = (len(always) + first) * np.square(place) - 2.0 * place * sums[first] + squares[first]
    return distances
