"""
The cluster as it would be if some pods were gone and others were there.

Nothing is copied and nothing is changed: the view answers from the columns and patches the rows in question. Making one costs
as much as the pods it is about, so that a question can be asked for hundreds of nodes; what a plugin then asks costs what it
costs on any view.

    supposed = Hypothesis(columns, gone=[(row, victim)], there=[(row, nominated)])
    plugin.pre_filter(state, pod, supposed.view())
    plugin.filter(state, pod, supposed.view([row]))        or plugin.filter_node(state, pod, supposed.row(row))

Pods that would be gone are given as they were counted, on the rows where they are. Such a view is never `whole` and cannot
tell what changed since: what plugins keep from one call to the next comes from views of how things are. Give each question
a cycle state of its own.
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from lamina.model.pod import Pod
from lamina.model.selectors import LabelSelector
from lamina.scheduling.state.anti_affinity import AntiAffinityIndex
from lamina.scheduling.state.columns import LARGEST, LINES, NUDGE, Floats, Ints, NodeColumns
from lamina.scheduling.state.node_facts import F, FactHandle, Placements
from lamina.scheduling.state.pod_counts import OwnerKey, owner_key
from lamina.scheduling.state.scalar_resources import LOWEST
from lamina.scheduling.state.view import RANKED, NodeRow, NodeView


class UsageDelta:
    """How much more (or less) would be in use on one row."""

    __slots__ = ("limited", "ranked", "scalars", "taken")

    def __init__(self) -> None:
        """Start with no pod."""
        self.taken = [0] * len(LINES)
        self.ranked = [0, 0]
        self.limited = [0, 0]
        self.scalars: dict[str, int] = {}

    def count(self, columns: NodeColumns, pod: Pod, times: int) -> None:
        """Count a pod as the columns do; *times* -1: it would be gone."""
        taken, others = columns.taken(pod.requests)
        ranked, _ = columns.taken(pod.scoring_requests)
        limited, _ = columns.taken(pod.limits or pod.requests)
        for line, amount in enumerate(taken.tolist()):
            self.taken[line] += times * amount
        for line in (0, 1):
            self.ranked[line] += times * ranked.item(line)
            self.limited[line] += times * limited.item(line)
        for name, amount in others:
            self.scalars[name] = self.scalars.get(name, 0) + times * min(amount, LARGEST)


class Hypothesis:
    """Pods that would be gone and pods that would be there."""

    def __init__(self, columns: NodeColumns, *, gone: Placements = (), there: Placements = ()) -> None:
        """Suppose that, of the pods these columns count, those *gone* were not counted, and those *there* were."""
        self.columns = columns
        self.gone = tuple(gone)
        self.there = tuple(there)
        self.differences: dict[int, UsageDelta] = {}
        """By row, those with no pod in question left out."""
        self._facts: dict[int, object] = {}
        self._repulsion: AntiAffinityIndex | None = None
        for placements, times in ((self.gone, -1), (self.there, 1)):
            for row, pod in placements:
                if row not in self.differences:
                    self.differences[row] = UsageDelta()
                self.differences[row].count(columns, pod, times)

    def view(self, rows: Sequence[int] | None = None) -> NodeView:
        """Look at some rows (in the order given, each once), or at all of them."""
        if rows is None:
            return HypotheticalView(self, slice(0, self.columns.size), self.columns.size)
        if len(rows) == 1:
            return HypotheticalView(self, slice(rows[0], rows[0] + 1), 1)
        return HypotheticalView(self, np.array(rows, dtype=np.intp), len(rows))

    def row(self, row: int) -> NodeRow:
        """Look at one row."""
        return HypotheticalRow(self, row)

    def fact(self, handle: FactHandle[F]) -> F:
        """Return a plugin's fact as it would be."""
        known = self._facts.get(handle.facet)
        if known is None:
            gone, there = ([one for one in some if handle.fact.counts(one[1])] for some in (self.gone, self.there))
            known = self._facts[handle.facet] = handle.fact.as_if(gone, there) if gone or there else handle.fact
        return known  # type: ignore[return-value]  # under a handle's facet there is its fact

    def repulsion(self) -> AntiAffinityIndex:
        """Return the rules of placed pods as they would be."""
        if self._repulsion is None:
            gone, there = ([one for one in some if one[1].repels] for some in (self.gone, self.there))
            real = self.columns.repulsion
            self._repulsion = real.as_if(gone, there) if gone or there else real
        return self._repulsion

    def headroom(self, row: int, line: int) -> float:
        """Return the percentage of cpu or memory that would not be in use on a row, as rankings count it."""
        capacity = self.columns.allocatable.item(line, row)
        in_use = self.columns.ranked.item(line, row) + self.differences[row].ranked[line]
        return (capacity - in_use) * 100 / capacity if capacity > 0 else 0.0


def as_if(columns: NodeColumns, *, gone: Placements = (), there: Placements = ()) -> Hypothesis:
    """Suppose that some pods were gone and others were there."""
    return Hypothesis(columns, gone=gone, there=there)


