"""
Required anti-affinity of placed pods: which rules apply to a pod, and from which rows they exclude it.

A rule of a placed pod restricts other pods, even those without rules. Pods with the same rule (those of one
Deployment) share one entry. The index finds a rule by namespace and by one label that its selector requires. A pod
without matching rules therefore costs a few look-ups, and a cluster without rules costs nothing.

    placed pod ──> rule (namespaces, selector, topology) ──> rows ──> domains closed to the pods that the rule matches

The rules that apply to a pod change over time. `sign` returns their numbers, which are never reused, and `edition`
increases whenever an earlier signature may be outdated. The columns write; plugins read through `NodeView`.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from lamina.model.pod import Pod, PodTerm
from lamina.model.selectors import LabelSelector
from lamina.scheduling.state.node_facts import Placements
from lamina.scheduling.state.pod_counts import needed

NAME_LABEL: Final = "kubernetes.io/metadata.name"
"""Label of every namespace; the API server sets it to the namespace's name."""

ANYWHERE: Final = ""
"""Stands for all namespaces; no namespace has an empty name."""

Bucket = tuple[str, tuple[str, str] | None]
"""Namespace (or `ANYWHERE`) and a required label; None for selectors that require no particular label."""


class AntiAffinityRule:
    """A term with explicit namespaces, and the number of pods with that term on each row."""

    __slots__ = ("number", "rows", "term")

    def __init__(self, number: int, term: PodTerm) -> None:
        """Start without pods."""
        self.number = number
        self.term = term
        self.rows: dict[int, int] = {}


class AntiAffinityIndex:
    """Anti-affinity rules of all placed pods."""

    __slots__ = ("_buckets", "_count", "_namespaces", "_rules", "edition")

    def __init__(self) -> None:
        """Start without rules."""
        self.edition = 0
        """Increases whenever the set of rules that apply to a pod may have changed."""
        self._rules: dict[PodTerm, AntiAffinityRule] = {}
        self._buckets: dict[Bucket, list[AntiAffinityRule]] = {}
        self._namespaces: dict[str, dict[str, str]] = {}
        self._count = 0

    def add(self, row: int, pod: Pod) -> None:
        """Add the rules of a pod on a row."""
        for term in _terms(pod):
            rule = self._rules.get(term) or self._new_rule(term)
            rule.rows[row] = rule.rows.get(row, 0) + 1

    def remove(self, row: int, pod: Pod) -> None:
        """Remove the rules of a pod from a row; *pod* is as it was added."""
        for term in _terms(pod):
            rule = self._rules[term]
            rule.rows[row] -= 1
            if rule.rows[row]:
                continue
            del rule.rows[row]
            if not rule.rows:
                self._drop(rule)

    def as_if(self, gone: Placements, there: Placements) -> "AntiAffinityIndex":
        """Return the index without the pods *gone* and with the pods *there*. Call only `about` on it."""
        return HypotheticalAntiAffinity(self, gone, there)

    def name(self, namespace: str, labels: dict[str, str]) -> None:
        """Set the labels of a namespace."""
        if self._namespaces.get(namespace, {}) != labels:
            self._namespaces[namespace] = labels
            self.edition += 1

    def forget(self, namespace: str) -> None:
        """Remove a deleted namespace."""
        if self._namespaces.pop(namespace, None):
            self.edition += 1

    def snapshot(self) -> tuple[tuple[PodTerm, ...], dict[str, dict[str, str]]]:
        """Return the rules, oldest first, and the labels of namespaces, as data."""
        rules = sorted(self._rules.values(), key=lambda rule: rule.number)
        return tuple(rule.term for rule in rules), dict(self._namespaces)

    def restore(self, terms: tuple[PodTerm, ...], namespaces: dict[str, dict[str, str]]) -> None:
        """Restore the numbers of rules; the caller then adds the pods."""
        self._namespaces = dict(namespaces)
        for term in terms:
            self._new_rule(term)

    def about(self, pod: Pod) -> list[AntiAffinityRule]:
        """List the rules that exclude a pod from any row, oldest first."""
        if not self._rules:
            return []
        found = {
            rule.number: rule
            for namespace in (pod.namespace, ANYWHERE)
            for pair in (None, *pod.labels.items())
            for rule in self._buckets.get((namespace, pair), ())
            if self.applies(rule.term, pod)
        }
        return [found[number] for number in sorted(found)]

    def sign(self, pod: Pod) -> tuple[int, ...]:
        """Return the numbers of the rules about a pod; pods with equal numbers are excluded from the same rows."""
        return tuple([rule.number for rule in self.about(pod)]) if self._rules else ()

    def between(self, placed: Pod, pod: Pod) -> bool:
        """Return whether a rule of *placed* applies to *pod*."""
        return any(self.applies(term, pod) for term in _terms(placed))

    def applies(self, term: PodTerm, pod: Pod) -> bool:
        """Return whether a rule applies to a pod."""
        if term.selector is None or not term.selector.matches(pod.labels):
            return False
        if pod.namespace in term.namespaces:
            return True
        chosen = term.namespace_selector
        if chosen is None:
            return False
        return chosen.matches({**self._namespaces.get(pod.namespace, {}), NAME_LABEL: pod.namespace})

    def _new_rule(self, term: PodTerm) -> AntiAffinityRule:
        self._count += 1
        rule = self._rules[term] = AntiAffinityRule(self._count, term)
        for bucket in _buckets(term):
            self._buckets.setdefault(bucket, []).append(rule)
        self.edition += 1
        return rule

    def _drop(self, rule: AntiAffinityRule) -> None:
        del self._rules[rule.term]
        for bucket in _buckets(rule.term):
            rules = self._buckets[bucket]
            rules.remove(rule)
            if not rules:
                del self._buckets[bucket]
        self.edition += 1


