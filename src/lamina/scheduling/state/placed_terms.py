"""
Affinity terms of placed pods: which of them match a pod, and on which rows the pods with these terms are.

A term of a placed pod concerns other pods, even those without terms. Pods with the same term (those of one Deployment)
share one entry. The index finds a term by namespace and by one label that its selector requires. A pod that no term
matches therefore costs a few look-ups, and a cluster without terms costs nothing.

    placed pod ──> term (namespaces, selector, topology) and weight ──> rows, with the number of pods on each

The columns have two such indexes: required anti-affinity, for filtering, and all other terms, for scoring. The terms
that match a pod change over time. `sign` returns their numbers, which are never reused, and `edition` increases
whenever an earlier signature may be outdated. The columns write; plugins read through `NodeView`.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from lamina.model.pod import Pod, PodTerm
from lamina.model.selectors import LabelSelector
from lamina.scheduling.state.namespace_labels import ANYWHERE, NamespaceLabels, explicit
from lamina.scheduling.state.node_facts import Placements
from lamina.scheduling.state.pod_counts import needed

Bucket = tuple[str, tuple[str, str] | None]
"""Namespace (or `ANYWHERE`) and a required label; None for selectors that require no particular label."""
TermKey = tuple[PodTerm, int]
"""A term and its weight: negative for anti-affinity, and `REQUIRED` for terms without a weight."""

REQUIRED: Final = 0
"""Weight of a required term. The configuration sets how much it scores."""


def required_anti_affinity(pod: Pod) -> Iterator[TermKey]:
    """List the terms of a pod that close domains to other pods."""
    return ((term, REQUIRED) for term in pod.repels)


def scoring_terms(pod: Pod) -> Iterator[TermKey]:
    """List the terms of a placed pod that score other pods: required affinity and all preferences."""
    for term in pod.required_pods:
        yield term, REQUIRED
    for one in pod.preferred_pods:
        if one.weight:
            yield one.term, one.weight
    for one in pod.avoided_pods:
        if one.weight:
            yield one.term, -one.weight


class PlacedTerm:
    """A term with explicit namespaces, and the number of pods with that term on each row."""

    __slots__ = ("number", "rows", "term", "weight")

    def __init__(self, number: int, key: TermKey) -> None:
        """Start without pods."""
        self.number = number
        self.term, self.weight = key
        self.rows: dict[int, int] = {}


class PlacedTermIndex:
    """Terms of one kind, of all placed pods."""

    __slots__ = ("_buckets", "_count", "_rules", "edition", "listed", "namespaces")

    def __init__(self, namespaces: NamespaceLabels, listed: Callable[[Pod], Iterable[TermKey]]) -> None:
        """Start without terms; *listed* returns the terms of a pod that belong here."""
        self.edition = 0
        """Increases when a term appears or disappears."""
        self.namespaces = namespaces
        self.listed = listed
        self._rules: dict[TermKey, PlacedTerm] = {}
        self._buckets: dict[Bucket, list[PlacedTerm]] = {}
        self._count = 0

    def add(self, row: int, pod: Pod) -> None:
        """Add the terms of a pod on a row."""
        for key in self.terms_of(pod):
            rule = self._rules.get(key) or self._new(key)
            rule.rows[row] = rule.rows.get(row, 0) + 1

    def remove(self, row: int, pod: Pod) -> None:
        """Remove the terms of a pod from a row; *pod* is as it was added."""
        for key in self.terms_of(pod):
            rule = self._rules[key]
            rule.rows[row] -= 1
            if rule.rows[row]:
                continue
            del rule.rows[row]
            if not rule.rows:
                self._drop(key)

    def as_if(self, gone: Placements, there: Placements) -> "PlacedTermIndex":
        """Return the index without the pods *gone* and with the pods *there*. Call only `about` on it."""
        return HypotheticalTermIndex(self, gone, there)

    def snapshot(self) -> tuple[TermKey, ...]:
        """Return the terms, oldest first, as data."""
        rules = sorted(self._rules.values(), key=lambda rule: rule.number)
        return tuple((rule.term, rule.weight) for rule in rules)

    def restore(self, terms: Iterable[TermKey]) -> None:
        """Restore the numbers of terms; the caller then adds the pods."""
        for key in terms:
            self._new(key)

    def about(self, pod: Pod) -> list[PlacedTerm]:
        """List the terms that match a pod, oldest first."""
        if not self._rules:
            return []
        applies = self.namespaces.applies
        found = {
            rule.number: rule
            for namespace in (pod.namespace, ANYWHERE)
            for pair in (None, *pod.labels.items())
            for rule in self._buckets.get((namespace, pair), ())
            if applies(rule.term, pod)
        }
        return [found[number] for number in sorted(found)]

    def sign(self, pod: Pod) -> tuple[int, ...]:
        """Return the numbers of the terms about a pod; the same terms match pods with equal numbers."""
        return tuple([rule.number for rule in self.about(pod)]) if self._rules else ()

    def between(self, placed: Pod, pod: Pod) -> bool:
        """Return whether a term of *placed* matches *pod*."""
        return any(self.namespaces.applies(term, pod) for term, _ in self.terms_of(placed))

    def terms_of(self, pod: Pod) -> Iterator[TermKey]:
        """List the terms of a pod with explicit namespaces; without those that match no pod at all."""
        for term, weight in self.listed(pod):
            if term.selector is not None:
                yield explicit(term, pod), weight

    def _new(self, key: TermKey) -> PlacedTerm:
        self._count += 1
        rule = self._rules[key] = PlacedTerm(self._count, key)
        for bucket in buckets(rule.term):
            self._buckets.setdefault(bucket, []).append(rule)
        self.edition += 1
        return rule

    def _drop(self, key: TermKey) -> None:
        rule = self._rules.pop(key)
        for bucket in buckets(rule.term):
            rules = self._buckets[bucket]
            rules.remove(rule)
            if not rules:
                del self._buckets[bucket]
        self.edition += 1


class HypotheticalTermIndex(PlacedTermIndex):
    """Terms of a hypothetical set of placed pods."""

    __slots__ = ("_more", "_real")

    def __init__(self, real: PlacedTermIndex, gone: Placements, there: Placements) -> None:
        """Read *real*, without the terms of the pods *gone* and with those of the pods *there*."""
        super().__init__(real.namespaces, real.listed)
        self._real = real
        self._more: dict[TermKey, list[tuple[int, int]]] = {}
        """Term → (row, change in the number of pods with the term there)."""
        for placements, more in ((gone, -1), (there, 1)):
            for row, pod in placements:
                for key in self.terms_of(pod):
                    self._more.setdefault(key, []).append((row, more))

    def about(self, pod: Pod) -> list[PlacedTerm]:
        """List the terms that would match a pod."""
        rules = {(rule.term, rule.weight): rule for rule in self._real.about(pod)}
        for key, changes in self._more.items():
            if key in rules or self.namespaces.applies(key[0], pod):
                rules[key] = _patched(rules.get(key) or PlacedTerm(0, key), changes)
        return [rule for rule in rules.values() if rule.rows]


def _patched(rule: PlacedTerm, changes: list[tuple[int, int]]) -> PlacedTerm:
    patched = PlacedTerm(rule.number, (rule.term, rule.weight))
    patched.rows = dict(rule.rows)
    for row, more in changes:
        patched.rows[row] = patched.rows.get(row, 0) + more
        if not patched.rows[row]:
            del patched.rows[row]
    return patched


def buckets(term: PodTerm) -> list[Bucket]:
    """List where to find a term, which has explicit namespaces."""
    pair = needed(term.selector or LabelSelector())
    if term.namespace_selector is not None:
        return [(ANYWHERE, pair)]
    return [(namespace, pair) for namespace in dict.fromkeys(term.namespaces)]
