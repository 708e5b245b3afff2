"""
Candidates: nodes that would accept a pod if pods of lower priority were evicted there, and the cheapest of them.

    resolvable rows --amounts of all nodes at once--> rows that can fit, cheapest first
        --only amounts matter--> the first one, checked by the filters
        --other filters matter--> dry run of each in this order, until there are enough candidates

Upstream tries nodes in a random order and stops at enough candidates. Here the order is the expected cost, and equal
nodes keep the order of their rows, so that a decision depends on nothing but the cluster.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np

from lamina.model.decision import Refusal
from lamina.model.resources import PODS
from lamina.scheduling.contract.points import AmountFilterPlugin
from lamina.scheduling.plugins.upstream.default_preemption.pick_node import cheapest
from lamina.scheduling.runtime.disruption_budgets import DisruptionBudgets
from lamina.scheduling.runtime.dry_run import NO_VICTIMS, Candidate, DryRun, VictimRules
from lamina.scheduling.runtime.freed_amounts import FreedAmounts
from lamina.scheduling.runtime.placed_pods import PlacedPods, importance
from lamina.scheduling.runtime.profile import FilterPart
from lamina.scheduling.state.columns import Bools, Ints
from lamina.scheduling.state.facets import Facet

FIXED: Final = frozenset({Facet.TAINTS, Facet.LABELS, Facet.IMAGES, Facet.CATALOG, Facet.ANNOTATIONS})
"""Facets that evictions do not change."""
NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"
NO_VICTIM: Final = "expected at least one victim pod on node {!r}"
MOST_EXPLAINED: Final = 200
"""Nodes whose refusal is evaluated one by one for the message; others count like a node with the same shortages."""


class Search(msgspec.Struct, frozen=True):
    """Result of a search."""

    best: Candidate | None
    refusals: dict[str, int] = {}
    """Reason → number of nodes, if there is no candidate."""
    found: tuple[Candidate, ...] = ()
    """All candidates, if several were searched for."""


class CandidateSearch:
    """One search for one pod."""

    def __init__(self, dry_run: DryRun, resolvable: Bools, placed: PlacedPods, budgets: DisruptionBudgets) -> None:
        """Search among the *resolvable* rows."""
        self._dry_run = dry_run
        self._budgets = budgets
        self._placed = placed
        self._rows: list[int] = np.flatnonzero(resolvable).tolist()
        priority = dry_run.pod.priority
        self._rules = VictimRules(lambda victim: victim.priority < priority, importance, budgets.violating)
        entries = placed.arrays(self._rows, dry_run.pods_on)
        self._entries = entries = entries.only(entries.priority < priority)
        self._amount_filter = next(
            (part.plugin for part in dry_run.profile.filters if isinstance(part.plugin, AmountFilterPlugin)), None
        )
        needs = [] if self._amount_filter is None else list(self._amount_filter.needs(dry_run.pod).items())
        self._freed = FreedAmounts(placed, entries, len(self._rows), needs, self._offers([name for name, _ in needs]))
        self._fixed = self._fixed_codes()
        self._possible = self._freed.fits & (self._freed.counts > 0)
        for codes in self._fixed:
            self._possible &= codes == 0

    def run(self, enough: int, *, several: bool = False) -> Search:
        """
        Return the best candidate, or why there is none; *enough* candidates suffice where each must be tried.

        With *several*, also return the other candidates; each is tried then.
        """
        violating = self._freed.violating(self._budgets, self._rows)
        victims = self._freed.victims(violating)
        order: list[int] = self._freed.costs(victims, violating).order(self._possible).tolist()
        alone = self._amounts_decide()
        if alone and order and not several:
            best = self._proposed(order[0], victims, violating)
            if best.victims and self._dry_run.refusal(best.row, best.victims) is None:
                return Search(best)
        tried: dict[int, Refusal] = {}
        found = self._try_each(order, enough, tried)
        return (
            Search(cheapest(found), found=tuple(found)) if found else Search(None, self._refusals(tried, alone=alone))
        )

    # -- amounts -----------------------------------------------------------------------------------------------------

    def _offers(self, names: Sequence[str]) -> list[Ints]:
        """Return the free amounts on each row beside the nominated pods that the pod must fit beside."""
        nodes, places = self._dry_run.nodes, {row: place for place, row in enumerate(self._rows)}
        offers = [nodes.free(name)[self._rows] for name in names]
        for row, ahead in self._dry_run.ahead.items():
            for one in ahead if row in places else ():
                asked = {**dict(one.requests), PODS: 1}
                for free, name in zip(offers, names, strict=True):
                    free[places[row]] -= asked.get(name, 0)
        return offers

    def _amounts_decide(self) -> bool:
        """Return whether evictions can change the result of the amount filter only."""
        dry_run = self._dry_run
        if self._amount_filter is None or dry_run.silent is None:
            return False
        if any(one.has_pod_terms or one.host_ports for ahead in dry_run.ahead.values() for one in ahead):
            return False
        return all(
            silent or part.plugin is self._amount_filter or _fixed(part)
            for part, silent in zip(dry_run.profile.filters, dry_run.silent, strict=True)
        )

    def _fixed_codes(self) -> list[Ints | Bools]:
        """Return the codes of refusals that evictions do not change, by place."""
        dry_run = self._dry_run
        if dry_run.silent is None:
            return []
        parts = zip(dry_run.profile.filters, dry_run.codes, strict=True)
        return [codes[self._rows] for part, codes in parts if codes is not None and _fixed(part)]

    def _proposed(self, place: int, victims: Bools, violating: Bools) -> Candidate:
        row = self._rows[place]
        chosen = np.flatnonzero(victims & (self._entries.owner == place))
        pods = tuple(self._placed.pod(row, at) for at in self._entries.place[chosen].tolist())
        return Candidate(row, pods, int(np.count_nonzero(violating[chosen])))

    # -- each node by itself -----------------------------------------------------------------------------------------

    def _try_each(self, order: Sequence[int], enough: int, tried: dict[int, Refusal]) -> list[Candidate]:
        """Run a dry run of each place until there are enough candidates, one of them without a violated budget."""
        found: list[Candidate] = []
        for place in order:
            result = self._dry_run.victims_on(self._rows[place], self._rules)
            if isinstance(result, Refusal):
                tried[place] = result
            elif not result.victims:
                tried[place] = Refusal("", (NO_VICTIM.format(self._name(place)),))
            else:
                found.append(result)
                if len(found) >= enough and any(not one.violations for one in found):
                    break
        return found

    # -- reasons -----------------------------------------------------------------------------------------------------

    def _refusals(self, tried: dict[int, Refusal], *, alone: bool) -> dict[str, int]:
        """Count the reasons of all nodes; if amounts decide *alone*, one dry run explains equal shortages."""
        counts: dict[str, int] = {}
        known: dict[bytes, Refusal] = {}
        outside = self._dry_run.nodes.total - len(self._rows)
        if outside:
            counts[NOT_HELPFUL] = outside
        shortages = np.array([one < 0 for one in self._freed.slack] + [one != 0 for one in self._fixed], dtype=np.bool_)
        explained = 0
        for place in range(len(self._rows)):
            refusal = tried.get(place)
            if refusal is None and not self._freed.counts[place]:
                refusal = NO_VICTIMS
            elif refusal is None:
                same = shortages[:, place].tobytes()
                refusal = known.get(same)
                if refusal is None or (not alone and explained < MOST_EXPLAINED):
                    explained += 1
                    refusal = known[same] = self._explain(place)
            for reason in refusal.reasons:
                counts[reason] = counts.get(reason, 0) + 1
        return counts

    def _explain(self, place: int) -> Refusal:
        row = self._rows[place]
        gone = [one for one in self._dry_run.pods_on(row) if self._rules.may_evict(one)]
        return self._dry_run.refusal(row, gone) or Refusal("", (NO_VICTIM.format(self._name(place)),))

    def _name(self, place: int) -> str:
        node = self._dry_run.nodes.node(self._rows[place])
        return "" if node is None else node.name


def _fixed(part: FilterPart) -> bool:
    reads = part.reads
    return (reads.rows | reads.whole | reads.others) <= FIXED
