"""Which rows a selector matches, computed once for each distinct selector of an evaluation."""

import numpy as np
import numpy.typing as npt

from lamina.model.selectors import GT, IN, LT, LabelSelector, NodeSelector, NodeSelectorTerm, Requirement
from lamina.scheduling.state.columns import Bools
from lamina.scheduling.state.view import NodeView

Rows = npt.NDArray[np.intp]


class NodeReach:
    """
    Rows by selector, for one view of all rows.

    Volumes of single nodes select one value of one label. Their rows are looked up, so that thousands of them cost
    little; any other selector is evaluated once for each value of its labels.
    """

    def __init__(self, nodes: NodeView) -> None:
        """Match the nodes in view."""
        self._nodes = nodes
        self._rows: dict[NodeSelector | LabelSelector | None, Rows] = {None: np.arange(len(nodes), dtype=np.intp)}

    def rows(self, selector: NodeSelector | LabelSelector | None) -> Rows:
        """Return the rows that a selector matches, all rows for None; read-only."""
        known = self._rows.get(selector)
        if known is None:
            terms = selector.terms if isinstance(selector, NodeSelector) else (_as_term(selector),)
            known = self._rows[selector] = self._by_value(terms) if _is_simple(terms) else self._by_mask(terms)
        return known

    def _by_value(self, terms: tuple[NodeSelectorTerm, ...]) -> Rows:
        (wanted,) = terms[0].expressions
        return np.concatenate(
            [
                self._nodes.rows_with(wanted.key, value)
                for value in dict.fromkeys(wanted.values)
                if wanted.matches({wanted.key: value})
            ]
            or [np.zeros(0, dtype=np.intp)]
        )

    def _by_mask(self, terms: tuple[NodeSelectorTerm, ...]) -> Rows:
        matched: Bools = np.zeros(len(self._nodes), dtype=np.bool_)
        for term in terms:
            # As in upstream, conditions on the node's name are only checked for their form.
            if term.fields and not NodeSelectorTerm((), term.fields).matches({}):
                continue
            if not term.expressions and not term.fields:
                continue
            met: Bools = np.ones(len(self._nodes), dtype=np.bool_)
            for wanted in term.expressions:
                met &= self._nodes.meeting(wanted)
            matched |= met
        return np.flatnonzero(matched)


def _is_simple(terms: tuple[NodeSelectorTerm, ...]) -> bool:
    if len(terms) != 1 or terms[0].fields or len(terms[0].expressions) != 1:
        return False
    return terms[0].expressions[0].operator == IN


def _as_term(selector: LabelSelector | None) -> NodeSelectorTerm:
    """Return a label selector as a term; an empty one, which matches all, as a condition that every node meets."""
    assert selector is not None, "None has its rows already"
    if any(one.operator in (GT, LT) for one in selector.expressions):
        return NodeSelectorTerm()
    labels = tuple(Requirement(key, IN, (value,)) for key, value in selector.match_labels)
    return NodeSelectorTerm((*labels, *selector.expressions) or (ALWAYS,))


ALWAYS = Requirement("x", "NotIn", ("lamina.dev",))
