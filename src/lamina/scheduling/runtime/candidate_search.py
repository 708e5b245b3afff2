"""
Candidates: nodes that would accept a pod if other pods were evicted there, and the cheapest of them.

    resolvable rows --amounts of all nodes at once--> rows that can fit, cheapest first
        --amounts, counts and fixed verdicts decide--> victims of all nodes at once; the choice is checked by the filters
        --other filters matter on the node--> dry run of the node by itself

Which pods may be evicted, in which order they are spared, and what evictions cost are rules of the plugin that searches.
Upstream tries nodes in a random order and stops at enough candidates. Here the order is the expected cost, and equal
nodes keep the order of their rows, so that a decision depends on nothing but the cluster.
"""

from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec
import numpy as np

from lamina.model.decision import Refusal
from lamina.model.pod import Pod
from lamina.scheduling.contract.points import AmountFilterPlugin
from lamina.scheduling.runtime.disruption_budgets import DisruptionBudgets
from lamina.scheduling.runtime.dry_run import NO_VICTIMS, Candidate, DryRun, VictimRules
from lamina.scheduling.runtime.eviction_effects import EvictionEffects
from lamina.scheduling.runtime.freed_room import FreedRoom
from lamina.scheduling.runtime.profile import FilterPart
from lamina.scheduling.state.columns import Bools, Ints
from lamina.scheduling.state.placed_pods import PlacedArrays, PlacedPods

NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"
NO_VICTIM: Final = "expected at least one victim pod on node {!r}"
MOST_EXPLAINED: Final = 200
"""
Nodes with a dry run of their own whose refusal is evaluated one by one for the message.

Others count like a node that all other filters treat alike.
"""


class Search(msgspec.Struct, frozen=True):
    """Result of a search."""

    best: Candidate | None
    refusals: dict[str, int] = {}
    """Reason → number of nodes, if there is no candidate."""
    found: tuple[Candidate, ...] = ()
    """The candidates among which the best is, if several were searched for."""


class RowCosts(Protocol):
    """What evictions cost on each row."""

    def order(self, rows: Ints) -> Ints:
        """Return *rows* with the cheapest first; equal ones stay in order."""
        ...

    def of(self, row: int) -> tuple[float, ...]:
        """Return what is compared for a row, the same as `SearchRules.price` returns for its candidate."""
        ...


class SearchRules(msgspec.Struct, frozen=True):
    """Rules of a plugin about victims and nodes."""

    entries: PlacedArrays
    """Pods that may be evicted, on any row: row after row, and within a row those that are spared first come first."""
    may_evict: Callable[[Pod], bool]
    """Whether a pod is one of them."""
    order: Callable[[Pod], Any]  # Any: whatever sorts
    """Sort key of these pods; those that are spared first have smaller keys."""
    costs: Callable[[FreedRoom, Bools, Bools], RowCosts]
    """Return the costs of victims; flags of entries that are victims, and of those that violate a budget."""
    price: Callable[[Candidate], tuple[float, ...]]
    """What is compared of candidates: the smallest wins. It begins with the number of violated budgets, or with 0."""


