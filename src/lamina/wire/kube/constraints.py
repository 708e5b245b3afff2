"""
Placement constraints of a pod in Kubernetes JSON: node selector, affinity, tolerations, spread constraints.

Thousands of pods have the same constraints, so each distinct text is decoded once (`decode_cache`).
"""

from collections.abc import Iterable
from typing import Annotated, Final

import msgspec

from lamina.model.pod import HONOR, IGNORE, PodTerm, PreferredNodes, PreferredPods, SpreadConstraint
from lamina.model.selectors import LabelSelector, NodeSelector, NodeSelectorTerm, Requirement
from lamina.model.taints import Toleration
from lamina.wire.decode_cache import memoized

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
NEAR: Final = "inter-pod affinity"
APART: Final = "inter-pod anti-affinity"
MOST_TERMS: Final = 128
"""
Maximum number of pod affinity terms of each of the four kinds; further ones are not supported.

Each term costs memory and time for every node. Pods have a handful.
"""

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]


class SelectorRequirementObject(msgspec.Struct, frozen=True, gc=False):
    """One requirement of a selector."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class NodeSelectorTermObject(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One of ``nodeSelectorTerms``."""

    match_expressions: list[SelectorRequirementObject] | None = None
    match_fields: list[SelectorRequirementObject] | None = None