class HypotheticalAntiAffinity(AntiAffinityIndex):
    """Anti-affinity rules of a hypothetical set of placed pods."""

    __slots__ = ("_more", "_real")

    def __init__(self, real: AntiAffinityIndex, gone: Placements, there: Placements) -> None:
        """Read *real*, without the rules of the pods *gone* and with those of the pods *there*."""
        super().__init__()
        self._real = real
        self._more: dict[PodTerm, list[tuple[int, int]]] = {}
        """Rule → (row, change in the number of pods with the rule there)."""
        for placements, more in ((gone, -1), (there, 1)):
            for row, pod in placements:
                for term in _terms(pod):
                    self._more.setdefault(term, []).append((row, more))

    def about(self, pod: Pod) -> list[AntiAffinityRule]:
        """List the rules that would exclude a pod from any row."""
        rules = {rule.term: rule for rule in self._real.about(pod)}
        for term, changes in self._more.items():
            if term in rules or self._real.applies(term, pod):
                rules[term] = _patched(rules.get(term) or AntiAffinityRule(0, term), changes)
        return [rule for rule in rules.values() if rule.rows]


def _patched(rule: AntiAffinityRule, changes: list[tuple[int, int]]) -> AntiAffinityRule:
    patched = AntiAffinityRule(rule.number, rule.term)
    patched.rows = dict(rule.rows)
    for row, more in changes:
        patched.rows[row] = patched.rows.get(row, 0) + more
        if not patched.rows[row]:
            del patched.rows[row]
    return patched


def _terms(pod: Pod) -> Iterator[PodTerm]:
    """List a pod's anti-affinity terms, with explicit namespaces."""
    for term in pod.repels:
        if term.namespaces or term.namespace_selector is not None:
            yield term
        else:
            yield msgspec.structs.replace(term, namespaces=(pod.namespace,))


def _buckets(term: PodTerm) -> Iterable[Bucket]:
    pair = needed(term.selector or LabelSelector())
    if term.namespace_selector is not None:
        return [(ANYWHERE, pair)]
    return [(namespace, pair) for namespace in dict.fromkeys(term.namespaces)]
