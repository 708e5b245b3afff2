"""
Where a pod may go, as the Kubernetes API writes it: node selector, node affinity, tolerations, spread constraints.

Thousands of pods say the same here, so each distinct text is read once (`repeats`).
"""

from collections.abc import Iterable
from typing import Annotated, Final

import msgspec

from lamina.model.pod import HONOR, IGNORE, SpreadConstraint
from lamina.model.selectors import LabelSelector, NodeSelector, NodeSelectorTerm, Requirement
from lamina.model.taints import Toleration
from lamina.wire.repeats import remembered

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]


class Expression(msgspec.Struct, frozen=True, gc=False):
    """One condition of a selector."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class Term(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One of ``nodeSelectorTerms``."""

    match_expressions: list[Expression] | None = None
    match_fields: list[Expression] | None = None


class Terms(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A node selector."""

    node_selector_terms: list[Term] | None = None


class NodeAffinity(msgspec.Struct, frozen=True, gc=False):
    """``spec.affinity.nodeAffinity``, as far as it is a must."""

    required: Terms | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")


class Affinity(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``spec.affinity``, as far as it is about nodes."""

    node_affinity: NodeAffinity | None = None


class Labelled(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A label selector."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[Expression] | None = None


class Spread(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One of ``spec.topologySpreadConstraints``."""

    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: Labelled | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] | None = None


_AFFINITY: Final = msgspec.json.Decoder(Affinity | None)
_LABELS: Final = msgspec.json.Decoder(dict[str, str] | None)
_SPREAD: Final = msgspec.json.Decoder(list[Spread] | None)
_TOLERATIONS: Final = msgspec.json.Decoder(tuple[Toleration, ...] | None)


def _read_node_selector(text: bytes) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((_LABELS.decode(text) or {}).items()))


def _read_required_nodes(text: bytes) -> NodeSelector | None:
    affinity = _AFFINITY.decode(text)
    if affinity is None or affinity.node_affinity is None or affinity.node_affinity.required is None:
        return None
    terms = affinity.node_affinity.required.node_selector_terms or ()
    return NodeSelector(
        tuple(
            NodeSelectorTerm(_requirements(term.match_expressions or ()), _requirements(term.match_fields or ()))
            for term in terms
        )
    )


def _requirements(expressions: Iterable[Expression]) -> tuple[Requirement, ...]:
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
            selector=_label_selector(one.label_selector),
            min_domains=one.min_domains,
            node_affinity_policy=HONOR if one.node_affinity_policy is None else one.node_affinity_policy,
            node_taints_policy=IGNORE if one.node_taints_policy is None else one.node_taints_policy,
            match_label_keys=one.match_label_keys or (),
        )
        for one in _SPREAD.decode(text) or ()
    )


def _label_selector(written: Labelled | None) -> LabelSelector | None:
    if written is None:
        return None
    labels = tuple(sorted((written.match_labels or {}).items()))
    return LabelSelector(labels, _requirements(written.match_expressions or ()))


node_selector = remembered("spec.nodeSelector", _read_node_selector)
required_nodes = remembered("spec.affinity", _read_required_nodes)
tolerations = remembered("spec.tolerations", _read_tolerations)
spread = remembered("spec.topologySpreadConstraints", _read_spread)
