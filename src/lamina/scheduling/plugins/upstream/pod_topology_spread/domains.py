"""Pods counted per domain: what both halves of the plugin, the one that refuses and the one that ranks, stand on."""

from collections.abc import Iterable
from typing import Final

import msgspec
import numpy as np

from lamina.model.pod import Pod
from lamina.model.selectors import LabelSelector
from lamina.model.taints import NO_EXECUTE, NO_SCHEDULE, untolerated
from lamina.scheduling.plugins.upstream.pod_topology_spread.spread_rules import SpreadRule
from lamina.scheduling.state.columns import Bools, Floats, Ints
from lamina.scheduling.state.topology import EMPTY, MISSING
from lamina.scheduling.state.view import NodeView

HARD: Final = (NO_SCHEDULE, NO_EXECUTE)


class DomainSpread(msgspec.Struct, frozen=True):
    """How the pods one rule counts are spread."""

    of_row: Ints
    """The domain of each node, by number (see `NodeView.domains`)."""
    pods: Floats
    """The pods in each domain, on nodes that count: whole numbers, in floats because that is what adds up quickest."""
    counting: Bools | None = None
    """The nodes that count; None: all of them."""
    everywhere: bool = False
    """Whether every node has a domain."""

    def there(self) -> Bools:
        """Say which domains have a node that counts."""
        flags: Bools = np.bincount(self.of_row, self.counting, len(self.pods)) > 0
        flags[MISSING] = False
        return flags


def labelled(rules: Iterable[SpreadRule], nodes: NodeView) -> Bools:
    """Say which nodes have all the labels the rules go by."""
    flags = nodes.alive.copy()
    for key in dict.fromkeys(rule.key for rule in rules):
        flags &= nodes.domains(key) != MISSING
    return flags


def _counted(rule: SpreadRule, pod: Pod, nodes: NodeView) -> Ints:
    """Count the pods of one rule on each node."""
    if rule.counted is None:
        return np.zeros(len(nodes), dtype=np.int64)
    if isinstance(rule.counted, LabelSelector):
        return nodes.matching(pod.namespace, rule.counted)
    return nodes.owned(rule.counted)


def spread(rule: SpreadRule, pod: Pod, nodes: NodeView, among: Bools | None) -> DomainSpread:
    """Count the pods of one rule in each domain, on those nodes *among* (None: all of them) which count for this pod."""
    of_row, counting = nodes.domains(rule.key), _counting(rule, pod, nodes, among)
    counts = _counted(rule, pod, nodes)
    if counting is not None:
        counts = counts * counting
    pods: Floats = np.bincount(of_row, counts.astype(np.float64), nodes.domain_count(rule.key)).astype(np.float64)
    # Where nodes without the label count at all, upstream takes them for nodes with an empty one.
    pods[EMPTY] += pods[MISSING]
    return DomainSpread(of_row, pods, counting)


def by_node(rule: SpreadRule, pod: Pod, nodes: NodeView) -> DomainSpread:
    """Count the pods of one rule on each node; upstream does so whether or not the pod could go there."""
    counts = _counted(rule, pod, nodes).astype(np.float64)
    return DomainSpread(nodes.domains(rule.key), counts, everywhere=nodes.labelled(rule.key) == nodes.total)


def _counting(rule: SpreadRule, pod: Pod, nodes: NodeView, among: Bools | None) -> Bools | None:
    """Say which nodes count: only those make up domains that the pod could go to, as far as the rule wants to know."""
    if rule.honors_affinity and (pod.node_selector or pod.required_nodes is not None):
        selected = nodes.selected((pod.node_selector, pod.required_nodes))
        among = selected if among is None else among & selected
    if rule.honors_taints and nodes.any_taints:
        tolerated = nodes.judged(lambda taints: untolerated(taints, pod.tolerations, HARD) is None) != 0
        among = tolerated if among is None else among & tolerated
    return among
