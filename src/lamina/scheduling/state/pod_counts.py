"""
How many pods of a kind are on each node: of one controller, or with labels that a selector matches.

Kept as counters, one array per question that was asked, and patched as pods are placed and removed: nobody goes through
pods to answer. Pods of one controller with the same labels are the same to every question, so they are counted as a
group, and a group knows the counters it is part of. Placing a pod is then two look-ups and one addition per counter it
really belongs to, however many others there are.

    pod ──> group (namespace, controller, labels) ──> counters it is part of

Which counters a new group is part of is found by namespace and by one label a selector cannot do without. Pods that are
being deleted do not count, as upstream has it. Written by the columns; read through `NodeView`.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from lamina.model.pod import Pod
from lamina.model.selectors import IN, LabelSelector
from lamina.rows.growable import grown

Ints = npt.NDArray[np.int64]
OwnerKey = tuple[str, str]
Key = tuple[str, str | LabelSelector]
"""A namespace, and in it a controller or a selector."""
Labels = frozenset[tuple[str, str]]
Bucket = tuple[str, tuple[str, str] | None]
"""A namespace and a label; None for selectors that can do without any particular one."""

# What the counters may use; beyond that the one that was asked for longest ago is let go.
KEPT_BYTES: Final = 32 * 1024 * 1024
KEPT_AT_LEAST: Final = 64


def owner_key(pod: Pod) -> OwnerKey | None:
    """Say whose pod this is: namespace, and the controller's uid or "kind/name"; None for a pod without controller."""
    owner = pod.owner
    if owner is None:
        return None
    return (pod.namespace, owner.uid or f"{owner.kind}/{owner.name}")


class PodCounter:
    """One question, and its answer for each row."""

    __slots__ = ("namespace", "per_row", "total", "what")

    def __init__(self, namespace: str, what: str | LabelSelector, rows: int) -> None:
        """Start with no pod; *what* is a controller as `owner_key` calls it, or a selector."""
        self.namespace = namespace
        self.what = what
        self.per_row: Ints = np.zeros(rows, dtype=np.int64)
        self.total = 0

    def add(self, row: int, count: int) -> None:
        """Count more (or fewer) pods on a row."""
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
    """Pods that no question can tell apart: how many on each row."""

    __slots__ = ("counters", "labels", "rows")

    def __init__(self, labels: dict[str, str]) -> None:
        """Start with no pod."""
        self.labels = labels
        self.rows: dict[int, int] = {}
        self.counters: list[PodCounter] = []

    def join(self, counter: PodCounter) -> None:
        """Become part of a counter, with the pods there are."""
        self.counters.append(counter)
        for row, count in self.rows.items():
            counter.add(row, count)


class OwnerPods:
    """The groups of one controller (or, in each namespace, of the pods without one)."""

    __slots__ = ("groups", "latest")

    def __init__(self) -> None:
        """Start with no group."""
        self.groups: dict[Labels, CountedPods] = {}
        self.latest: CountedPods | None = None
        """Asked first: pods of one controller mostly have the same labels, and comparing them is quicker than a look-up."""

    def find(self, labels: dict[str, str]) -> CountedPods | None:
        """Return the group of pods with these labels."""
        group = self.latest
        if group is None or group.labels != labels:
            group = self.latest = self.groups.get(frozenset(labels.items()))
        return group


class PodCounts:
    """Groups of pods, and the counters somebody asked for."""

    __slots__ = ("_buckets", "_counters", "_namespaces")

    def __init__(self) -> None:
        """Start with no pod and no question."""
        self._namespaces: dict[str, dict[str, OwnerPods]] = {}
        self._counters: dict[Key, PodCounter] = {}
        self._buckets: dict[Bucket, list[PodCounter]] = {}

    def add(self, row: int, pod: Pod) -> None:
        """Count a pod on a row."""
        if pod.deleting:
            return
        owner = pod.owner
        # As `owner_key` has it; written out because every placement comes by.
        name = "" if owner is None else owner.uid or f"{owner.kind}/{owner.name}"
        family = self._family(pod.namespace, name)
        group = family.find(pod.labels)
        if group is None:
            group = family.latest = self._new_group(family, pod.namespace, name, pod.labels)
        rows = group.rows
        rows[row] = rows.get(row, 0) + 1
        for counter in group.counters:
            counter.add(row, 1)

    def remove(self, row: int, pod: Pod) -> None:
        """Stop counting a pod that was counted on a row, as it was then."""
        if pod.deleting:
            return
        _, name = owner_key(pod) or ("", "")
        families = self._namespaces[pod.namespace]
        family = families[name]
        group = family.find(pod.labels)
        assert group is not None, "a pod that is removed was counted"
        for counter in group.counters:
            counter.add(row, -1)
        group.rows[row] -= 1
        if group.rows[row]:
            return
        del group.rows[row]
        if not group.rows:
            self._drop(pod.namespace, name, group)

    def owned(self, key: OwnerKey, height: int) -> Ints:
        """Return how many pods of a controller each of the first *height* rows has; to be read only."""
        return self._of_owner(key, height).first(height)

    def owned_in_all(self, key: OwnerKey, height: int) -> int:
        """Return how many pods of a controller there are on all rows, of which there are *height*."""
        return self._of_owner(key, height).total

    def _of_owner(self, key: OwnerKey, height: int) -> PodCounter:
        counter = self._recall(key)
        if counter is None:
            counter = self._keep(PodCounter(*key, height))
            for group in self._part_of(counter):
                group.join(counter)
        return counter

    def matching(self, namespace: str, selector: LabelSelector, height: int) -> Ints:
        """Return how many pods of a namespace a selector matches on each of the first *height* rows; to be read only."""
        counter = self._recall((namespace, selector))
        if counter is None:
            counter = self._keep(PodCounter(namespace, selector, height))
            self._buckets.setdefault((namespace, needed(selector)), []).append(counter)
            for group in self._part_of(counter):
                group.join(counter)
        return counter.first(height)

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
        return group

    def _drop(self, namespace: str, name: str, group: CountedPods) -> None:
        """Let a group go that has no pod any more, and with it what it was the last of."""
        families = self._namespaces[namespace]
        family = families[name]
        del family.groups[frozenset(group.labels.items())]
        family.latest = None
        if not family.groups:
            del families[name]
            if not families:
                del self._namespaces[namespace]

    def _part_of(self, counter: PodCounter) -> list[CountedPods]:
        """List the groups that a counter counts."""
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


def needed(selector: LabelSelector) -> tuple[str, str] | None:
    """Return a label that everything the selector matches has; None when there is no such label."""
    for pair in selector.match_labels:
        return pair
    for requirement in selector.expressions:
        if requirement.operator == IN and len(requirement.values) == 1:
            return (requirement.key, requirement.values[0])
    return None
