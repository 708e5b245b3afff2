"""
Pod counts per node: pods of one controller, or pods that a label selector matches.

Each requested count is an array that is updated as pods are placed and removed; no request iterates over pods. Pods of
one controller with equal labels form a group, and each group lists the counters it belongs to. Placing a pod takes two
look-ups and one addition for each counter of its group, however many other counters exist.

    pod ──> group (namespace, controller, labels) ──> counters that include the group

The counters of a new group are found by namespace and by one label that a selector requires. Pods that are being
deleted are not counted, as upstream, except by the counters of affinity terms (`term_counts`). The columns write;
plugins read through `NodeView`.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt

from lamina.model.pod import Pod
from lamina.model.selectors import IN, LabelSelector
from lamina.rows.growable import grown

Ints = npt.NDArray[np.int64]
OwnerKey = tuple[str, str]
Key = tuple[str, str | LabelSelector]
"""A namespace, and a controller or a selector in it."""
Labels = frozenset[tuple[str, str]]
Bucket = tuple[str, tuple[str, str] | None]
"""A namespace and a required label; None for selectors that require no particular label."""

# Memory limit of the counters in bytes; beyond it, the least recently used counter is evicted.
KEPT_BYTES: Final = 32 * 1024 * 1024
KEPT_AT_LEAST: Final = 64


def owner_key(pod: Pod) -> OwnerKey | None:
    """Return the namespace and the controller's uid or "kind/name"; None for a pod without a controller."""
    owner = pod.owner
    if owner is None:
        return None
    return (pod.namespace, owner.uid or f"{owner.kind}/{owner.name}")


class PodCounter:
    """Number of pods on each row that belong to one controller or match one selector."""

    __slots__ = ("namespace", "per_row", "total", "what")

    counts_deleting: ClassVar = False
    """Whether pods that are being deleted count."""

    def __init__(self, namespace: str, what: str | LabelSelector, rows: int) -> None:
        """Start at zero; *what* is a controller as in `owner_key`, or a selector."""
        self.namespace = namespace
        self.what = what
        self.per_row: Ints = np.zeros(rows, dtype=np.int64)
        self.total = 0

    def add(self, row: int, count: int) -> None:
        """Add *count* pods to a row; negative to remove."""
        if row >= len(self.per_row):
            self.per_row = grown(self.per_row, row + 1)
        self.per_row[row] += count
        self.total += count

    def first(self, height: int) -> Ints:
        """Return the counts of the first *height* rows."""
        if len(self.per_row) < height:
            self.per_row = grown(self.per_row, height)
        return self.per_row[:height]


class CountedPods:
    """Group of pods with the same controller and labels, with their number on each row."""

    __slots__ = ("counters", "deleting", "labels", "rows", "termed")

    def __init__(self, labels: dict[str, str]) -> None:
        """Start without pods."""
        self.labels = labels
        self.rows: dict[int, int] = {}
        self.deleting: dict[int, int] = {}
        """The same for pods that are being deleted."""
        self.counters: list[PodCounter] = []
        self.termed = 0
        """How many of the counters are those of affinity terms."""

    def join(self, counter: PodCounter) -> None:
        """Join a counter and add the group's pods to it."""
        self.counters.append(counter)
        for row, count in self.rows.items():
            counter.add(row, count)
        if counter.counts_deleting:
            self.termed += 1
            for row, count in self.deleting.items():
                counter.add(row, count)

    def leave(self, counter: PodCounter) -> None:
        """Leave a counter, which is not used any more, if the group joined it."""
        if counter in self.counters:
            self.counters.remove(counter)
            self.termed -= counter.counts_deleting


class OwnerPods:
    """Groups of one controller, or of all pods without a controller in a namespace."""

    __slots__ = ("groups", "latest")

    def __init__(self) -> None:
        """Start without groups."""
        self.groups: dict[Labels, CountedPods] = {}
        self.latest: CountedPods | None = None
        """Checked first: pods of a controller mostly have equal labels, and comparing is faster than hashing."""

    def find(self, labels: dict[str, str]) -> CountedPods | None:
        """Return the group of pods with these labels, or None."""
        group = self.latest
        if group is None or group.labels != labels:
            group = self.latest = self.groups.get(frozenset(labels.items()))
        return group