class CandidateSearch:
    """One search for one pod."""

    def __init__(
        self,
        dry_run: DryRun,
        resolvable: Bools,
        placed: PlacedPods,
        budgets: DisruptionBudgets,
        rules: SearchRules,
    ) -> None:
        """Search among the *resolvable* rows."""
        self._dry_run = dry_run
        self._placed = placed
        self._resolvable = resolvable
        height = len(resolvable)
        self._search = rules
        self._entries = entries = rules.entries.only(resolvable[rules.entries.row])
        self._rules = VictimRules(rules.may_evict, rules.order, budgets.violating)
        needs: list[tuple[str, int]] = []
        amounts: FilterPart | None = None
        for part in dry_run.profile.filters:
            if isinstance(part.plugin, AmountFilterPlugin):
                amounts, needs = part, list(part.plugin.needs(dry_run.pod).items())
                break
        offers = dry_run.offers([name for name, _ in needs])
        self._freed = FreedRoom(placed, entries, height, needs, offers)
        self._effects = EvictionEffects(dry_run, amounts, placed.kinds, entries)
        self._possible = self._freed.fits & (self._freed.counts > 0)
        for refused in self._effects.refused:
            self._possible &= ~refused
        self._violating = self._freed.violating(budgets)

    def run(self, enough: int, *, several: bool = False) -> Search:
        """
        Return the best candidate, or why there is none; the search ends after *enough* candidates.

        With *several*, also return the other candidates.
        """
        freed, effects = self._freed, self._effects
        rows = np.flatnonzero(self._possible)
        victims = freed.victims(rows, self._violating)
        costs = self._search.costs(freed, victims, self._violating)
        order: list[int] = costs.order(rows).tolist()
        fits = self._possible & ~effects.single
        if effects.counted:
            # The order is the same as above, so that it does not depend on which filters count.
            rows = np.flatnonzero(fits)
            for filter_ in effects.counted:
                rows = rows[~filter_.refuses(rows, filter_.gone[:, rows])]
            fits = np.zeros(len(fits), dtype=np.bool_)
            fits[rows] = True
            victims = freed.victims(rows, self._violating, effects.counted)
            costs = self._search.costs(freed, victims, self._violating)
        tried: dict[int, Refusal] = {}
        best = self._among(order, enough, fits, victims, costs, tried)
        if best is not None and fits[best.row] and self._dry_run.refusal(best.row, best.victims) is not None:
            # Some filter does not keep its promise: ask all of them.
            tried.clear()
            effects.single[:] = True
            fits = np.zeros(len(fits), dtype=np.bool_)
            best = self._among(order, enough, fits, victims, costs, tried)
        if best is None:
            return Search(None, self._refusals(tried))
        return Search(best, found=self._each(order, enough, fits, victims) if several else ())

    def _among(
        self, order: list[int], enough: int, fits: Bools, victims: Bools, costs: RowCosts, tried: dict[int, Refusal]
    ) -> Candidate | None:
        """
        Return the cheapest of the first *enough* candidates in *order*, one of them without a violated budget.

        Where a row *fits*, its *victims* and *costs* are known, and other rows need a dry run of their own.
        """
        single: list[bool] = self._effects.single.tolist()
        known: list[bool] = fits.tolist()
        counts = np.bincount(self._entries.row[victims], minlength=len(known))
        # Without other filters, the first candidate is the cheapest.
        decided = not self._effects.counted and not self._effects.single.any()
        found, harmless = 0, False
        best: Candidate | int | None = None
        least: tuple[float, ...] = ()
        for row in order:
            one: Candidate | int
            if single[row]:
                result = self._dry_run.victims_on(row, self._rules)
                if isinstance(result, Refusal):
                    tried[row] = result
                    continue
                one, number, price = result, len(result.victims), self._search.price(result)
            elif known[row]:
                one, number, price = row, int(counts[row]), costs.of(row)
            else:
                continue
            if not number:
                tried[row] = Refusal("", (NO_VICTIM.format(self._name(row)),))
                continue
            found += 1
            harmless |= not price[0]
            if best is None or price < least:
                best, least = one, price
            if decided or (found >= enough and harmless):
                break
        return self._candidate(best, victims) if isinstance(best, int) else best

    def _each(self, order: list[int], enough: int, fits: Bools, victims: Bools) -> tuple[Candidate, ...]:
        """Return the candidates among which `_among` chooses, each with its victims."""
        found: list[Candidate] = []
        for row in order:
            if self._effects.single[row]:
                one = self._dry_run.victims_on(row, self._rules)
            elif fits[row]:
                one = self._candidate(row, victims)
            else:
                continue
            if isinstance(one, Candidate) and one.victims:
                found.append(one)
                if len(found) >= enough and not all(candidate.violations for candidate in found):
                    break
        return tuple(found)

    def _candidate(self, row: int, victims: Bools) -> Candidate:
        chosen = np.flatnonzero(victims & (self._entries.row == row))
        pods = tuple(map(self._placed.pod, self._entries.slot[chosen].tolist()))
        return Candidate(row, pods, int(np.count_nonzero(self._violating[chosen])))

    # -- reasons -----------------------------------------------------------------------------------------------------

    def _refusals(self, tried: dict[int, Refusal]) -> dict[str, int]:
        """Count the reasons of all nodes; nodes that all filters treat alike are explained by one dry run."""
        counts: dict[str, int] = {}
        known: dict[bytes, Refusal] = {}
        rows = np.flatnonzero(self._resolvable)
        outside = self._dry_run.nodes.total - len(rows)
        if outside:
            counts[NOT_HELPFUL] = outside
        alike = self._alike(rows)
        single: list[bool] = self._effects.single.tolist()
        explained = 0
        for place, row in enumerate(rows.tolist()):
            refusal = tried.get(row)
            if refusal is None and not self._freed.counts[row]:
                refusal = NO_VICTIMS
            elif refusal is None:
                same = alike[place].tobytes()
                refusal = known.get(same)
                if refusal is None or (single[row] and explained < MOST_EXPLAINED):
                    explained += 1
                    refusal = known[same] = self._explain(row)
            for reason in refusal.reasons:
                counts[reason] = counts.get(reason, 0) + 1
        return counts

    def _alike(self, rows: Ints) -> Ints:
        """Return a line for each of *rows*; lines are equal where all filters would treat the nodes alike."""
        lines: list[Ints] = [(one[rows] < 0).astype(np.int64) for one in self._freed.slack]
        lines += [one[rows].astype(np.int64) for one in self._effects.refused]
        for filter_ in self._effects.counted:
            lines += filter_.codes(rows)
        return np.array(lines, dtype=np.int64).reshape(len(lines), len(rows)).T.copy()

    def _explain(self, row: int) -> Refusal:
        gone = [one for one in self._dry_run.pods_on(row) if self._rules.may_evict(one)]
        return self._dry_run.refusal(row, gone) or Refusal("", (NO_VICTIM.format(self._name(row)),))

    def _name(self, row: int) -> str:
        node = self._dry_run.nodes.node(row)
        return "" if node is None else node.name
