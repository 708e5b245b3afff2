"""
PodTopologySpread: spreads pods evenly over zones, nodes or other topology domains.

Hard constraints (DoNotSchedule) refuse nodes whose domain would exceed the emptiest domain by more than `maxSkew` pods.
Soft constraints (ScheduleAnyway) score nodes: the raw score is the number of pods in the node's domains, and fewer is
better. Each topology is weighted by the logarithm of its number of domains. Numbers and messages are upstream's.

The number of domains depends on which nodes are feasible, so scores are computed in `normalize`.
"""

from collections.abc import Hashable, Sequence
from typing import ClassVar, Final

import msgspec
import numpy as np

from lamina.model.cluster_objects import ClusterObject
from lamina.model.node import Node
from lamina.model.pod import Pod
from lamina.scheduling.contract.cycle_state import CycleState, StateKey
from lamina.scheduling.contract.normalize import unscored
from lamina.scheduling.contract.points import MAX_SCORE, Reads, Verdicts
from lamina.scheduling.contract.status import SKIP, Status
from lamina.scheduling.plugins.upstream.pod_topology_spread.default_selector import SELECTING, DefaultSelector
from lamina.scheduling.plugins.upstream.pod_topology_spread.domains import DomainSpread, by_node, labelled, spread
from lamina.scheduling.plugins.upstream.pod_topology_spread.logarithm import logarithm
from lamina.scheduling.plugins.upstream.pod_topology_spread.skew import LABEL, NAME, NO_DOMAIN, REFUSALS, SKEW
from lamina.scheduling.plugins.upstream.pod_topology_spread.spread_evictions import SpreadEvictions
from lamina.scheduling.plugins.upstream.pod_topology_spread.spread_rules import (
    HOSTNAME,
    SpreadArgs,
    SpreadRule,
    SpreadRules,
)
from lamina.scheduling.state.cluster_changes import ChangeKind, ClusterChange
from lamina.scheduling.state.columns import Bools, Floats, Ints
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.topology import EMPTY, MISSING, selects
from lamina.scheduling.state.view import NodeView


class SpreadRanking(msgspec.Struct, frozen=True):
    """Data for the scores, before the feasible nodes are known."""

    counted: tuple[tuple[SpreadRule, DomainSpread], ...]
    """For HOSTNAME, *pods* is by row instead of by domain."""
    complete: Bools | None
    """Nodes with all labels, the only ones to score; None to score all nodes by the labels they have."""


REFUSED: Final[StateKey[Ints]] = StateKey("pod-topology-spread/refused")
RANKED: Final[StateKey[SpreadRanking]] = StateKey("pod-topology-spread/ranked")


