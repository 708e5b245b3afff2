"""
Pod counts per node for affinity terms: how many pods on each row match all terms of a set.

A set of terms has one counter, whatever the topology of the terms. Counters work on the groups of `PodCounts`: a new
group finds its counters by namespace and by one label, and a new counter reads the groups once. Placing a pod then
takes one addition for each counter that matches the pod. Unlike other counts, these include pods that are being
deleted, as upstream.

Counters exist for terms that a plugin asked for recently. `NodeColumns` journals changes of counters, and also when a
counter is dropped: its later changes are not journaled.
"""

from collections.abc import Iterable, Iterator
from typing import ClassVar, Final

import msgspec

from lamina.model.pod import Pod, PodTerm
from lamina.scheduling.state.namespace_labels import ANYWHERE, NamespaceLabels, explicit
from lamina.scheduling.state.placed_terms import Bucket, buckets
from lamina.scheduling.state.pod_counts import CountedPods, PodCounter, PodCounts

PodSet = tuple[PodTerm, ...]
"""Terms with explicit namespaces and without topology; a pod must match all of them. See `pod_set`."""

# Memory limit of the counters in bytes; beyond it, the least recently used counter is dropped.
KEPT_BYTES: Final = 32 * 1024 * 1024
KEPT_AT_LEAST: Final = 512
"""More than one pod can use: a counter must outlive the evaluation that it is made for."""


def pod_set(terms: Iterable[PodTerm], pod: Pod) -> PodSet:
    """Return the set of pods that match all *terms*, which are terms of *pod*."""
    bare = (msgspec.structs.replace(explicit(term, pod), topology_key="") for term in terms)
    return tuple(dict.fromkeys(bare))


class TermCounter(PodCounter):
    """Number of pods on each row that match all terms of a set."""

    __slots__ = ("terms",)

    counts_deleting: ClassVar = True

    def __init__(self, terms: PodSet, rows: int) -> None:
        """Start at zero."""
        super().__init__("", "", rows)
        self.terms = terms


class TermCounts:
    """Counters of recently requested sets of terms."""

    __slots__ = ("_buckets", "_kept", "_namespaces", "_pods", "dropped")

    def __init__(self, pods: PodCounts, namespaces: NamespaceLabels) -> None:
        """Count the pods in the groups of *pods*."""
        self.dropped = 0
        """How many counters were dropped so far."""
        self._pods = pods
        self._namespaces = namespaces
        self._kept: dict[PodSet, TermCounter] = {}
        self._buckets: dict[Bucket, list[TermCounter]] = {}
        pods.group_added = self._join

    def counter(self, terms: PodSet, height: int) -> TermCounter:
        """Return the counter of a set, which must not be empty."""
        counter = self._kept.pop(terms, None)
        if counter is None:
            self._make_room(height)
            counter = TermCounter(terms, height)
            for bucket in buckets(terms[0]):
                self._buckets.setdefault(bucket, []).append(counter)
            for group in self._groups(terms):
                group.join(counter)
        self._kept[terms] = counter
        return counter

    def matches(self, terms: PodSet, pod: Pod) -> bool:
        """Return whether a pod matches all terms of a set."""
        return all(self._namespaces.applies(term, pod) for term in terms)

    def drop_selected(self) -> None:
        """Drop the counters whose terms select namespaces by label, because such labels changed."""
        for terms in [terms for terms in self._kept if any(one.namespace_selector is not None for one in terms)]:
            self._drop(self._kept.pop(terms))

    def _join(self, group: CountedPods, namespace: str) -> None:
        """Join a new, empty group to the counters that match it."""
        if not self._kept:
            return
        found = {
            id(counter): counter
            for place in (namespace, ANYWHERE)
            for pair in (None, *group.labels.items())
            for counter in self._buckets.get((place, pair), ())
        }
        for counter in found.values():
            if self._includes(counter.terms, namespace) and _selects(counter.terms, group):
                group.join(counter)

    def _groups(self, terms: PodSet) -> Iterator[CountedPods]:
        """List the groups that a set of terms matches."""
        first = terms[0]
        places = self._pods.namespaces() if first.namespace_selector is not None else dict.fromkeys(first.namespaces)
        for namespace in places:
            if self._includes(terms, namespace):
                for group in self._pods.groups(namespace):
                    if _selects(terms, group):
                        yield group

    def _includes(self, terms: PodSet, namespace: str) -> bool:
        return all(self._namespaces.within(term, namespace) for term in terms)

    def _make_room(self, height: int) -> None:
        most = max(KEPT_AT_LEAST, KEPT_BYTES // (8 * max(1, height)))
        while len(self._kept) >= most:
            self._drop(self._kept.pop(next(iter(self._kept))))

    def _drop(self, counter: TermCounter) -> None:
        self.dropped += 1
        # All groups: the labels of namespaces may be others than when the groups joined.
        for namespace in self._pods.namespaces():
            for group in self._pods.groups(namespace):
                group.leave(counter)
        for bucket in buckets(counter.terms[0]):
            counters = self._buckets[bucket]
            counters.remove(counter)
            if not counters:
                del self._buckets[bucket]


def _selects(terms: PodSet, group: CountedPods) -> bool:
    return all(term.selector is not None and term.selector.matches(group.labels) for term in terms)
