"""
Hypothetical cluster state: some pods gone, others added.

Nothing is copied or changed: the view reads the columns and corrects the affected rows. Its cost depends only on the
given pods, so that preemption can test hundreds of nodes. Calls on the view cost as much as on an ordinary view.

    supposed = Hypothesis(columns, gone=[(row, victim)], there=[(row, nominated)])
    plugin.pre_filter(state, pod, supposed.view())
    plugin.filter(state, pod, supposed.view([row]))        or plugin.filter_node(state, pod, supposed.row(row))

Pods that would be gone must be given as they were counted, with their rows. Such a view is never `whole`, and
`changed_since` returns None: plugins must not cache results from it. Use a separate cycle state for each hypothesis.
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from lamina.model.pod import Pod
from lamina.model.resources import Amounts
from lamina.model.selectors import LabelSelector
from lamina.scheduling.state.columns import LARGEST, LINES, NUDGE, Floats, Ints, NodeColumns
from lamina.scheduling.state.node_facts import F, FactHandle, Placements
from lamina.scheduling.state.placed_terms import PlacedTermIndex
from lamina.scheduling.state.pod_counts import OwnerKey, owner_key
from lamina.scheduling.state.scalar_resources import LOWEST
from lamina.scheduling.state.term_counts import PodSet
from lamina.scheduling.state.view import RANKED, NodeRow, NodeView


class UsageDelta:
    """Change of requests and limits on one row."""

    __slots__ = ("limited", "ranked", "scalars", "taken")

    def __init__(self) -> None:
        """Start without pods."""
        self.taken = [0] * len(LINES)
        self.ranked = [0, 0]
        self.limited = [0, 0]
        self.scalars: dict[str, int] = {}

    def plus(self, columns: NodeColumns, pod: Pod, times: int) -> "UsageDelta":
        """Return this change with a pod counted as the columns do; *times* is -1 for a pod that would be gone."""
        taken, others = columns.taken(pod.requests)
        ranked, _ = columns.taken(pod.scoring_requests)
        limited, _ = columns.taken(pod.limits or pod.requests)
        more = UsageDelta()
        more.taken = [before + times * amount for before, amount in zip(self.taken, taken.tolist(), strict=True)]
        for line in (0, 1):
            more.ranked[line] = self.ranked[line] + times * ranked.item(line)
            more.limited[line] = self.limited[line] + times * limited.item(line)
        more.scalars = self.scalars.copy()
        for name, amount in others:
            more.scalars[name] = more.scalars.get(name, 0) + times * min(amount, LARGEST)
        return more


class Hypothesis:
    """Pods that would be gone and pods that would be present in addition."""

    def __init__(self, columns: NodeColumns, *, gone: Placements = (), there: Placements = ()) -> None:
        """Assume that the columns do not count the pods *gone* and count the pods *there* in addition."""
        self.columns = columns
        self.gone = tuple(gone)
        self.there = tuple(there)
        self.differences: dict[int, UsageDelta] = {}
        """By row; rows without such pods are left out."""
        self._facts: dict[int, object] = {}
        self._anti_affinity: PlacedTermIndex | None = None
        self._scoring_terms: PlacedTermIndex | None = None
        first: dict[tuple[Amounts, Amounts, Amounts, int], UsageDelta] = {}
        """Changes by one pod, which equal pods on other rows share."""
        for placements, times in ((self.gone, -1), (self.there, 1)):
            for row, pod in placements:
                before = self.differences.get(row)
                if before is not None:
                    self.differences[row] = before.plus(columns, pod, times)
                    continue
                key = (pod.requests, pod.scoring_requests, pod.limits, times)
                if key not in first:
                    first[key] = UNCHANGED.plus(columns, pod, times)
                self.differences[row] = first[key]

    def view(self, rows: Sequence[int] | None = None) -> NodeView:
        """Return a view of some rows (in the given order, each once), or of all rows."""
        if rows is None:
            return HypotheticalView(self, slice(0, self.columns.size), self.columns.size)
        if len(rows) == 1:
            return HypotheticalView(self, slice(rows[0], rows[0] + 1), 1)
        return HypotheticalView(self, np.array(rows, dtype=np.intp), len(rows))

    def row(self, row: int) -> NodeRow:
        """Return one row."""
        return HypotheticalRow(self, row)

    def fact(self, handle: FactHandle[F]) -> F:
        """Return a registered fact for the hypothetical pods."""
        known = self._facts.get(handle.facet)
        if known is None:
            gone, there = ([one for one in some if handle.fact.counts(one[1])] for some in (self.gone, self.there))
            known = self._facts[handle.facet] = handle.fact.as_if(gone, there) if gone or there else handle.fact
        return known  # type: ignore[return-value]  # under a handle's facet there is its fact

    def anti_affinity(self) -> PlacedTermIndex:
        """Return the required anti-affinity terms of the hypothetical pods."""
        if self._anti_affinity is None:
            self._anti_affinity = self._terms(self.columns.anti_affinity)
        return self._anti_affinity

    def scoring_terms(self) -> PlacedTermIndex:
        """Return the other affinity terms of the hypothetical pods."""
        if self._scoring_terms is None:
            self._scoring_terms = self._terms(self.columns.scoring_terms)
        return self._scoring_terms

    def _terms(self, real: PlacedTermIndex) -> PlacedTermIndex:
        gone, there = ([one for one in some if one[1].has_pod_terms] for some in (self.gone, self.there))
        return real.as_if(gone, there) if gone or there else real

    def headroom(self, row: int, line: int) -> float:
        """Return the percentage of cpu or memory on a row that would be free, as counted for scoring."""
        capacity = self.columns.allocatable.item(line, row)
        in_use = self.columns.ranked.item(line, row) + self.differences[row].ranked[line]
        return (capacity - in_use) * 100 / capacity if capacity > 0 else 0.0


def as_if(columns: NodeColumns, *, gone: Placements = (), there: Placements = ()) -> Hypothesis:
    """Return the hypothesis without the pods *gone* and with the pods *there*."""
    return Hypothesis(columns, gone=gone, there=there)


class HypotheticalView(NodeView):
    """View of some rows under a hypothesis."""

    __slots__ = ("_places", "_supposed")

    def __init__(self, supposed: Hypothesis, rows: slice | npt.NDArray[np.intp], size: int) -> None:
        """Select *rows*; *size* is their number."""
        super().__init__(supposed.columns, rows, size)
        self._supposed = supposed
        if isinstance(rows, slice):
            first = int(rows.start or 0)
            places = [(row - first, row) for row in supposed.differences if first <= row < first + size]
        else:
            there = {row: place for place, row in enumerate(rows.tolist())}
            places = [(there[row], row) for row in supposed.differences if row in there]
        self._places = places

    @property
    def gone(self) -> Placements:
        """Pods that would be gone."""
        return self._supposed.gone

    @property
    def there(self) -> Placements:
        """Pods that would be present in addition."""
        return self._supposed.there

    @property
    def changed(self) -> Sequence[tuple[int, int]]:
        """Positions in view, with their rows, that have such pods."""
        return self._places

    @property
    def whole(self) -> bool:
        """Always False, so that plugins do not cache results from this view."""
        return False

    def noted(self, facet: int) -> int:
        """Return -1: there is no journal of a hypothesis."""
        return -1

    def changed_since(self, facet: int, noted: int) -> list[int] | None:
        """Return None: there is no journal of a hypothesis."""
        return None

    def free(self, resource: str) -> Ints:
        """Return the free amount of a resource on each node under the hypothesis."""
        line = LINES.get(resource)
        amounts = super().free(resource)
        return self._less(
            amounts,
            [one.scalars.get(resource, 0) if line is None else one.taken[line] for one in self._differences()],
        )

    def ranked(self, resource: str) -> Ints:
        """Return the requested cpu or memory as counted for scoring, under the hypothesis."""
        line = RANKED[resource]
        return self._less(super().ranked(resource), [-one.ranked[line] for one in self._differences()])

    def limited(self, resource: str) -> Ints:
        """Return the sum of cpu or memory limits on each node under the hypothesis."""
        line = RANKED[resource]
        return self._less(super().limited(resource), [-one.limited[line] for one in self._differences()])

    def headroom_with(self, resource: str, amount: int) -> Floats:
        """Return the percentage of cpu or memory that would be free with *amount* more requested."""
        line, left = RANKED[resource], super().headroom_with(resource, amount)
        for place, row in self.changed:
            more = self._columns.unit.item(line, row) * -float(amount) if amount else 0.0
            left[place] = (more + self._supposed.headroom(row, line)) + NUDGE
        return left

    def owned(self, key: OwnerKey) -> Ints:
        """Return the number of pods of a controller on each node under the hypothesis."""
        return self._counted(super().owned(key), lambda pod: owner_key(pod) == key)

    def owned_in_all(self, key: OwnerKey) -> int:
        """Return the number of pods of a controller on all nodes under the hypothesis."""
        more = sum(owner_key(pod) == key and not pod.deleting for _, pod in self.there)
        less = sum(owner_key(pod) == key and not pod.deleting for _, pod in self.gone)
        return super().owned_in_all(key) + more - less

    def matching(self, namespace: str, selector: LabelSelector) -> Ints:
        """Return the number of pods of a namespace that a selector matches on each node, under the hypothesis."""
        return self._counted(
            super().matching(namespace, selector),
            lambda pod: pod.namespace == namespace and selector.matches(pod.labels),
        )

    def matched(self, terms: PodSet) -> Ints:
        """Return the number of pods that match all terms of a set on each node, under the hypothesis."""
        matches = self._columns.term_counts.matches
        return self._counted(super().matched(terms), lambda pod: matches(terms, pod), deleting=True)

    def fact(self, handle: FactHandle[F]) -> F:
        """Return a registered fact under the hypothesis."""
        return self._supposed.fact(handle)

    def anti_affinity(self) -> PlacedTermIndex:
        """Return the required anti-affinity terms of placed pods under the hypothesis."""
        return self._supposed.anti_affinity()

    def scoring_terms(self) -> PlacedTermIndex:
        """Return the other affinity terms of placed pods under the hypothesis."""
        return self._supposed.scoring_terms()

    def _differences(self) -> list[UsageDelta]:
        return [self._supposed.differences[row] for _, row in self.changed]

    def _less(self, amounts: Ints, less: Sequence[int]) -> Ints:
        if not any(less):
            return amounts
        amounts = amounts.copy()
        for (place, _), one in zip(self.changed, less, strict=True):
            amounts[place] = max(amounts.item(place) - one, LOWEST)
        return amounts

    def _counted(self, counts: Ints, counts_for: Callable[[Pod], bool], *, deleting: bool = False) -> Ints:
        counts = counts.copy()
        places = {row: place for place, row in self.changed}
        for placements, times in ((self.gone, -1), (self.there, 1)):
            for row, pod in placements:
                if row in places and (deleting or not pod.deleting) and counts_for(pod):
                    counts[places[row]] += times
        return counts


class HypotheticalRow(NodeRow):
    """One node under a hypothesis."""

    __slots__ = ("_difference", "_supposed")

    def __init__(self, supposed: Hypothesis, row: int) -> None:
        """Read *row*."""
        super().__init__(supposed.columns, row)
        self._supposed = supposed
        self._difference = supposed.differences.get(row) or UNCHANGED

    def fact(self, handle: FactHandle[F]) -> F:
        """Return a registered fact under the hypothesis."""
        return self._supposed.fact(handle)

    def free_all(self) -> list[int]:
        """Return the free amounts of the well-known resources under the hypothesis."""
        return [free - more for free, more in zip(super().free_all(), self._difference.taken, strict=True)]

    def ranked(self, resource: str) -> int:
        """Return the requested cpu or memory as counted for scoring, under the hypothesis."""
        return super().ranked(resource) + self._difference.ranked[RANKED[resource]]

    def capacity_and_ranked(self, resource: str) -> tuple[int, int]:
        """Return the allocatable cpu or memory, and the amount requested under the hypothesis, as for scoring."""
        capacity, ranked = super().capacity_and_ranked(resource)
        return capacity, ranked + self._difference.ranked[RANKED[resource]]

    def capacity_and_free(self, resource: str) -> tuple[int, int]:
        """Return the allocatable and free amount of a resource under the hypothesis."""
        capacity, free = super().capacity_and_free(resource)
        line = LINES.get(resource)
        more = self._difference.scalars.get(resource, 0) if line is None else self._difference.taken[line]
        return capacity, max(free - more, LOWEST)

    def free(self, resource: str) -> int:
        """Return the free amount of a resource under the hypothesis."""
        return self.capacity_and_free(resource)[1]


UNCHANGED: Final = UsageDelta()
