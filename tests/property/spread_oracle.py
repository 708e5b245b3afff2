"""
PodTopologySpread once more, for one node and one pod at a time: what our array code is held against.

Written from upstream's behaviour (Kubernetes 1.36), with dictionaries by label value as upstream has them, and slow on
purpose. Nothing here is imported from the plugin or from the counters it stands on.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from lamina.model.node import Node
from lamina.model.pod import Pod, SpreadConstraint
from tests.property.oracles import PASSES, Words, tainted

HOSTNAME = "kubernetes.io/hostname"
REASON = "node(s) didn't match pod topology spread constraints"

Counts = Callable[[Pod], bool]


@dataclass
class Constraint:
    """A constraint, and which pods it counts; None for those that count nobody, whoever matches."""

    said: SpreadConstraint
    counts: Counts
    matches_itself: bool


def _same_owner(pod: Pod, other: Pod) -> bool:
    assert pod.owner is not None
    if other.owner is None or other.namespace != pod.namespace:
        return False
    if pod.owner.uid or other.owner.uid:
        return pod.owner.uid == other.owner.uid
    return (pod.owner.kind, pod.owner.name) == (other.owner.kind, other.owner.name)


def _own(pod: Pod, said: SpreadConstraint) -> Constraint:
    selector = said.selector
    if selector is None:
        return Constraint(said, lambda other: False, False)
    shared = {key: pod.labels[key] for key in said.match_label_keys if key in pod.labels}

    def matches(other: Pod) -> bool:
        return selector.matches(other.labels) and all(other.labels.get(key) == shared[key] for key in shared)

    if not selector.match_labels and not selector.expressions and not shared:
        return Constraint(said, lambda other: False, True)
    return Constraint(said, matches, matches(pod))


def constraints(pod: Pod, defaults: Sequence[SpreadConstraint], action: str) -> list[Constraint]:
    """List what holds for a pod: its own constraints or, if it has a controller, the default ones."""
    if pod.spread:
        return [_own(pod, said) for said in pod.spread if said.when_unsatisfiable == action]
    if pod.owner is None:
        return []
    return [
        Constraint(said, lambda other: _same_owner(pod, other), True)
        for said in defaults
        if said.when_unsatisfiable == action
    ]


def _count(constraint: Constraint, pod: Pod, placed: Sequence[Pod]) -> int:
    return sum(not other.deleting and other.namespace == pod.namespace and constraint.counts(other) for other in placed)


def _included(constraint: Constraint, pod: Pod, node: Node) -> bool:
    said = constraint.said
    if said.node_affinity_policy == "Honor":
        if any(node.labels.get(key) != value for key, value in pod.node_selector):
            return False
        if pod.required_nodes is not None and not pod.required_nodes.matches(node.labels, node.name):
            return False
    return said.node_taints_policy != "Honor" or tainted(node, pod) == PASSES


def _complete(node: Node, those: Sequence[Constraint]) -> bool:
    return all(one.said.topology_key in node.labels for one in those)


def refusals(
    nodes: Mapping[str, Node], placed: Mapping[str, Sequence[Pod]], pod: Pod, defaults: Sequence[SpreadConstraint]
) -> dict[str, Words] | None:
    """Say for every node why not; None when no hard constraint holds for the pod."""
    those = constraints(pod, defaults, "DoNotSchedule")
    if not those:
        return None
    matched: list[dict[str, int]] = []
    for one in those:
        found: dict[str, int] = {}
        for name, node in nodes.items():
            if _complete(node, those) and _included(one, pod, node):
                value = node.labels[one.said.topology_key]
                found[value] = found.get(value, 0) + _count(one, pod, placed[name])
        matched.append(found)
    return {name: _refusal(node, those, matched) for name, node in nodes.items()}


def _refusal(node: Node, those: Sequence[Constraint], matched: Sequence[Mapping[str, int]]) -> Words:
    for one, found in zip(those, matched, strict=True):
        value = node.labels.get(one.said.topology_key)
        if value is None:
            return (f"{REASON} (missing required label)",), True
        least = 1 if one.said.min_domains is None else one.said.min_domains
        fewest = 0 if len(found) < least else min(found.values())
        if found.get(value, 0) + one.matches_itself - fewest > one.said.max_skew:
            return (REASON,), False
    return PASSES


def points(
    cluster: tuple[Mapping[str, Node], Mapping[str, Sequence[Pod]]],
    pod: Pod,
    feasible: Collection[str],
    defaults: Sequence[SpreadConstraint],
    *,
    system: bool,
) -> dict[str, int] | None:
    """Score the feasible nodes; None when no soft constraint holds for the pod."""
    nodes, placed = cluster
    those = constraints(pod, defaults, "ScheduleAnyway")
    if not those:
        return None
    strict = bool(pod.spread) or not system
    ignored = {name for name in feasible if strict and not _complete(nodes[name], those)}
    raw = dict.fromkeys(feasible, 0.0)
    for one in those:
        key = one.said.topology_key
        if key == HOSTNAME:
            size = len(feasible) - len(ignored)
            per_value: dict[str, int] = {}
        else:
            per_value = {nodes[name].labels.get(key, ""): 0 for name in feasible if name not in ignored}
            size = len(per_value)
            for name, node in nodes.items():
                value = node.labels.get(key, "")
                if value in per_value and (not strict or _complete(node, those)) and _included(one, pod, node):
                    per_value[value] += _count(one, pod, placed[name])
        for name in raw:
            if name not in ignored and key in nodes[name].labels:
                count = _count(one, pod, placed[name]) if key == HOSTNAME else per_value[nodes[name].labels[key]]
                raw[name] += float(count) * math.log(size + 2) + float(one.said.max_skew - 1)
    return _normalised({name: math.floor(score + 0.5) for name, score in raw.items()}, ignored)


def _normalised(raw: Mapping[str, int], ignored: Collection[str]) -> dict[str, int]:
    ranked = [score for name, score in raw.items() if name not in ignored]
    most, least = max(ranked, default=0), min(ranked, default=0)
    return {
        name: 0 if name in ignored else 100 if most == 0 else 100 * (most + least - score) // most
        for name, score in raw.items()
    }
