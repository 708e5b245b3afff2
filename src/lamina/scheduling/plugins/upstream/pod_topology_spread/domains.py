"""Pod counts per topology domain, for both the filter and the score of PodTopologySpread."""

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
    """Distribution over domains of the pods that a rule counts."""

    of_row: Ints
    """Domain number of each node (see `NodeView.domains`)."""
    pods: Floats
    """Pods in each domain, on included nodes; integers as floats, which sum up fastest."""
    counting: Bools | None = None
    """The included nodes; None for all."""
    everywhere: bool = False
    """Whether every node has a domain."""

    def there(self) -> Bools:
        """Return which domains have an included node."""
        flags: Bools = np.bincount(self.of_row, self.counting, len(self.pods)) > 0
        flags[MISSING] = False
        return flags


def labelled(rules: Iterable[SpreadRule], nodes: NodeView) -> Bools:
    """Return which nodes have the labels of all rules."""
    flags = nodes.alive.copy()
    for key in dict.fromkeys(rule.key for rule in rules):
        flags &= nodes.domains(key) != MISSING
    return flags


def counted_on(rule: SpreadRule, pod: Pod, nodes: NodeView) -> Ints:
    """Return the number of pods that a rule counts on each node."""
    if rule.counted is None:
        return np.zeros(len(nodes), dtype=np.int64)
    if isinstance(rule.counted, LabelSelector):
        return nodes.matching(pod.namespace, rule.counted)
    return nodes.owned(rule.counted)


def spread(rule: SpreadRule, pod: Pod, nodes: NodeView, among: Bools | None) -> DomainSpread:
    """Count the pods of a rule in each domain, on the included nodes of *among* (None for all)."""
    of_row, counting = nodes.domains(rule.key), _counting(rule, pod, nodes, among)
    counts = counted_on(rule, pod, nodes)
    if counting is not None:
        counts = counts * counting
    pods: Floats = np.bincount(of_row, counts.astype(np.float64), nodes.domain_count(rule.key)).astype(np.float64)
    # As upstream: nodes without the label, if included, are counted like nodes with an empty label.
    pods[EMPTY] += pods[MISSING]
    return DomainSpread(of_row, pods, counting)


def by_node(rule: SpreadRule, pod: Pod, nodes: NodeView) -> DomainSpread:
    """Count the pods of a rule on each node; as upstream, on all nodes, even infeasible ones."""
    counts = counted_on(rule, pod, nodes).astype(np.float64)
    return DomainSpread(nodes.domains(rule.key), counts, everywhere=nodes.labelled(rule.key) == nodes.total)


def _counting(rule: SpreadRule, pod: Pod, nodes: NodeView, among: Bools | None) -> Bools | None:
    """Return the included nodes: those that the pod's affinity and tolerations permit, if the rule honors them."""
    if rule.honors_affinity and (pod.node_selector or pod.required_nodes is not None):
        selected = nodes.selected((pod.node_selector, pod.required_nodes))
        among = selected if among is None else among & selected
    if rule.honors_taints and nodes.any_taints:
        tolerated = nodes.judged(lambda taints: untolerated(taints, pod.tolerations, HARD) is None) != 0
        among = tolerated if among is None else among & tolerated
    return among
