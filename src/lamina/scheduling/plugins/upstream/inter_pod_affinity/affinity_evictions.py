"""
What evictions do to the required terms of a pod and of placed pods, on all nodes at once.

The numbers are: pods with each placed term that is about the pod; pods that each anti-affinity term of the pod matches;
pods that match all its affinity terms.
"""

from collections.abc import Sequence

import numpy as np

from lamina.model.pod import Pod
from lamina.scheduling.plugins.upstream.inter_pod_affinity.affinity_refusals import KEPT_AWAY, NOT_APART, NOT_NEAR
from lamina.scheduling.state.columns import Bools, Ints
from lamina.scheduling.state.namespace_labels import explicit
from lamina.scheduling.state.placed_terms import REQUIRED, TermKey
from lamina.scheduling.state.term_counts import pod_set
from lamina.scheduling.state.topology import MISSING
from lamina.scheduling.state.view import NodeView


class _PerDomain:
    """A number of pods in the domain of each row; 0 for rows without the label."""

    def __init__(self, key: str, per_row: Ints, nodes: NodeView) -> None:
        """Sum up *per_row* by the domains of label *key*."""
        self.of_row = nodes.domains(key)
        self.sums: Ints = np.bincount(self.of_row, per_row, nodes.domain_count(key)).astype(np.int64)
        self.sums[MISSING] = 0
        self.total = int(self.sums.sum())

    def without(self, rows: Ints, gone: Ints) -> Ints:
        """Return the numbers of *rows* if *gone* pods had left each row."""
        domains = self.of_row[rows]
        return np.where(domains == MISSING, 0, self.sums[domains] - gone)


class AffinityEvictions:
    """Counts the pods and terms that leave a row."""

    def __init__(self, pod: Pod, nodes: NodeView, there: Sequence[Pod], *, matches_itself: bool) -> None:
        """Count for *pod* on all nodes; the terms of the pods *there* count as well."""
        self._pod = pod
        self._matches_itself = matches_itself
        self._index = nodes.anti_affinity()
        self._namespaces = self._index.namespaces
        rules: dict[TermKey, dict[int, int]] = {(one.term, REQUIRED): one.rows for one in self._index.about(pod)}
        for one in there:
            for key in self._index.terms_of(one):
                if self._namespaces.applies(key[0], pod):
                    rules.setdefault(key, {})
        self.counting: Bools = np.zeros(len(nodes), dtype=np.bool_)
        self._placed_terms = list(rules)
        self._closed = [self._by_rows(term.topology_key, rows, nodes) for (term, _), rows in rules.items()]
        self._repels = [explicit(term, pod) for term in pod.repels if term.selector is not None]
        self._apart = [
            self._sum(term.topology_key, nodes.matched(pod_set((term,), pod)), nodes) for term in self._repels
        ]
        self._wanted = [explicit(term, pod) for term in pod.required_pods]
        self._near: list[_PerDomain] = []
        if pod.required_pods:
            matched = nodes.matched(pod_set(pod.required_pods, pod))
            keys = dict.fromkeys(term.topology_key for term in pod.required_pods)
            self._near = [self._sum(key, matched, nodes) for key in keys]
        self.width = len(self._closed) + len(self._apart) + 1

    def _by_rows(self, key: str, rows: dict[int, int], nodes: NodeView) -> _PerDomain:
        per_row: Ints = np.zeros(len(nodes), dtype=np.int64)
        per_row[list(rows)] = list(rows.values())
        return self._sum(key, per_row, nodes)

    def _sum(self, key: str, per_row: Ints, nodes: NodeView) -> _PerDomain:
        self.counting |= per_row > 0
        return _PerDomain(key, per_row, nodes)

    def counts(self, pod: Pod) -> list[int]:
        """Return the numbers of a placed pod."""
        keys = list(self._index.terms_of(pod)) if self._placed_terms and pod.repels else []
        applies = self._namespaces.applies
        return [
            *(keys.count(key) for key in self._placed_terms),
            *(int(applies(term, pod)) for term in self._repels),
            int(bool(self._wanted) and all(applies(term, pod) for term in self._wanted)),
        ]

    def codes(self, rows: Ints, gone: Ints) -> Ints:
        """Return the codes of the filter if the pods with the numbers *gone* had left each row."""
        codes = np.zeros(len(rows), dtype=np.int64)
        # Written in reverse, because the first of several reasons wins.
        apart = len(self._closed)
        for number, one in enumerate((*self._closed, *self._apart)):
            held = one.without(rows, gone[number]) > 0
            codes[held] = KEPT_AWAY if number < apart else NOT_APART
        if self._near:
            codes[self._not_near(rows, gone[-1])] = NOT_NEAR
        return codes

    def _not_near(self, rows: Ints, gone: Ints) -> Bools:
        unlabelled, lacking = (np.zeros(len(rows), dtype=np.bool_) for _ in range(2))
        first: Bools = np.full(len(rows), self._matches_itself)
        for one in self._near:
            missing = one.of_row[rows] == MISSING
            unlabelled |= missing
            lacking |= one.without(rows, gone) == 0
            first &= one.total - np.where(missing, 0, gone) == 0
        return np.where(first, unlabelled, lacking)
