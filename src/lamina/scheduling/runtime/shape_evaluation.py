"""
Evaluation of one pod shape against all nodes: which plugin refuses which node, and all scores.

Built once per shape, with all plugins and nodes as arrays. Afterwards `refresh` evaluates only the rows that changed,
and only with the plugins that read the changed facets. After a placement this is one row and usually one plugin. A pod
of a known shape thus costs less than a tenth of a new one.

    totals[row] = Σ weight · score   where every filter passed, else -∞
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from lamina.model.decision import Refusal
from lamina.model.extender_answer import ExtenderScores
from lamina.model.pod import Pod
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.points import MAX_SCORE, PreFilterResult, Verdicts
from lamina.scheduling.contract.status import Code, Status, failed, unresolvable
from lamina.scheduling.runtime.plugin_results import FEW, PluginResultCache
from lamina.scheduling.runtime.profile import AffectedPlugins, Profile, Scores
from lamina.scheduling.state.columns import Bools, Ints, NodeColumns
from lamina.scheduling.state.view import NodeRow, NodeView, everything, only

# Maximum number of journal entries that are scanned for changed rows; a placement adds an entry to two facets.
MISSED: Final = 4 * FEW

OUT: Final = -np.inf
"""The total of refused nodes. Extenders may give negative scores, so no number is below all totals."""
LARGEST_POINTS: Final = 2**48
"""Limit of the points of one extender, so that totals are exact."""
ONE: Final = np.ones(1, dtype=np.bool_)


class ShapeEvaluation:
    """All plugin results for one pod shape; valid until the columns change."""

    __slots__ = (
        "_changed",
        "_other_logs",
        "_results",
        "_row_logs",
        "_rows",
        "_whole_logs",
        "codes",
        "columns",
        "constant",
        "extended",
        "feasible",
        "grouped",
        "memory",
        "narrowed_by",
        "narrowed_out",
        "owned",
        "positions",
        "profile",
        "scores",
        "silent",
        "skips",
        "state",
        "stop",
        "structure",
        "tells",
        "totals",
        "withheld",
    )

    def __init__(  # noqa: PLR0915 - an attribute each
        self,
        profile: Profile,
        columns: NodeColumns,
        pod: Pod,
        results: PluginResultCache | None = None,
        memory: Scores | None = None,
        withheld: Mapping[int, Refusal] | None = None,
    ) -> None:
        """
        Evaluate every plugin for every node.

        *results* caches results of other shapes; *memory* is the array of a discarded evaluation, for reuse. *withheld*
        rows are refused although every filter passes: they are reserved for nominated pods.
        """
        self.withheld = withheld or {}
        self._results = results or PluginResultCache(columns)
        self.profile = profile
        self.columns = columns
        self.structure = columns.structure
        self.positions = [log.position for log in columns.logs]
        whole = range(len(columns.logs)) if profile.reads_everything else profile.reads_whole
        self._whole_logs = [(facet, columns.logs[facet]) for facet in whole]
        self._row_logs = [(facet, columns.logs[facet]) for facet in profile.reads_rows]
        self._other_logs = [(facet, columns.logs[facet]) for facet in profile.reads_others]
        self._changed = 0
        self._rows: list[int] | None = None
        self.state = CycleState()
        self.stop: Status | None = None
        """Set if the pod was refused before any node was evaluated, or if a plugin failed."""
        self.codes: list[Ints | Bools | None] = []
        """For each filter: a code per row, or None if all pass. Write only through `_codes`."""
        self.owned: list[bool] = []
        """For each filter: whether the codes belong to this evaluation. Otherwise other shapes share them."""
        self.tells: list[Callable[[int], Refusal] | None] = []
        self.silent: list[bool] = []
        """For each filter: whether its pre_filter returned SKIP."""
        self.skips: list[bool] = []
        """For each scorer: whether its pre_score returned SKIP."""
        lines = len(profile.scorers)
        if memory is None or memory.shape != (lines + 1, columns.size):
            memory = np.empty((lines + 1, columns.size), dtype=profile.weights.dtype)
        self.memory = memory
        # Integers are exact as floats, and the weighted sum over all scorers is one BLAS call.
        self.scores: Scores = memory[:lines]
        """For each scorer: 0..100 per row, without the weight."""
        self.constant: list[bool] = []
        """For each scorer that normalises: whether all raw scores are equal, so that feasibility does not matter."""
        self.grouped: list[tuple[Bools, Refusal]] | None = None
        """Refused nodes by reason, once computed (see `explanation.groups`)."""
        self.narrowed_by: tuple[str, ...] = ()
        self.narrowed_out: Bools | None = None
        self.totals: Scores = memory[lines]
        self.totals[:] = OUT
        self.feasible: Bools = columns.alive[: columns.size].copy()
        self.extended: list[tuple[ExtenderScores, dict[int, int]]] = []
        """Scores of extenders for this one pod, and the same by row."""
        self._build(pod, everything(columns))

    def _halted(self) -> bool:
        # A method, because the type checker would assume that the attribute is still None.
        return self.stop is not None

    # -- building ----------------------------------------------------------------------------------------------------

    def _build(self, pod: Pod, nodes: NodeView) -> None:
        skipped = self._pre_filter(pod, nodes)
        if self._halted():
            return
        for part in self.profile.filters:
            self.silent.append(part.name in skipped)
            verdicts = None if part.name in skipped else self._results.filter(part, self.state, pod, nodes)
            self.codes.append(None if verdicts is None else verdicts.codes)
            self.owned.append(False)
            self.tells.append(None if verdicts is None else verdicts.tell)
            if verdicts is not None:
                self.feasible &= verdicts.codes == 0
        if self.withheld:
            self.feasible[list(self.withheld)] = False
        skipped = self._pre_score(pod, nodes)
        if self._halted():
            return
        for index, score_part in enumerate(self.profile.scorers):
            self.constant.append(False)
            self.skips.append(score_part.name in skipped)
            if self.skips[index]:
                self.scores[index] = 0
            else:
                self._score(index, pod, nodes)
        if not self._halted() and self._in_range():
            self._sum()

    def _pre_filter(self, pod: Pod, nodes: NodeView) -> set[str]:
        skipped: set[str] = set()
        left: frozenset[str] | None = None
        for plugin in self.profile.pre_filter:
            answer = plugin.pre_filter(self.state, pod, nodes)
            if answer is None:
                continue
            if isinstance(answer, PreFilterResult):
                left = answer.nodes if left is None else left & answer.nodes
                self._narrow(plugin.name, left)
                if self.stop is not None:
                    break
            elif answer.code is Code.SKIP:
                skipped.add(plugin.name)
            elif not answer.ok:
                self._halt(answer.of(plugin.name))
                # Preemption can lift a plain refusal, and then needs the data that the other plugins prepare. One of
                # them may also return that preemption would not help.
                if answer.code is not Code.UNSCHEDULABLE:
                    break
        return skipped

    def _narrow(self, plugin: str, left: frozenset[str]) -> None:
        self.narrowed_by += (plugin,)
        if not left:
            names = sorted(self.narrowed_by)
            words = f"plugin {names[0]}" if len(names) == 1 else f"plugin(s) [{' '.join(names)}] simultaneously"
            self._halt(unresolvable(f"node(s) didn't satisfy {words}").of(plugin))
            return
        outside = np.ones(self.columns.size, dtype=np.bool_)
        outside[[self.columns.rows[name] for name in left if name in self.columns.rows]] = False
        self.feasible &= ~outside
        self.narrowed_out = outside

    def _pre_score(self, pod: Pod, nodes: NodeView) -> set[str]:
        skipped: set[str] = set()
        for plugin in self.profile.pre_score:
            answer = plugin.pre_score(self.state, pod, nodes)
            if answer is not None and answer.code is Code.SKIP:
                skipped.add(plugin.name)
            elif answer is not None and not answer.ok:
                self._halt(failed(*answer.reasons).of(plugin.name))
                break
        return skipped

    def _score(self, index: int, pod: Pod, nodes: NodeView) -> None:
        """Score every node with one scorer. Raw scores are not kept, to save memory."""
        part = self.profile.scorers[index]
        raw = self._results.score(part, self.state, pod, nodes)
        if raw.shape != (len(nodes),) or raw.dtype.kind not in "iu":
            words = f"plugin {part.name!r} returned {raw.dtype} of shape {raw.shape}, not one integer for each node"
            self._halt(failed(words).of(part.name))
            return
        if part.normalizer is None or not len(raw):
            self.scores[index] = raw
            return
        # A negative raw score means that `normalize` needs all nodes.
        first = raw.item(0)
        self.constant[index] = bool(first >= 0 and raw.min() == first == raw.max())
        if self.constant[index]:
            self.scores[index] = part.normalizer.normalize(self.state, pod, raw[:1], ONE)[0]
        else:
            self.scores[index] = part.normalizer.normalize(self.state, pod, raw, self.feasible)

    def _in_range(self) -> bool:
        # One pass instead of two: viewed as unsigned integers, floats sort like numbers and negative ones come last.
        if not self.scores.size or self.scores.view(self.profile.bits).max() <= self.profile.full_score:
            return True
        # Scores of rows without a node are meaningless, and so are normalised scores of refused nodes.
        self.scores[:, ~self.columns.alive[: self.columns.size]] = 0
        for index, part in enumerate(self.profile.scorers):
            if part.normalizer is not None:
                self.scores[index, ~self.feasible] = 0
        if self.scores.min() >= 0 and self.scores.max() <= MAX_SCORE:
            return True
        for part, scores in zip(self.profile.scorers, self.scores, strict=True):
            if scores.min() < 0 or scores.max() > MAX_SCORE:
                self._halt(failed(f"plugin {part.name!r} returned a score outside 0..{MAX_SCORE}").of(part.name))
        return False

    def _halt(self, status: Status) -> None:
        """Stop the evaluation without a node: the pod was refused as a whole or a plugin failed."""
        self.stop = status
        self.feasible[:] = False
        self.totals[:] = OUT

    def _sum(self) -> None:
        np.dot(self.profile.weights, self.scores, out=self.totals)
        # putmask is faster than assignment by boolean index, which counts the flags first.
        np.putmask(self.totals, ~self.feasible, OUT)

    # -- keeping up to date ------------------------------------------------------------------------------------------

    def refresh(self, pod: Pod) -> bool:
        """Evaluate what changed since; return False if a new evaluation is needed or cheaper."""
        if not self._find_changes():
            return False
        if not self._changed:
            return True
        self.grouped = None
        again: set[int] = set()
        affected = self.profile.affected(self._changed)
        rows = self._rows
        if rows is None:
            self._update_rows(affected, pod, again)
            if self._halted():
                return True
        else:
            for row in rows:
                if not self._update_row(row, affected, pod, again):
                    return False
        if not self._run_whole(affected, pod, again):
            return False
        return (rows is not None and not again) or self._rescore(pod, again)

    def _rescore(self, pod: Pod, again: set[int]) -> bool:
        """Score every node with some scorers and sum up; return False if a score is out of range."""
        for index in sorted(again):
            self._score(index, pod, everything(self.columns))
        if self._halted():
            return True
        if not self._in_range():
            return False
        self._sum()
        return True

    def _run_whole(self, affected: AffectedPlugins, pod: Pod, again: set[int]) -> bool:
        """Run plugins that read all rows for all rows again; return False if one now applies differently."""
        nodes = everything(self.columns)
        filtered = False
        for index, part in affected.filters_whole:
            if self.silent[index]:
                continue
            if part.prepares is not None and part.prepares.pre_filter(self.state, pod, nodes) is not None:
                return False
            verdicts = part.plugin.filter(self.state, pod, nodes)
            filtered = filtered or verdicts is not None or self.codes[index] is not None
            self._take_codes(index, verdicts)
        if filtered and self._filter_all(again):
            self._sum()
        for index, score_part in affected.scorers_whole:
            if self.skips[index]:
                continue
            prepares = score_part.prepares
            if prepares is not None and prepares.pre_score(self.state, pod, nodes) is not None:
                return False
            again.add(index)
        return True

    def _filter_all(self, again: set[int]) -> bool:
        """Combine the filters' codes for all rows; return whether feasibility changed."""
        feasible = self.columns.alive[: self.columns.size].copy()
        for codes in self.codes:
            if codes is not None:
                feasible &= codes == 0
        if np.array_equal(feasible, self.feasible):
            return False
        self.feasible = feasible
        self._flip(again)
        return True

    def _find_changes(self) -> bool:
        """
        Find which facets (`_changed`) and which rows (`_rows`, None for many) changed since the last refresh.

        Return False if a new evaluation is needed.
        """
        columns, positions = self.columns, self.positions
        if columns.structure != self.structure:
            return False
        for facet, log in self._whole_logs:
            if log.position != positions[facet]:
                return False
        changed = missed = 0
        for facet, log in self._other_logs:
            if log.position != positions[facet]:
                changed |= 1 << facet
                positions[facet] = log.position
        rows: list[int] = []
        for facet, log in self._row_logs:
            behind = log.position - positions[facet]
            if not behind:
                continue
            missed += behind
            if missed <= MISSED:
                rows += log.since(positions[facet]) or ()
            changed |= 1 << facet
            positions[facet] = log.position
        # Nodes were narrowed down by name, and a row can have another node now.
        if changed and (self.stop is not None or self.narrowed_out is not None):
            return False
        if len(rows) > 1:
            rows = sorted(set(rows))
        self._changed, self._rows = changed, rows if missed <= MISSED and len(rows) <= FEW else None
        return True

    def _update_row(self, row: int, affected: AffectedPlugins, pod: Pod, again: set[int]) -> bool:
        """
        Update one row; *again* collects scorers that must score all rows.

        Return False if a score is out of range.
        """
        state, scores, skips = self.state, self.scores, self.skips
        node = NodeRow(self.columns, row)
        passes, passed = self._filter_row(node, affected, pod), self.feasible.item(row)
        if passes != passed:
            self.feasible[row] = passes
            self._flip(again)
        gained = 0.0
        for index, part in affected.scorers:
            if skips[index]:
                continue
            if part.normalizer is not None:
                again.add(index)
                continue
            if part.by_node is not None:
                score = part.by_node.score_node(state, pod, node)
            else:
                score = int(part.plugin.score(state, pod, only(self.columns, [row]))[0])
            if not 0 <= score <= MAX_SCORE:
                return False
            gained += part.weight * (score - scores.item(index, row))
            scores[index, row] = score
        if not passes:
            self.totals[row] = OUT
        elif passed:
            self.totals[row] = self.totals.item(row) + gained
        else:
            self.totals[row] = self.profile.weights.dot(scores[:, row])
        return True

    def _flip(self, again: set[int]) -> None:
        """Add the scorers that normalise over feasible nodes, after feasibility changed."""
        for index, part in enumerate(self.profile.scorers):
            if part.normalizer is not None and not self.skips[index] and not self.constant[index]:
                again.add(index)

    def _filter_row(self, node: NodeRow, affected: AffectedPlugins, pod: Pod) -> bool:
        row = node.row
        if not self.columns.alive.item(row):
            # Codes of a row without a node are meaningless; a node that reuses the row touches every facet.
            return False
        kept = self.codes
        for index, part in affected.filters:
            if self.silent[index]:
                continue
            if part.by_node is not None:
                code = part.by_node.filter_node(self.state, pod, node)
            else:
                verdicts = part.plugin.filter(self.state, pod, only(self.columns, [row]))
                code = 0 if verdicts is None else int(verdicts.codes[0])
            codes = kept[index]
            if code != (0 if codes is None else codes.item(row)):
                self._set_code(index, row, code, pod)
        # A loop instead of all(): a generator costs more than the three look-ups it saves.
        for codes in kept:  # noqa: SIM110
            if codes is not None and codes.item(row):
                return False
        return True

    def _update_rows(self, affected: AffectedPlugins, pod: Pod, again: set[int]) -> None:
        """Update all rows except their totals, using the cached plugin results."""
        nodes = everything(self.columns)
        for index, part in affected.filters:
            if not self.silent[index]:
                self._take_codes(index, self._results.filter(part, self.state, pod, nodes))
        self._filter_all(again)
        for index, score_part in affected.scorers:
            if self.skips[index]:
                continue
            if score_part.normalizer is not None:
                again.add(index)
            else:
                self._score(index, pod, nodes)

    def _take_codes(self, index: int, verdicts: Verdicts | None) -> None:
        self.codes[index] = None if verdicts is None else verdicts.codes
        self.owned[index] = False
        self.tells[index] = None if verdicts is None else verdicts.tell

    def _codes(self, index: int) -> Ints | Bools:
        codes = self.codes[index]
        if codes is None:
            codes = np.zeros(self.columns.size, dtype=np.int64)
        elif self.owned[index]:
            return codes
        else:
            codes = codes.copy()
        self.codes[index], self.owned[index] = codes, True
        return codes

    def _set_code(self, index: int, row: int, code: int, pod: Pod) -> None:
        self._codes(index)[row] = code
        if code and self.tells[index] is None:
            # First refusal by a filter that passed every node so far: only `filter` returns the reasons.
            verdicts = self.profile.filters[index].plugin.filter(self.state, pod, only(self.columns, [row]))
            self.tells[index] = None if verdicts is None else verdicts.tell

    # -- extenders ---------------------------------------------------------------------------------------------------

    def add_extenders(self, given: Sequence[ExtenderScores]) -> None:
        """Add the scores of extenders to the totals. The evaluation is for one pod then, and must not be refreshed."""
        if self._halted() or not given:
            return
        totals = self.totals.astype(np.float64)
        rows = self.columns.rows
        for one in given:
            by_row = {rows[node]: score for node, score in one.scores.items() if node in rows}
            self.extended.append((one, by_row))
            for row, score in by_row.items():
                totals[row] += max(-LARGEST_POINTS, min(score * one.weight, LARGEST_POINTS))
        self.totals = totals

    # -- choice ------------------------------------------------------------------------------------------------------

    def choose(self, pick: Callable[[int], int]) -> tuple[int, int]:
        """Return the best row (-1 if none) and how many rows share its total; *pick* breaks the tie."""
        totals = self.totals
        if not len(totals):
            return -1, 0
        row = int(totals.argmax())
        best = totals.item(row)
        if best == OUT:
            return -1, 0
        tied = (totals == best).nonzero()[0]
        count = len(tied)
        return (row if count == 1 else int(tied[pick(count)])), count
