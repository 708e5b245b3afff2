"""
Topology domains that pod affinity opens, closes or scores; for both the filter and the score of InterPodAffinity.

All functions read every node at once: they sum up by row, then by domain, and spread the sums over the nodes again.
Nodes without the label of a term are in none of its domains.
"""

from collections.abc import Iterable

import numpy as np

from lamina.model.pod import Pod
from lamina.scheduling.state.columns import Bools, Floats, Ints
from lamina.scheduling.state.placed_terms import REQUIRED, PlacedTerm
from lamina.scheduling.state.term_counts import pod_set
from lamina.scheduling.state.topology import MISSING
from lamina.scheduling.state.view import NodeView


def not_near(pod: Pod, nodes: NodeView, *, matches_itself: bool) -> Bools:
    """
    Return which nodes the required affinity of a pod excludes.

    Every term needs a pod in the node's domain that matches *all* terms. If the cluster has no such pod in any domain,
    and the pod matches its own terms, it is the first one of its group: then only nodes without a label are excluded.
    """
    counts = nodes.matched(pod_set(pod.required_pods, pod))
    unlabelled, lacking = (np.zeros(len(nodes), dtype=np.bool_) for _ in range(2))
    first = matches_itself
    for key in dict.fromkeys(term.topology_key for term in pod.required_pods):
        found = _by_domain(nodes, key, counts)
        first = first and not found.any()
        unlabelled |= nodes.domains(key) == MISSING
        lacking |= found == 0
    return unlabelled if first else lacking


def not_apart(pod: Pod, nodes: NodeView) -> Bools:
    """Return which nodes the required anti-affinity of a pod excludes: those with a matching pod in their domain."""
    flags = np.zeros(len(nodes), dtype=np.bool_)
    for term in pod.repels:
        if term.selector is not None:
            flags |= _by_domain(nodes, term.topology_key, nodes.matched(pod_set((term,), pod))) > 0
    return flags


def preference(pod: Pod, nodes: NodeView, rules: Iterable[PlacedTerm], hard_weight: int) -> Ints:
    """
    Return the raw score of each node: the weights of all preferences that the node's domains meet, once for each pod.

    These are the preferences of *pod* that placed pods match, and the *rules* of placed pods that match *pod*. Required
    affinity of placed pods counts with *hard_weight*.
    """
    by_key: dict[str, Floats] = {}
    for preferred, sign in ((pod.preferred_pods, 1), (pod.avoided_pods, -1)):
        for one in preferred:
            if one.term.selector is not None and one.weight:
                weights = _weights(by_key, one.term.topology_key, nodes)
                weights += nodes.matched(pod_set((one.term,), pod)) * float(sign * one.weight)
    for rule in rules:
        weight = hard_weight if rule.weight == REQUIRED else rule.weight
        weights = _weights(by_key, rule.term.topology_key, nodes)
        weights[list(rule.rows)] += np.array(list(rule.rows.values()), dtype=np.float64) * weight
    total = np.zeros(len(nodes))
    for key, weights in by_key.items():
        total += _by_domain(nodes, key, weights)
    # Weights are at most 100, so the sums are exact integers.
    return total.astype(np.int64)


def _weights(by_key: dict[str, Floats], key: str, nodes: NodeView) -> Floats:
    if key not in by_key:
        by_key[key] = np.zeros(len(nodes))
    return by_key[key]


def _by_domain(nodes: NodeView, key: str, per_row: Ints | Floats) -> Floats:
    """Return for each node the sum of *per_row* over its domain; 0 for nodes without the label."""
    of_row = nodes.domains(key)
    sums: Floats = np.bincount(of_row, per_row, nodes.domain_count(key)).astype(np.float64)
    sums[MISSING] = 0.0
    return sums.take(of_row)
