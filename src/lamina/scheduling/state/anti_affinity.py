"""
Which pods keep which others away, and from where: the required anti-affinity of pods that have a node.

Such a rule binds other pods, whatever those say themselves. Pods with the same rule (those of one deployment) are counted
together, and a rule is found by namespace and by one label that it cannot do without: a pod to which none applies, as to
most, is told so in a few look-ups, and a cluster without rules costs nothing.

    placed pod ──> rule (namespaces, selector, topology) ──> rows ──> domains that are closed to pods the rule is about

Which rules apply to a pod changes as rules come and go. It is told as numbers that are never used again (`sign`), and
`edition` grows whenever an earlier answer may have become wrong. Written by the columns; read through `NodeView`.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from lamina.model.pod import Pod, PodTerm
from lamina.model.selectors import LabelSelector
from lamina.scheduling.state.node_facts import Placements
from lamina.scheduling.state.pod_counts import needed

NAME_LABEL: Final = "kubernetes.io/metadata.name"
"""The label every namespace has: the API server puts its name there."""

ANYWHERE: Final = ""
"""Stands for all namespaces; none has this name."""

Bucket = tuple[str, tuple[str, str] | None]
"""A namespace (or `ANYWHERE`) and a label; None for selectors that can do without any particular one."""


class AntiAffinityRule:
    """One term, with namespaces in it, and the pods that have it: how many on each row."""

    __slots__ = ("number", "rows", "term")

    def __init__(self, number: int, term: PodTerm) -> None:
        """Start with no pod."""
        self.number = number
        self.term = term
        self.rows: dict[int, int] = {}


class AntiAffinityIndex:
    """The rules of all placed pods."""

    __slots__ = ("_buckets", "_count", "_namespaces", "_rules", "edition")

    def __init__(self) -> None:
        """Start with no rule."""
        self.edition = 0
        """Grows whenever another set of rules may apply to a pod than did before."""
        self._rules: dict[PodTerm, AntiAffinityRule] = {}
        self._buckets: dict[Bucket, list[AntiAffinityRule]] = {}
        self._namespaces: dict[str, dict[str, str]] = {}
        self._count = 0

    def add(self, row: int, pod: Pod) -> None:
        """Note the rules of a pod on a row."""
        for term in _terms(pod):
            rule = self._rules.get(term) or self._new_rule(term)
            rule.rows[row] = rule.rows.get(row, 0) + 1

    def remove(self, row: int, pod: Pod) -> None:
        """Forget the rules of a pod that was on a row, as it was then."""
        for term in _terms(pod):
            rule = self._rules[term]
            rule.rows[row] -= 1
            if rule.rows[row]:
                continue
            del rule.rows[row]
            if not rule.rows:
                self._drop(rule)

    def as_if(self, gone: Placements, there: Placements) -> "AntiAffinityIndex":
        """Answer as if some pods were gone and others were there; only `about` is meant to be asked."""
        return HypotheticalAntiAffinity(self, gone, there)

    def name(self, namespace: str, labels: dict[str, str]) -> None:
        """Take over which labels a namespace has."""
        if self._namespaces.get(namespace, {}) != labels:
            self._namespaces[namespace] = labels
            self.edition += 1

    def forget(self, namespace: str) -> None:
        """Forget a namespace that is gone."""
        if self._namespaces.pop(namespace, None):
            self.edition += 1

    def snapshot(self) -> tuple[tuple[PodTerm, ...], dict[str, dict[str, str]]]:
        """Return the rules, oldest first, and the labels of namespaces, as data."""
        rules = sorted(self._rules.values(), key=lambda rule: rule.number)
        return tuple(rule.term for rule in rules), dict(self._namespaces)

    def restore(self, terms: tuple[PodTerm, ...], namespaces: dict[str, dict[str, str]]) -> None:
        """Let rules be as old as they were, before the pods that have them are added."""
        self._namespaces = dict(namespaces)
        for term in terms:
            self._new_rule(term)

    def about(self, pod: Pod) -> list[AntiAffinityRule]:
        """List the rules that keep a pod away from somewhere, oldest first."""
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
        """Return the numbers of the rules about a pod: pods with the same numbers are kept away from the same places."""
        return tuple([rule.number for rule in self.about(pod)]) if self._rules else ()

    def between(self, placed: Pod, pod: Pod) -> bool:
        """Say whether *placed* keeps *pod* away from somewhere."""
        return any(self.applies(term, pod) for term in _terms(placed))

    def applies(self, term: PodTerm, pod: Pod) -> bool:
        """Say whether a rule is about a pod."""
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
    """The rules as they would be: those of the pods in question are counted apart."""

    __slots__ = ("_more", "_real")

    def __init__(self, real: AntiAffinityIndex, gone: Placements, there: Placements) -> None:
        """Look at *real*; take away the rules of pods that would be *gone*, and add those of pods *there*."""
        super().__init__()
        self._real = real
        self._more: dict[PodTerm, list[tuple[int, int]]] = {}
        """For a rule: the row, and how many pods more (or fewer) would have it there."""
        for placements, more in ((gone, -1), (there, 1)):
            for row, pod in placements:
                for term in _terms(pod):
                    self._more.setdefault(term, []).append((row, more))

    def about(self, pod: Pod) -> list[AntiAffinityRule]:
        """List the rules that would keep a pod away from somewhere."""
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
    """List what a pod repels, with the namespaces that are meant."""
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
