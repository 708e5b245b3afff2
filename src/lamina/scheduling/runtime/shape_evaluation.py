"""
One shape of pods against all nodes: who refuses which node, who gives it how many points.

Built once per shape (all plugins, all nodes, as arrays) and afterwards kept up to date: `refresh` looks at the rows
that changed since and asks only the plugins that read what changed. After a pod was placed that is one row and, as a
rule, one plugin, which is why a pod like the one before costs less than a tenth of a new one.

    totals[row] = Σ weight · score   where every filter passed, else -1
"""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from lamina.model.decision import Refusal
from lamina.model.pod import Pod
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.points import MAX_SCORE, PreFilterResult, Verdicts
from lamina.scheduling.contract.status import Code, Status, failed, unresolvable
from lamina.scheduling.runtime.plugin_results import FEW, PluginResultCache
from lamina.scheduling.runtime.profile import AffectedPlugins, Profile, Scores
from lamina.scheduling.state.columns import Bools, Ints, NodeColumns
from lamina.scheduling.state.view import NodeRow, NodeView, everything, only

# So many changes are looked through for the few rows that changed; every placement is noted in two facets.
MISSED: Final = 4 * FEW

OUT: Final = -1.0
ONE: Final = np.ones(1, dtype=np.bool_)


class ShapeEvaluation:
    """All answers for one shape of pods; valid until the next change of the columns."""

    __slots__ = (
        "_answers",
        "_changed",
        "_other_logs",
        "_row_logs",
        "_rows",
        "_whole_logs",
        "codes",
        "columns",
        "constant",
        "feasible",
        "grouped",
        "memory",
        "mine",
        "narrowed_by",
        "narrowed_out",
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
        answers: PluginResultCache | None = None,
        memory: Scores | None = None,
        withheld: Mapping[int, Refusal] | None = None,
    ) -> None:
        """
        Ask every plugin about every node.

        *answers* are what they said about other shapes; *memory* is that of an evaluation nobody needs any more. Rows
        that are *withheld* are refused although every filter passes them: nominated pods hold their room.
        """
        self.withheld = withheld or {}
        self._answers = answers or PluginResultCache(columns)
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
        """Set when the pod was refused before any node was looked at, or a plugin misbehaved."""
        self.codes: list[Ints | Bools | None] = []
        """For each filter of the profile: a code per row, None when all pass; to be written to through `_codes` only."""
        self.mine: list[bool] = []
        """For each filter: whether its codes are this evaluation's own. If not, other shapes look at them as well."""
        self.tells: list[Callable[[int], Refusal] | None] = []
        self.silent: list[bool] = []
        """For each filter: whether its pre_filter said that it has nothing to say."""
        self.skips: list[bool] = []
        """For each scorer: whether it has nothing to say about this shape."""
        lines = len(profile.scorers)
        if memory is None or memory.shape != (lines + 1, columns.size):
            memory = np.empty((lines + 1, columns.size), dtype=profile.weights.dtype)
        self.memory = memory
        # Whole numbers in floats are exact, and the weighted sum over all scorers is one BLAS call.
        self.scores: Scores = memory[:lines]
        """For each scorer: 0..100 per row, before the weight."""
        self.constant: list[bool] = []
        """For each scorer that normalises: whether all raw scores are equal, so that feasibility does not matter."""
        self.grouped: list[tuple[Bools, Refusal]] | None = None
        """The refused nodes by reason, once somebody has asked (see `explain.groups`)."""
        self.narrowed_by: tuple[str, ...] = ()
        self.narrowed_out: Bools | None = None
        self.totals: Scores = memory[lines]
        self.totals[:] = OUT
        self.feasible: Bools = columns.alive[: columns.size].copy()
        self._build(pod, everything(columns))

    def _halted(self) -> bool:
        # A call, because to the type checker an attribute that was None a line ago still is.
        return self.stop is not None

    # -- building ----------------------------------------------------------------------------------------------------

    def _build(self, pod: Pod, nodes: NodeView) -> None:
        skipped = self._pre_filter(pod, nodes)
        if self._halted():
            return
        for part in self.profile.filters:
            self.silent.append(part.name in skipped)
            verdicts = None if part.name in skipped else self._answers.filter(part, self.state, pod, nodes)
            self.codes.append(None if verdicts is None else verdicts.codes)
            self.mine.append(False)
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
                # A plain refusal may be lifted by making room, for which the others have to have prepared as well; and
                # one of them may know that room would not help.
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
        """Ask one scorer about every node. What it answers before it normalises is not kept: memory costs more."""
        part = self.profile.scorers[index]
        raw = self._answers.score(part, self.state, pod, nodes)
        if raw.shape != (len(nodes),) or raw.dtype.kind not in "iu":
            words = f"plugin {part.name!r} returned {raw.dtype} of shape {raw.shape}, not a whole number for each node"
            self._halt(failed(words).of(part.name))
            return
        if part.normalizer is None or not len(raw):
            self.scores[index] = raw
            return
        # A negative one means that the plugin has yet to look at all of them together.
        first = raw.item(0)
        self.constant[index] = bool(first >= 0 and raw.min() == first == raw.max())
        if self.constant[index]:
            self.scores[index] = part.normalizer.normalize(self.state, pod, raw[:1], ONE)[0]
        else:
            self.scores[index] = part.normalizer.normalize(self.state, pod, raw, self.feasible)

    def _in_range(self) -> bool:
        # One look instead of two: as unsigned integers floats sort like numbers, and negative ones come last.
        if not self.scores.size or self.scores.view(self.profile.bits).max() <= self.profile.full_score:
            return True
        # What is answered for rows without a node counts for nothing, and so does what is normalised to for a refused one.
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
        """No node for this shape, because the pod was refused as a whole or a plugin misbehaved."""
        self.stop = status
        self.feasible[:] = False
        self.totals[:] = OUT

    def _sum(self) -> None:
        np.dot(self.profile.weights, self.scores, out=self.totals)
        # Not by subscript: that first counts the flags.
        np.putmask(self.totals, ~self.feasible, OUT)

    # -- keeping up to date ------------------------------------------------------------------------------------------

    def refresh(self, pod: Pod) -> bool:
        """Look at what changed since; False when so much did that a new evaluation is cheaper or needed."""
        if not self._notice():
            return False
        if not self._changed:
            return True
        self.grouped = None
        again: set[int] = set()
        affected = self.profile.affected(self._changed)
        rows = self._rows
        if rows is None:
            self._look_at_all(affected, pod, again)
            if self._halted():
                return True
        else:
            for row in rows:
                if not self._look_at(row, affected, pod, again):
                    return False
        if not self._ask_anew(affected, pod, again):
            return False
        return (rows is not None and not again) or self._sum_anew(pod, again)

    def _sum_anew(self, pod: Pod, again: set[int]) -> bool:
        """Ask some scorers about every node and add all up; False when somebody left the range."""
        for index in sorted(again):
            self._score(index, pod, everything(self.columns))
        if self._halted():
            return True
        if not self._in_range():
            return False
        self._sum()
        return True

    def _ask_anew(self, affected: AffectedPlugins, pod: Pod, again: set[int]) -> bool:
        """Let those answer for all rows who look at all of them; False when one of them has something new to say."""
        nodes = everything(self.columns)
        filtered = False
        for index, part in affected.filters_anew:
            if self.silent[index]:
                continue
            if part.prepares is not None and part.prepares.pre_filter(self.state, pod, nodes) is not None:
                return False
            verdicts = part.plugin.filter(self.state, pod, nodes)
            filtered = filtered or verdicts is not None or self.codes[index] is not None
            self._take_codes(index, verdicts)
        if filtered and self._filter_all(again):
            self._sum()
        for index, score_part in affected.scorers_anew:
            if self.skips[index]:
                continue
            prepares = score_part.prepares
            if prepares is not None and prepares.pre_score(self.state, pod, nodes) is not None:
                return False
            again.add(index)
        return True

    def _filter_all(self, again: set[int]) -> bool:
        """Put the filters' answers together again, for all rows; say whether others are feasible now."""
        feasible = self.columns.alive[: self.columns.size].copy()
        for codes in self.codes:
            if codes is not None:
                feasible &= codes == 0
        if np.array_equal(feasible, self.feasible):
            return False
        self.feasible = feasible
        self._flip(again)
        return True

    def _notice(self) -> bool:
        """
        Find out which facets (`_changed`) and which rows (`_rows`, None: many) changed since the last look.

        False when what changed may be anything.
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
        # Nodes are narrowed down by name, and a row may have another name now.
        if changed and (self.stop is not None or self.narrowed_out is not None):
            return False
        if len(rows) > 1:
            rows = sorted(set(rows))
        self._changed, self._rows = changed, rows if missed <= MISSED and len(rows) <= FEW else None
        return True

    def _look_at(self, row: int, affected: AffectedPlugins, pod: Pod, again: set[int]) -> bool:
        """Bring one row up to date; *again* collects who must look at all of them. False: somebody left the range."""
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
        """A node became feasible or ceased to be: whoever normalises over feasible nodes has to do it again."""
        for index, part in enumerate(self.profile.scorers):
            if part.normalizer is not None and not self.skips[index] and not self.constant[index]:
                again.add(index)

    def _filter_row(self, node: NodeRow, affected: AffectedPlugins, pod: Pod) -> bool:
        row = node.row
        if not self.columns.alive.item(row):
            # What is kept of its codes is void; a node that takes the row over touches every facet.
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
        # Not all(): a generator costs more than the three look-ups it would save.
        for codes in kept:  # noqa: SIM110
            if codes is not None and codes.item(row):
                return False
        return True

    def _look_at_all(self, affected: AffectedPlugins, pod: Pod, again: set[int]) -> None:
        """Bring all rows up to date, all but their totals: the plugins' answers are kept, and take in what changed once."""
        nodes = everything(self.columns)
        for index, part in affected.filters:
            if not self.silent[index]:
                self._take_codes(index, self._answers.filter(part, self.state, pod, nodes))
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
        self.mine[index] = False
        self.tells[index] = None if verdicts is None else verdicts.tell

    def _codes(self, index: int) -> Ints | Bools:
        codes = self.codes[index]
        if codes is None:
            codes = np.zeros(self.columns.size, dtype=np.int64)
        elif self.mine[index]:
            return codes
        else:
            codes = codes.copy()
        self.codes[index], self.mine[index] = codes, True
        return codes

    def _set_code(self, index: int, row: int, code: int, pod: Pod) -> None:
        self._codes(index)[row] = code
        if code and self.tells[index] is None:
            # The first refusal of a filter that passed every node so far: ask it once as an array, for its words.
            verdicts = self.profile.filters[index].plugin.filter(self.state, pod, only(self.columns, [row]))
            self.tells[index] = None if verdicts is None else verdicts.tell

    # -- choosing ----------------------------------------------------------------------------------------------------

    def choose(self, pick: Callable[[int], int]) -> tuple[int, int]:
        """Return the best row and how many rows share its total; *pick* chooses among those."""
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