class HypotheticalView(NodeView):
    """Some rows as they would be."""

    __slots__ = ("_places", "_supposed")

    def __init__(self, supposed: Hypothesis, rows: slice | npt.NDArray[np.intp], size: int) -> None:
        """Look at *rows* (of which there are *size*)."""
        super().__init__(supposed.columns, rows, size)
        self._supposed = supposed
        if isinstance(rows, slice):
            first = int(rows.start or 0)
            places = [(row - first, row) for row in supposed.differences if first <= row < first + size]
        else:
            places = [(int(place), row) for row in supposed.differences for place in np.flatnonzero(rows == row)]
        self._places = places

    @property
    def gone(self) -> Placements:
        """The pods that would be gone."""
        return self._supposed.gone

    @property
    def there(self) -> Placements:
        """The pods that would be there."""
        return self._supposed.there

    @property
    def changed(self) -> Sequence[tuple[int, int]]:
        """The places in view, with their rows, on which such pods are."""
        return self._places

    @property
    def whole(self) -> bool:
        """Never: what is worked out from it must not be taken for how things are."""
        return False

    def noted(self, facet: int) -> int:
        """Say that nothing was noted."""
        return -1

    def changed_since(self, facet: int, noted: int) -> list[int] | None:
        """Say that it cannot be told."""
        return None

    def free(self, resource: str) -> Ints:
        """What would be left of a resource on each node."""
        line = LINES.get(resource)
        amounts = super().free(resource)
        return self._less(
            amounts,
            [one.scalars.get(resource, 0) if line is None else one.taken[line] for one in self._differences()],
        )

    def ranked(self, resource: str) -> Ints:
        """Cpu or memory that would be in use as rankings count it."""
        line = RANKED[resource]
        return self._less(super().ranked(resource), [-one.ranked[line] for one in self._differences()])

    def limited(self, resource: str) -> Ints:
        """What the pods on each node could use at most of cpu or memory."""
        line = RANKED[resource]
        return self._less(super().limited(resource), [-one.limited[line] for one in self._differences()])

    def headroom_with(self, resource: str, amount: int) -> Floats:
        """Return the percentage of cpu or memory that would be left with *amount* more in use."""
        line, left = RANKED[resource], super().headroom_with(resource, amount)
        for place, row in self.changed:
            more = self._columns.unit.item(line, row) * -float(amount) if amount else 0.0
            left[place] = (more + self._supposed.headroom(row, line)) + NUDGE
        return left

    def owned(self, key: OwnerKey) -> Ints:
        """How many pods of a controller each node would have."""
        return self._counted(super().owned(key), lambda pod: owner_key(pod) == key)

    def owned_in_all(self, key: OwnerKey) -> int:
        """How many pods of a controller there would be."""
        more = sum(owner_key(pod) == key and not pod.deleting for _, pod in self.there)
        less = sum(owner_key(pod) == key and not pod.deleting for _, pod in self.gone)
        return super().owned_in_all(key) + more - less

    def matching(self, namespace: str, selector: LabelSelector) -> Ints:
        """How many pods of a namespace a selector would match on each node."""
        return self._counted(
            super().matching(namespace, selector),
            lambda pod: pod.namespace == namespace and selector.matches(pod.labels),
        )

    def fact(self, handle: FactHandle[F]) -> F:
        """Return a fact that a plugin registered, as it would be."""
        return self._supposed.fact(handle)

    def rules(self) -> AntiAffinityIndex:
        """Return the rules of placed pods as they would be."""
        return self._supposed.repulsion()

    def _differences(self) -> list[UsageDelta]:
        return [self._supposed.differences[row] for _, row in self.changed]

    def _less(self, amounts: Ints, less: Sequence[int]) -> Ints:
        if not any(less):
            return amounts
        amounts = amounts.copy()
        for (place, _), one in zip(self.changed, less, strict=True):
            amounts[place] = max(amounts.item(place) - one, LOWEST)
        return amounts

    def _counted(self, counts: Ints, counts_for: Callable[[Pod], bool]) -> Ints:
        counts = counts.copy()
        places = {row: place for place, row in self.changed}
        for placements, times in ((self.gone, -1), (self.there, 1)):
            for row, pod in placements:
                if row in places and not pod.deleting and counts_for(pod):
                    counts[places[row]] += times
        return counts


class HypotheticalRow(NodeRow):
    """One node as it would be."""

    __slots__ = ("_difference", "_supposed")

    def __init__(self, supposed: Hypothesis, row: int) -> None:
        """Look at *row*."""
        super().__init__(supposed.columns, row)
        self._supposed = supposed
        self._difference = supposed.differences.get(row) or UNCHANGED

    def fact(self, handle: FactHandle[F]) -> F:
        """Return a fact that a plugin registered, as it would be."""
        return self._supposed.fact(handle)

    def free_all(self) -> list[int]:
        """What would be left of the well-known resources."""
        return [free - more for free, more in zip(super().free_all(), self._difference.taken, strict=True)]

    def ranked(self, resource: str) -> int:
        """Cpu or memory that would be in use as rankings count it."""
        return super().ranked(resource) + self._difference.ranked[RANKED[resource]]

    def capacity_and_ranked(self, resource: str) -> tuple[int, int]:
        """What the node can give of cpu or memory, and what would be in use of that as rankings count it."""
        capacity, ranked = super().capacity_and_ranked(resource)
        return capacity, ranked + self._difference.ranked[RANKED[resource]]

    def capacity_and_free(self, resource: str) -> tuple[int, int]:
        """What the node can give of a resource, and what would be left of that."""
        capacity, free = super().capacity_and_free(resource)
        line = LINES.get(resource)
        more = self._difference.scalars.get(resource, 0) if line is None else self._difference.taken[line]
        return capacity, max(free - more, LOWEST)

    def free(self, resource: str) -> int:
        """What would be left of a resource."""
        return self.capacity_and_free(resource)[1]


UNCHANGED: Final = UsageDelta()
