"""
Evictions on all nodes at once, as far as amounts of resources and numbers of pods decide.

For a pod that only amounts and counting filters keep out, this finds the victims on every node with arrays: the same
ones that the dry run of each node finds (`dry_run`), and in the same order. For other pods it is a necessary condition,
and the result tells which nodes to try first.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np

from lamina.scheduling.runtime.counted_room import CountedRoom
from lamina.scheduling.runtime.disruption_budgets import DisruptionBudgets
from lamina.scheduling.state.columns import Bools, Ints
from lamina.scheduling.state.placed_pods import UNKNOWN_START, PlacedArrays, PlacedPods

BASE: Final = 2**31
"""Added to each priority in sums, so that a victim of negative priority costs something."""


class NodeCosts(msgspec.Struct, frozen=True):
    """What upstream compares to choose a node, by row."""

    violations: Ints
    highest: Ints
    """Highest priority of a victim."""
    total: Ints
    """Sum of all priorities, each increased by 2^31."""
    victims: Ints
    """Number of victims."""
    start: Ints
    """Earliest start among the victims of the highest priority."""

    def order(self, rows: Ints) -> Ints:
        """Return *rows* with the cheapest first; equal ones stay in order."""
        keys = (-self.start, self.victims, self.total, self.highest, self.violations)
        ordered: Ints = rows[np.lexsort([key[rows] for key in keys])]
        return ordered

    def of(self, row: int) -> tuple[int, ...]:
        """Return what is compared for a row."""
        start = self.start.item(row)
        return self.violations.item(row), self.highest.item(row), self.total.item(row), self.victims.item(row), -start


class FreedRoom:
    """Victims on all rows for one pod."""

    def __init__(
        self,
        placed: PlacedPods,
        entries: PlacedArrays,
        height: int,
        needs: Sequence[tuple[str, int]],
        offers: Sequence[Ints],
    ) -> None:
        """
        Evict among *entries*, the pods that may go.

        *needs* are the amounts that the pod needs; *offers* are the free amounts of the same resources on each row.
        """
        self.entries = entries
        self._placed = placed
        self._amounts = [placed.kinds.amounts(name)[entries.kind] for name, _ in needs]
        self.counts: Ints = np.bincount(entries.row, minlength=height).astype(np.int64)
        """Number of pods that may go, by row."""
        self._firsts = np.cumsum(self.counts) - self.counts
        self.slack = [
            free + self._summed(amounts) - need
            for free, amounts, (_, need) in zip(offers, self._amounts, needs, strict=True)
        ]
        """What would be left of each resource with all of them gone and the pod there."""
        self.fits: Bools = np.ones(height, dtype=np.bool_)
        """Where the amounts suffice with all of them gone."""
        for slack in self.slack:
            self.fits &= slack >= 0

    def _summed(self, values: Ints) -> Ints:
        """Return sums by row; entries of a row are adjacent."""
        ends = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(values)])
        sums: Ints = ends[self._firsts + self.counts] - ends[self._firsts]
        return sums

    def victims(self, rows: Ints, violating: Bools, counted: Sequence[CountedRoom] = ()) -> Bools:
        """
        Return which entries are victims on *rows*, where the pod fits with all of them gone.

        *violating* entries are put back first.
        """
        entries, victims = self.entries, np.zeros(len(self.entries.row), dtype=np.bool_)
        # Entries of a row are adjacent and the most important comes first; sorting keeps that order.
        turn = np.lexsort((~violating, entries.row)) if violating.any() else np.arange(len(victims))
        slack = [one.copy() for one in self.slack]
        gone = [one.gone.copy() for one in counted]
        for step in range(int(self.counts[rows].max(initial=0))):
            rows = rows[self.counts[rows] > step]
            at = turn[self._firsts[rows] + step]
            stays = np.ones(len(rows), dtype=np.bool_)
            for left, amounts in zip(slack, self._amounts, strict=True):
                stays &= amounts[at] <= left[rows]
            for filter_, left in zip(counted, gone, strict=True):
                # A pod that does not count changes nothing, and the filter passes so far.
                places = np.flatnonzero(stays & filter_.matters[at])
                if len(places):
                    back = filter_.back(left[:, rows[places]], at[places])
                    stays[places] = ~filter_.refuses(rows[places], back)
            for left, amounts in zip(slack, self._amounts, strict=True):
                left[rows] -= np.where(stays, amounts[at], 0)
            for filter_, left in zip(counted, gone, strict=True):
                left[:, rows[stays]] = filter_.back(left[:, rows[stays]], at[stays])
            victims[at] = ~stays
        return victims

    def costs(self, victims: Bools, violating: Bools) -> NodeCosts:
        """Return what evicting the victims costs on each row."""
        entries, height = self.entries, len(self.counts)
        chosen = entries.only(victims)
        highest = np.full(height, np.iinfo(np.int64).min)
        np.maximum.at(highest, chosen.row, chosen.priority)
        start = np.full(height, UNKNOWN_START)
        top = chosen.priority == highest[chosen.row]
        np.minimum.at(start, chosen.row[top], chosen.start[top])
        return NodeCosts(
            violations=self._summed((victims & violating).astype(np.int64)),
            highest=highest,
            total=self._summed(np.where(victims, entries.priority + BASE, 0)),
            victims=self._summed(victims.astype(np.int64)),
            start=start,
        )

    def violating(self, budgets: DisruptionBudgets) -> Bools:
        """Return which entries violate a budget when all entries of a row go."""
        budgets.refresh()
        entries = self.entries
        flags = np.zeros(len(entries.row), dtype=np.bool_)
        if not budgets.budgets or not len(flags):
            return flags
        at, budget = self._protected(budgets)
        allowed = np.array([one.disruptions_allowed for one in budgets.budgets], dtype=np.int64)
        key = entries.row[at] * len(allowed) + budget
        order = np.lexsort((at, key))
        first = np.flatnonzero(np.diff(key[order], prepend=-1))
        rank = np.arange(len(order)) - np.repeat(first, np.diff(first, append=len(order)))
        flags[at[order[rank >= allowed[budget[order]]]]] = True
        return flags

    def _protected(self, budgets: DisruptionBudgets) -> tuple[Ints, Ints]:
        """Return entries and the numbers of the budgets that protect them; an entry appears once for each budget."""
        entries, kinds = self.entries, self._placed.kinds
        numbers = np.flatnonzero(np.bincount(entries.kind)).tolist()
        matching = [budgets.matching(kinds.labels[number]) for number in numbers]
        at: list[Ints] = []
        found: list[Ints] = []
        for turn in range(max(map(len, matching))):
            of_kind = np.full(numbers[-1] + 1, -1, dtype=np.int64)
            of_kind[numbers] = [one[turn] if turn < len(one) else -1 for one in matching]
            budget = of_kind[entries.kind]
            at.append(np.flatnonzero(budget >= 0))
            found.append(budget[at[-1]])
        if not at:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        every, budget = np.concatenate(at), np.concatenate(found)
        counted = [number for number, one in enumerate(budgets.budgets) if one.disrupted_pods]
        if counted:
            kept = np.ones(len(every), dtype=np.bool_)
            for place in np.flatnonzero(np.isin(budget, counted)).tolist():
                pod = self._placed.pod(entries.slot.item(every.item(place)))
                kept[place] = pod.name not in budgets.budgets[budget.item(place)].disrupted_pods
            every, budget = every[kept], budget[kept]
        return every, budget