class PodTopologySpread:
    """Filters and scores nodes by pod counts per domain."""

    name: ClassVar = NAME
    Args: ClassVar = SpreadArgs
    reads: ClassVar = Reads(others=frozenset({Facet.PODS, Facet.LABELS, Facet.TAINTS}))
    retry_on: ClassVar = frozenset(
        {
            ChangeKind.NODE_ADDED,
            ChangeKind.NODE_REMOVED,
            ChangeKind.NODE_LABELS,
            ChangeKind.NODE_TAINTS,
            ChangeKind.POD_PLACED,
            ChangeKind.POD_REMOVED,
        }
    )

    def __init__(self, context: PluginContext, args: SpreadArgs) -> None:
        """Apply the default constraints of *args* to pods without constraints."""
        self._context = context
        self._selector = DefaultSelector(context.objects)
        self._rules = SpreadRules(args, self._selector)
        self.objects: frozenset[type[ClusterObject]] = SELECTING if self._rules.defaults else frozenset()
        """Services and controllers, if there are default constraints."""

    @property
    def edition(self) -> int:
        """Increases as default constraints count other pods."""
        return self._selector.edition if self._rules.defaults else 0

    def sign(self, pod: Pod) -> Hashable:
        """Return the rules that apply to the pod, and its node selector, affinity and tolerations."""
        if not pod.spread:
            counted, own = self._rules.counted(pod)
            if counted is None:
                return None
            return (pod.namespace, counted, own, pod.node_selector, pod.required_nodes, pod.tolerations)
        rules = (self._rules.hard(pod), self._rules.soft(pod))
        return (pod.namespace, rules, pod.node_selector, pod.required_nodes, pod.tolerations)

    # -- hard constraints --------------------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | None:
        """Count pods and evaluate every domain."""
        rules = self._rules.hard(pod)
        if not rules:
            return SKIP
        codes = np.zeros(len(nodes), dtype=np.int64)
        complete = labelled(rules, nodes)
        for rule in rules:
            counted = spread(rule, pod, nodes, complete)
            code = np.where(_too_many(rule, counted), SKEW, 0)
            code[MISSING] = LABEL
            # The first of several reasons wins.
            np.copyto(codes, code.take(counted.of_row), where=codes == 0)
        state[REFUSED] = codes
        return None

    def filter(self, state: CycleState, pod: Pod, nodes: NodeView) -> Verdicts | None:
        """Refuse nodes without a label or with too many pods in their domain."""
        codes = state[REFUSED][nodes.rows]
        return Verdicts(codes.copy(), REFUSALS.__getitem__) if codes.any() else None

    def evictions(self, pod: Pod, nodes: NodeView, there: Sequence[Pod]) -> SpreadEvictions:
        """Count the pods that the hard rules count."""
        return SpreadEvictions(self._rules.hard(pod), pod, nodes)

    # -- soft constraints --------------------------------------------------------------------------------------------

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Status | None:
        """Count pods for the soft constraints."""
        rules = self._rules.soft(pod)
        if not rules:
            return SKIP
        complete = labelled(rules, nodes) if self._rules.strict(pod) else None
        counted = tuple(
            [
                (rule, by_node(rule, pod, nodes) if rule.key == HOSTNAME else spread(rule, pod, nodes, complete))
                for rule in rules
                # A label that no node has adds nothing. In clusters without zones, this is one of the two defaults.
                if nodes.labelled(rule.key)
            ]
        )
        state[RANKED] = SpreadRanking(counted, complete)
        return None

    def score(self, state: CycleState, pod: Pod, nodes: NodeView) -> Ints:
        """Return unscored values: `normalize`, which knows the feasible nodes, computes the scores."""
        return unscored(len(nodes))

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, feasible: Bools) -> Ints:
        """Give 100 to the emptiest domains, less to others, and 0 to nodes that are not scored."""
        counted, complete = state[RANKED].counted, state[RANKED].complete
        ranked = feasible if complete is None else feasible & complete
        count = int(np.count_nonzero(ranked))
        raw: Floats | None = None
        for rule, one in counted:
            crowding = _crowding(rule, one, ranked, count)
            raw = crowding if raw is None else np.add(raw, crowding, out=raw)
        if raw is None or not count:
            return ranked * np.int64(MAX_SCORE)
        # Rounded half up, like math.Round for non-negative values.
        raw += 0.5
        np.floor(raw, out=raw)
        values = raw if count == len(raw) else raw[ranked]
        lowest, highest = values.min(), values.max()
        if lowest == highest:
            return ranked * np.int64(MAX_SCORE)
        # Integers as floats: a non-integer quotient is further from the next integer than rounding moves it.
        np.subtract(lowest + highest, raw, out=raw)
        raw *= MAX_SCORE
        raw /= highest
        raw *= ranked
        return raw.astype(np.int64)

    def facts(self, state: CycleState, pod: Pod, nodes: NodeView) -> list[dict[str, int]]:
        """Return the number of counted pods in each node's domains."""
        found: list[dict[str, int]] = [{} for _ in range(len(nodes))]
        for rule, one in state[RANKED].counted:
            domains = one.of_row[nodes.rows]
            pods = one.pods[nodes.rows] if rule.key == HOSTNAME else one.pods.take(domains)
            for row, (domain, count) in enumerate(zip(domains.tolist(), pods.tolist(), strict=True)):
                if domain != MISSING:
                    found[row][rule.key] = int(count)
        return found

    # -- retries -----------------------------------------------------------------------------------------------------

    def worth_retrying(self, pod: Pod, change: ClusterChange) -> bool:
        """Return whether a counted pod arrived or left, or domains changed."""
        rules = self._rules.hard(pod)
        if change.pod is not None:
            counted = change.pod
            return counted.namespace == pod.namespace and any(rule.counts(counted) for rule in rules)
        node = self._context.node(change.row).node if change.row >= 0 else None
        if node is None:
            return True
        keys = [rule.key for rule in rules]
        if change.before is None:
            return _has(keys, node)
        return _domains_changed(keys, pod, change.before, node)


def _too_many(rule: SpreadRule, counted: DomainSpread) -> Bools:
    """Return which domains would have too many pods with this one."""
    pods = counted.pods[counted.there()]
    fewest = 0 if len(pods) < rule.min_domains else int(pods.min(initial=NO_DOMAIN))
    too_many: Bools = counted.pods > rule.max_skew + fewest - rule.own
    return too_many


def _crowding(rule: SpreadRule, counted: DomainSpread, ranked: Bools, count: int) -> Floats:
    """Return what a rule adds to the raw score of each of *count* nodes; computed in the same steps as upstream."""
    if rule.key == HOSTNAME:
        crowding = counted.pods * logarithm(count + 2)
        crowding += rule.max_skew - 1
        if not counted.everywhere:
            crowding *= counted.of_row != MISSING
        return crowding
    there = np.bincount(counted.of_row, weights=ranked, minlength=len(counted.pods)) > 0
    there[EMPTY] |= there[MISSING]
    per_domain = counted.pods * logarithm(int(np.count_nonzero(there[EMPTY:])) + 2)
    per_domain += rule.max_skew - 1
    per_domain[MISSING] = 0.0
    return per_domain.take(counted.of_row)


def _has(keys: list[str], node: Node) -> bool:
    return all(key in node.labels for key in keys)


def _domains_changed(keys: list[str], pod: Pod, before: Node, node: Node) -> bool:
    if _has(keys, before) != _has(keys, node):
        return True
    wanted = (pod.node_selector, pod.required_nodes)
    return _has(keys, node) and (
        before.taints != node.taints
        or any(before.labels[key] != node.labels[key] for key in keys)
        or selects(wanted, before) != selects(wanted, node)
    )