class NodeSelectorObject(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A node selector."""

    node_selector_terms: list[NodeSelectorTermObject] | None = None


class LabelSelectorObject(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A label selector."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[SelectorRequirementObject] | None = None


class PreferredNodeTerm(msgspec.Struct, frozen=True, gc=False):
    """One of ``preferredDuringSchedulingIgnoredDuringExecution`` of a node affinity."""

    weight: Int32 = 0
    preference: NodeSelectorTermObject | None = None


class NodeAffinityObject(msgspec.Struct, frozen=True, gc=False):
    """``spec.affinity.nodeAffinity``."""

    required: NodeSelectorObject | None = msgspec.field(default=None, name=REQUIRED)
    preferred: list[PreferredNodeTerm] | None = msgspec.field(default=None, name=PREFERRED)


class PodAffinityTermObject(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A pod affinity term. The API server has already merged ``matchLabelKeys`` into the selector."""

    topology_key: str = ""
    label_selector: LabelSelectorObject | None = None
    namespaces: tuple[str, ...] | None = None
    namespace_selector: LabelSelectorObject | None = None


class PreferredPodTerm(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One of ``preferredDuringSchedulingIgnoredDuringExecution`` of a pod affinity."""

    weight: Int32 = 0
    pod_affinity_term: PodAffinityTermObject | None = None


class PodAffinityObject(msgspec.Struct, frozen=True, gc=False):
    """``spec.affinity.podAffinity`` or ``spec.affinity.podAntiAffinity``."""

    required: list[PodAffinityTermObject] | None = msgspec.field(default=None, name=REQUIRED)
    preferred: list[PreferredPodTerm] | None = msgspec.field(default=None, name=PREFERRED)


class AffinityObject(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``spec.affinity``."""

    node_affinity: NodeAffinityObject | None = None
    pod_affinity: PodAffinityObject | None = None
    pod_anti_affinity: PodAffinityObject | None = None


class Affinity(msgspec.Struct, frozen=True, gc=False):
    """Decoded affinity."""

    required_nodes: NodeSelector | None = None
    preferred_nodes: tuple[PreferredNodes, ...] = ()
    required_pods: tuple[PodTerm, ...] = ()
    repels: tuple[PodTerm, ...] = ()
    preferred_pods: tuple[PreferredPods, ...] = ()
    avoided_pods: tuple[PreferredPods, ...] = ()
    unmet: tuple[str, ...] = ()
    """Required terms that Lamina does not support, in words."""
    ignored: tuple[str, ...] = ()
    """Preferred terms that Lamina does not support, in words."""


class TopologySpreadObject(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One of ``spec.topologySpreadConstraints``."""

    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelectorObject | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] | None = None


_AFFINITY: Final = msgspec.json.Decoder(AffinityObject | None)
_LABELS: Final = msgspec.json.Decoder(dict[str, str] | None)
_SPREAD: Final = msgspec.json.Decoder(list[TopologySpreadObject] | None)
_TOLERATIONS: Final = msgspec.json.Decoder(tuple[Toleration, ...] | None)


def _read_node_selector(text: bytes) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((_LABELS.decode(text) or {}).items()))


def _read_affinity(text: bytes) -> Affinity:
    written = _AFFINITY.decode(text) or AffinityObject()
    nodes = written.node_affinity or NodeAffinityObject()
    near, apart = written.pod_affinity or PodAffinityObject(), written.pod_anti_affinity or PodAffinityObject()
    return Affinity(
        None if nodes.required is None else NodeSelector(tuple(map(_term, nodes.required.node_selector_terms or ()))),
        tuple(
            PreferredNodes(one.weight, _term(one.preference or NodeSelectorTermObject()))
            for one in nodes.preferred or ()
        ),
        tuple(map(_pod_term, (near.required or ())[:MOST_TERMS])),
        tuple(map(_pod_term, (apart.required or ())[:MOST_TERMS])),
        tuple(map(_preferred_pods, (near.preferred or ())[:MOST_TERMS])),
        tuple(map(_preferred_pods, (apart.preferred or ())[:MOST_TERMS])),
        tuple(
            _too_many(words) for words, one in ((NEAR, near), (APART, apart)) if len(one.required or ()) > MOST_TERMS
        ),
        tuple(
            _too_many(f"preferred {words}")
            for words, one in ((NEAR, near), (APART, apart))
            if len(one.preferred or ()) > MOST_TERMS
        ),
    )


def _term(term: NodeSelectorTermObject) -> NodeSelectorTerm:
    return NodeSelectorTerm(_requirements(term.match_expressions or ()), _requirements(term.match_fields or ()))


def _pod_term(term: PodAffinityTermObject) -> PodTerm:
    return PodTerm(
        term.topology_key,
        label_selector(term.label_selector),
        term.namespaces or (),
        label_selector(term.namespace_selector),
    )


def _preferred_pods(one: PreferredPodTerm) -> PreferredPods:
    return PreferredPods(one.weight, _pod_term(one.pod_affinity_term or PodAffinityTermObject()))


def _too_many(words: str) -> str:
    return f"more than {MOST_TERMS} {words} terms"


def _requirements(expressions: Iterable[SelectorRequirementObject]) -> tuple[Requirement, ...]:
    return tuple(
        Requirement(expression.key, expression.operator, expression.values or ()) for expression in expressions
    )


def _read_tolerations(text: bytes) -> tuple[Toleration, ...]:
    return _TOLERATIONS.decode(text) or ()


def _read_spread(text: bytes) -> tuple[SpreadConstraint, ...]:
    return tuple(
        SpreadConstraint(
            max_skew=one.max_skew,
            topology_key=one.topology_key,
            when_unsatisfiable=one.when_unsatisfiable,
            selector=label_selector(one.label_selector),
            min_domains=one.min_domains,
            node_affinity_policy=HONOR if one.node_affinity_policy is None else one.node_affinity_policy,
            node_taints_policy=IGNORE if one.node_taints_policy is None else one.node_taints_policy,
            match_label_keys=one.match_label_keys or (),
        )
        for one in _SPREAD.decode(text) or ()
    )


def label_selector(written: LabelSelectorObject | None) -> LabelSelector | None:
    """Return a label selector; None if there is none."""
    if written is None:
        return None
    labels = tuple(sorted((written.match_labels or {}).items()))
    return LabelSelector(labels, _requirements(written.match_expressions or ()))


node_selector = memoized("spec.nodeSelector", _read_node_selector)
affinity = memoized("spec.affinity", _read_affinity)
tolerations = memoized("spec.tolerations", _read_tolerations)
spread = memoized("spec.topologySpreadConstraints", _read_spread)
