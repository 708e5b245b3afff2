"""What evictions do to the hard constraints of a pod, on all nodes at once."""

from collections.abc import Sequence

import msgspec
import numpy as np

from lamina.model.pod import Pod
from lamina.scheduling.plugins.upstream.pod_topology_spread.domains import (
    DomainSpread,
    counted_on,
    labelled,
    spread,
)
from lamina.scheduling.plugins.upstream.pod_topology_spread.skew import LABEL, NO_DOMAIN, SKEW
from lamina.scheduling.plugins.upstream.pod_topology_spread.spread_rules import SpreadRule
from lamina.scheduling.state.columns import Bools, Floats, Ints
from lamina.scheduling.state.topology import MISSING
from lamina.scheduling.state.view import NodeView


class _CountedRule(msgspec.Struct):
    """A rule, and what its result for a domain depends on."""

    rule: SpreadRule
    spread: DomainSpread
    included: Bools
    """By row: whether its pods are counted."""
    others: Floats
    """By domain: the fewest pods in any other domain."""
    there: Bools
    """Which domains have an included node."""


class SpreadEvictions:
    """Counts the pods of each rule that leave a row."""

    def __init__(self, rules: Sequence[SpreadRule], pod: Pod, nodes: NodeView) -> None:
        """Count for *pod* on all nodes."""
        self._pod = pod
        complete = labelled(rules, nodes)
        self._rules = [_counted(rule, spread(rule, pod, nodes, complete)) for rule in rules]
        self.width = len(self._rules)
        self.counting: Bools = np.zeros(len(nodes), dtype=np.bool_)
        for one in self._rules:
            self.counting |= one.included & (counted_on(one.rule, pod, nodes) > 0)

    def counts(self, pod: Pod) -> list[int]:
        """Return for each rule whether it counts a placed pod."""
        if pod.deleting or pod.namespace != self._pod.namespace:
            return [0] * self.width
        return [int(one.rule.counts(pod)) for one in self._rules]

    def codes(self, rows: Ints, gone: Ints) -> Ints:
        """Return the codes of the filter if *gone* pods had left each row."""
        codes = np.zeros(len(rows), dtype=np.int64)
        for one, left in zip(self._rules, gone, strict=True):
            rule, domain = one.rule, one.spread.of_row[rows]
            pods = one.spread.pods[domain] - left * one.included[rows]
            if int(np.count_nonzero(one.there)) < rule.min_domains:
                fewest: Floats = np.zeros(len(rows))
            else:
                fewest = np.where(one.there[domain], np.minimum(one.others[domain], pods), one.others[domain])
            code = np.where(pods > rule.max_skew + fewest - rule.own, SKEW, 0)
            code[domain == MISSING] = LABEL
            # The first of several reasons wins.
            np.copyto(codes, code, where=codes == 0)
        return codes


def _counted(rule: SpreadRule, counted: DomainSpread) -> _CountedRule:
    there = counted.there()
    included = np.ones(len(counted.of_row), dtype=np.bool_) if counted.counting is None else counted.counting
    domains = np.flatnonzero(there)
    ordered = domains[np.argsort(counted.pods[domains], kind="stable")]
    others: Floats = np.full(len(counted.pods), float(NO_DOMAIN))
    if len(ordered):
        others[:] = min(float(NO_DOMAIN), counted.pods.item(ordered.item(0)))
        second = counted.pods.item(ordered.item(1)) if len(ordered) > 1 else float(NO_DOMAIN)
        others[ordered[0]] = min(float(NO_DOMAIN), second)
    return _CountedRule(rule, counted, included, others, there)