class PodCounts:
    """Groups of pods, and the recently requested counters."""

    __slots__ = ("_buckets", "_counters", "_namespaces", "group_added")

    def __init__(self) -> None:
        """Start without pods and counters."""
        self.group_added: Callable[[CountedPods, str], None] = _ignored
        """Called with each new group and its namespace, before the group has pods."""
        self._namespaces: dict[str, dict[str, OwnerPods]] = {}
        self._counters: dict[Key, PodCounter] = {}
        self._buckets: dict[Bucket, list[PodCounter]] = {}

    def add(self, row: int, pod: Pod) -> bool:
        """Count a pod on a row; return whether an affinity term matches it that has a counter."""
        owner = pod.owner
        # Same as `owner_key`; inlined because every placement runs it.
        name = "" if owner is None else owner.uid or f"{owner.kind}/{owner.name}"
        family = self._family(pod.namespace, name)
        group = family.find(pod.labels)
        if group is None:
            group = family.latest = self._new_group(family, pod.namespace, name, pod.labels)
        if pod.deleting:
            return _count_deleting(group, row, 1)
        rows = group.rows
        rows[row] = rows.get(row, 0) + 1
        for counter in group.counters:
            counter.add(row, 1)
        return group.termed > 0

    def remove(self, row: int, pod: Pod) -> bool:
        """Stop counting a pod on a row; *pod* must be as it was counted. Return the same as `add`."""
        _, name = owner_key(pod) or ("", "")
        families = self._namespaces[pod.namespace]
        family = families[name]
        group = family.find(pod.labels)
        assert group is not None, "a pod that is removed was counted"
        if pod.deleting:
            termed = _count_deleting(group, row, -1)
        else:
            termed = group.termed > 0
            for counter in group.counters:
                counter.add(row, -1)
            group.rows[row] -= 1
            if not group.rows[row]:
                del group.rows[row]
        if not group.rows and not group.deleting:
            self._drop(pod.namespace, name, group)
        return termed

    def owned(self, key: OwnerKey, height: int) -> Ints:
        """Return the number of a controller's pods on each of the first *height* rows; read-only."""
        return self._of_owner(key, height).first(height)

    def owned_in_all(self, key: OwnerKey, height: int) -> int:
        """Return the number of a controller's pods on all *height* rows."""
        return self._of_owner(key, height).total

    def _of_owner(self, key: OwnerKey, height: int) -> PodCounter:
        counter = self._recall(key)
        if counter is None:
            counter = self._keep(PodCounter(*key, height))
            for group in self._part_of(counter):
                group.join(counter)
        return counter

    def matching(self, namespace: str, selector: LabelSelector, height: int) -> Ints:
        """Return how many pods of a namespace a selector matches on each of the first *height* rows; read-only."""
        counter = self._recall((namespace, selector))
        if counter is None:
            counter = self._keep(PodCounter(namespace, selector, height))
            self._buckets.setdefault((namespace, needed(selector)), []).append(counter)
            for group in self._part_of(counter):
                group.join(counter)
        return counter.first(height)

    def namespaces(self) -> Iterable[str]:
        """Return the namespaces that have groups."""
        return self._namespaces.keys()

    def groups(self, namespace: str) -> Iterator[CountedPods]:
        """Iterate over the groups of a namespace."""
        for family in self._namespaces.get(namespace, {}).values():
            yield from family.groups.values()

    # -- groups ------------------------------------------------------------------------------------------------------

    def _family(self, namespace: str, name: str) -> OwnerPods:
        families = self._namespaces.get(namespace)
        if families is None:
            families = self._namespaces[namespace] = {}
        family = families.get(name)
        if family is None:
            family = families[name] = OwnerPods()
        return family

    def _new_group(self, family: OwnerPods, namespace: str, name: str, labels: dict[str, str]) -> CountedPods:
        group = family.groups[frozenset(labels.items())] = CountedPods(labels)
        owner = self._counters.get((namespace, name))
        if owner is not None:
            group.counters.append(owner)
        for pair in (None, *labels.items()):
            for counter in self._buckets.get((namespace, pair), ()):
                assert isinstance(counter.what, LabelSelector), "only selectors are in buckets"
                if counter.what.matches(labels):
                    group.counters.append(counter)
        self.group_added(group, namespace)
        return group

    def _drop(self, namespace: str, name: str, group: CountedPods) -> None:
        """Remove an empty group, and its family and namespace if they are empty then."""
        families = self._namespaces[namespace]
        family = families[name]
        del family.groups[frozenset(group.labels.items())]
        family.latest = None
        if not family.groups:
            del families[name]
            if not families:
                del self._namespaces[namespace]

    def _part_of(self, counter: PodCounter) -> list[CountedPods]:
        """List the groups that a counter includes."""
        families, what = self._namespaces.get(counter.namespace, {}), counter.what
        if isinstance(what, str):
            return list(families[what].groups.values()) if what in families else []
        return [group for family in families.values() for group in family.groups.values() if what.matches(group.labels)]

    # -- counters ----------------------------------------------------------------------------------------------------

    def _recall(self, key: Key) -> PodCounter | None:
        counter = self._counters.pop(key, None)
        if counter is not None:
            self._counters[key] = counter
        return counter

    def _keep(self, counter: PodCounter) -> PodCounter:
        most = max(KEPT_AT_LEAST, KEPT_BYTES // (8 * max(1, len(counter.per_row))))
        while len(self._counters) >= most:
            self._let_go(self._counters.pop(next(iter(self._counters))))
        self._counters[counter.namespace, counter.what] = counter
        return counter

    def _let_go(self, counter: PodCounter) -> None:
        for group in self._part_of(counter):
            group.counters.remove(counter)
        if isinstance(counter.what, LabelSelector):
            bucket = (counter.namespace, needed(counter.what))
            self._buckets[bucket].remove(counter)
            if not self._buckets[bucket]:
                del self._buckets[bucket]


def _count_deleting(group: CountedPods, row: int, count: int) -> bool:
    """Count pods that are being deleted; return whether an affinity term matches them that has a counter."""
    left = group.deleting.get(row, 0) + count
    if left:
        group.deleting[row] = left
    else:
        del group.deleting[row]
    for counter in group.counters:
        if counter.counts_deleting:
            counter.add(row, count)
    return group.termed > 0


def _ignored(group: CountedPods, namespace: str) -> None:
    """Do nothing: without affinity terms, new groups interest no other part."""


def needed(selector: LabelSelector) -> tuple[str, str] | None:
    """Return a label that the selector requires, or None if it requires no particular one."""
    for pair in selector.match_labels:
        return pair
    for requirement in selector.expressions:
        if requirement.operator == IN and len(requirement.values) == 1:
            return (requirement.key, requirement.values[0])
    return None
