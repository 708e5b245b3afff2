"""Scheduling cycle: evaluate a pod, choose and assume a node, and start its binding cycle; or refuse the pod."""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from lamina.model.decision import Refusal
from lamina.model.pod import Pod, PodUid
from lamina.scheduling.contract.commands import AskExtenders
from lamina.scheduling.contract.extender_chain import NAME
from lamina.scheduling.contract.status import Code, Status, failed, raised
from lamina.scheduling.loop.binding_cycle import BindingCycle
from lamina.scheduling.loop.evictions import preempt
from lamina.scheduling.loop.extender_waits import LEFT_OUT, ExtenderWait
from lamina.scheduling.loop.kept_nodes import Keeper
from lamina.scheduling.loop.loop_state import LoopState
from lamina.scheduling.loop.making_room import MakingRoom, RoomResult
from lamina.scheduling.loop.nominated_room import fits_where_nominated, keeps_nomination, withheld_from
from lamina.scheduling.loop.pod_batches import PodBatches, PodTurn
from lamina.scheduling.loop.queued_pod import QueuedPodInfo
from lamina.scheduling.runtime.evaluation_cache import EvaluationCache
from lamina.scheduling.runtime.explanation import Attempt, broken, explain, groups, node_name
from lamina.scheduling.runtime.shape_evaluation import ShapeEvaluation

NO_ANSWER: Final = "the extenders did not answer within {:g} seconds"


class SchedulingCycle:
    """Takes pods from the queue and decides them one after another."""

    def __init__(self, state: LoopState, pick: Callable[[int], int]) -> None:
        """Decide with *state*; *pick* breaks ties."""
        self._state = state
        self._pick = pick
        self._room = MakingRoom(state)
        self._evaluations = {
            name: EvaluationCache(profile, state.cluster.columns) for name, profile in state.profiles.items()
        }
        self._batches = PodBatches(state, self._evaluate, self._follow)
        self.unfinished = False
        """Whether `run` stopped at its limit with pods left in the queue."""
        self.tried: list[str] = []
        """Profiles of the pods that the last `run` popped, in order."""

    def run(self, limit: int) -> None:
        """Decide up to *limit* pods; 0 for all that are ready."""
        done = 0
        self.tried.clear()
        for plugin in self._state.kept.release(self._waits) if len(self._state.kept) else ():
            self._state.queue.retry(plugin)
        while True:
            over = 0 < limit <= done
            # No other pod is popped while too many wait for extenders: then it is a batch's last chance as well.
            stuck = self._state.waits.full and not self._state.waits.answered
            placed = self._batches.next(last=over or stuck)
            if placed is not None:
                done += self._follow(placed)
                continue
            if over:
                break
            wait = self._state.waits.take()
            if wait is not None:
                self.tried.append(wait.queued.profile.name)
                done += self._conclude(wait)
                continue
            # If too many pods wait for extenders, the next answer continues.
            queued = None if self._state.waits.full else self._state.queue.pop()
            if queued is None:
                self.unfinished = False
                return
            if queued.profile.place and queued.unsorted is None:
                done += self._batches.place(queued)
                continue
            self.tried.append(queued.profile.name)
            done += self._guarded(queued, self._decide)
        self.unfinished = len(self._state.queue) > 0 or self._state.waits.answered

    def _waits(self, uid: PodUid) -> bool:
        return self._state.queue.get(uid) is not None or self._state.waits.get(uid) is not None

    def _guarded(self, queued: QueuedPodInfo, attempt: Callable[[QueuedPodInfo], object]) -> int:
        """Run an attempt. If a plugin raises, this attempt fails and other pods are not affected."""
        if queued.unsorted is not None:
            self._fail(queued, queued.unsorted)
            return 1
        try:
            attempt(queued)
        except Exception as error:  # noqa: BLE001 - the pod's event reports whatever a plugin raises
            self._fail(queued, raised(error))
        return 1

    def _fail(self, queued: QueuedPodInfo, status: Status) -> None:
        state, pod = self._state, queued.pod
        cycle = state.bindings.get(pod.uid)
        if cycle is not None:
            state.bindings.abandon(cycle, status)
        elif state.queue.get(pod.uid) is None:
            state.cluster.forget(pod)
            self._review_nomination(queued, broke=True)
            state.queue.put_back(queued, frozenset(), broke=True)
            state.report_unschedulable(
                pod, broken(pod, status, at=state.now, attempt=queued.attempts, profile=queued.profile.name)
            )

    # -- one pod -----------------------------------------------------------------------------------------------------

    def _decide(self, queued: QueuedPodInfo) -> None:
        pod = queued.pod
        evaluation = self._evaluate(queued)
        kept = self._kept_from(queued, evaluation)
        if kept:
            withheld = {**evaluation.withheld, **kept}
            evaluation = self._evaluations[queued.profile.name].without(withheld, pod)
        if self._ask(queued, evaluation):
            return
        row, tied = (-1, 0) if evaluation.stop is not None else self._choose(evaluation, pod)
        if row < 0:
            self._refuse(queued, evaluation)
        else:
            self._send(queued, evaluation, row, tied)

    def _evaluate(self, queued: QueuedPodInfo) -> ShapeEvaluation:
        if queued.edition != queued.profile.edition:
            queued.sign()
        evaluations, pod = self._evaluations[queued.profile.name], queued.pod
        evaluation, cluster = evaluations.of(queued.shape, pod), self._state.cluster
        if not cluster.nominations.nodes:
            return evaluation
        # As upstream, other nodes do not matter to a pod that fits where it is nominated. Extenders and place plugins
        # may choose another node.
        one_node = not self._state.chain.extenders and not queued.profile.place
        if one_node and fits_where_nominated(cluster, queued.profile, pod, evaluation):
            return evaluation
        withheld = withheld_from(cluster, queued.profile, pod, evaluation)
        return evaluations.without(withheld, pod) if withheld else evaluation

    def _choose(self, evaluation: ShapeEvaluation, pod: Pod) -> tuple[int, int]:
        nominated = self._state.cluster.nominations.nodes.get(pod.uid)
        if nominated is not None:
            # Pods were evicted there for it: prefer that node if it fits now.
            row = self._state.cluster.row(nominated)
            if row >= 0 and evaluation.feasible[row]:
                return row, 1
        return evaluation.choose(self._pick)

    def _send(self, queued: QueuedPodInfo, evaluation: ShapeEvaluation, row: int, tied: int) -> None:
        state, pod = self._state, queued.pod
        attempt = Attempt(state.now, queued.attempts, row, tied)
        decision = explain(evaluation, pod, attempt, state.settings.detail)
        assert decision.chosen is not None, "a row was chosen"
        node = decision.chosen.node
        state.react(state.cluster.assume(pod, node))
        state.queue.placed(queued)
        cycle = BindingCycle(queued, node, evaluation.state.copy(), decision, state.changes)
        state.do(*state.bindings.start(cycle))

    def _refuse(self, queued: QueuedPodInfo, evaluation: ShapeEvaluation, wait: ExtenderWait | None = None) -> None:
        """Refuse a pod that fits nowhere, and make room; *wait* was for extenders about victims."""
        state, pod = self._state, queued.pod
        stop = evaluation.stop
        broke = stop is not None and stop.code is Code.ERROR
        changes = state.changes
        room = RoomResult() if broke else self._room.run(queued, evaluation, wait)
        if room.waits:
            return
        # Victims that were put back into the queue have left already, and no change will wake the pod.
        stale = state.changes > changes
        self._review_nomination(queued, broke=broke)
        attempt = Attempt(state.now, queued.attempts, after=room.said)
        decision = explain(evaluation, pod, attempt, state.settings.detail)
        # A refusal because of nominations holds for this pod only; other pods of its shape may fit.
        alone = bool(evaluation.withheld) or pod.uid in state.cluster.nominations.nodes
        refused_by = _refused_by(evaluation) | room.refused_by
        state.queue.put_back(queued, refused_by, broke=broke or room.again, stale=stale, alone=alone)
        state.report_unschedulable(pod, decision)

    def _review_nomination(self, queued: QueuedPodInfo, *, broke: bool = False) -> None:
        """End a pod's nomination after an attempt with an error, or if the node would no longer fit."""
        state, pod = self._state, queued.pod
        if pod.uid not in state.cluster.nominations.nodes:
            return
        if broke or not keeps_nomination(state.cluster, queued.profile, pod):
            state.end_nomination(pod)

    # -- extenders ---------------------------------------------------------------------------------------------------

    def _ask(self, queued: QueuedPodInfo, evaluation: ShapeEvaluation) -> bool:
        """Let the pod wait for the extenders that are interested in it; return False if there are none."""
        state, pod = self._state, queued.pod
        extenders = self._asked(pod, evaluation)
        if not extenders:
            return False
        rows = np.flatnonzero(evaluation.feasible)
        nodes = tuple([node_name(evaluation, row) for row in rows.tolist()])
        wait = ExtenderWait(queued, state.waits.next_number(), nodes, state.now + state.chain.timeout)
        state.waits.start(wait)
        state.do(AskExtenders(pod, queued.attempts, wait.number, nodes, extenders))
        return True

    def _asked(self, pod: Pod, evaluation: ShapeEvaluation) -> tuple[str, ...]:
        """Return the names of the extenders to ask about a pod."""
        chain = self._state.chain
        if not chain.extenders or evaluation.stop is not None:
            return ()
        return chain.asked(pod, int(np.count_nonzero(evaluation.feasible)))

    def _conclude(self, wait: ExtenderWait) -> int:
        """Use the answer of the extenders; return the number of decided pods."""
        queued, answer = wait.queued, wait.answer
        if wait.latest is not None:
            queued.pod = wait.latest
            queued.sign()
            return self._guarded(queued, self._decide)
        if wait.plugin:
            return self._guarded(queued, lambda one: self._decide_victims(one, wait))
        if answer is not None and answer.error:
            self._fail(queued, failed(answer.error).of(NAME))
            return 1
        return self._guarded(queued, lambda one: self._decide_answered(one, wait))

    def _decide_answered(self, queued: QueuedPodInfo, wait: ExtenderWait) -> None:
        """Choose among the nodes that the extenders left and that still fit."""
        pod, now = queued.pod, self._evaluate(queued)
        if now.stop is not None:
            self._refuse(queued, now)
            return
        assert wait.answer is not None, "only answered pods are decided"
        refused, rows = wait.refusals(now.columns.rows), now.columns.rows
        asked = {rows[node] for node in wait.nodes if node in rows}
        # Asking again would be endless for kept nodes: `_decide` does not ask about them.
        kept = self._kept_from(queued, now)
        later = [row for row in np.flatnonzero(now.feasible).tolist() if row not in asked and row not in kept]
        withheld = {**now.withheld, **kept, **dict.fromkeys(later, LEFT_OUT)}
        withheld |= {row: one for row, one in refused.items() if now.feasible[row]}
        evaluation = self._evaluations[queued.profile.name].without(withheld, pod)
        evaluation.add_extenders(wait.answer.scores)
        row, tied = (-1, 0) if evaluation.stop is not None else self._choose(evaluation, pod)
        if row >= 0:
            self._send(queued, evaluation, row, tied)
        elif later and evaluation.stop is None:
            # The nodes that the extenders left are taken by now, and others became free.
            self._decide(queued)
        else:
            self._refuse(queued, evaluation)

    def _decide_victims(self, queued: QueuedPodInfo, wait: ExtenderWait) -> None:
        """Evict pods that the extenders allowed to evict, unless the pod fits somewhere by now."""
        pod, evaluation = queued.pod, self._evaluate(queued)
        refused = {row: one for row, one in wait.refusals(evaluation.columns.rows).items() if evaluation.feasible[row]}
        refused = {**self._kept_from(queued, evaluation), **refused}
        if evaluation.stop is None and refused:
            withheld = {**evaluation.withheld, **refused}
            evaluation = self._evaluations[queued.profile.name].without(withheld, pod)
        if evaluation.stop is None and evaluation.feasible.any():
            self._decide(queued)
        else:
            self._refuse(queued, evaluation, wait)

    def end_waits(self, now: float) -> None:
        """End the waits whose deadline has passed; the pods are tried again after a back-off."""
        for wait in self._state.waits.overdue(now):
            if wait.answer is None:
                chain = self._state.chain
                timeout = chain.preempt_timeout if wait.plugin else chain.timeout
                self._fail(wait.queued, failed(NO_ANSWER.format(timeout)).of(NAME))
            else:
                # Another instance led meanwhile, so that the answer was not used.
                self._state.queue.put_back(wait.queued, frozenset(), stale=True, alone=True)

    # -- many pods ---------------------------------------------------------------------------------------------------

    def _follow(self, placed: PodTurn) -> int:
        """Carry out what the place plugins decided for a pod."""
        self.tried.append(placed.queued.profile.name)
        return self._guarded(placed.queued, lambda _: self._attempt_placed(placed))

    def _attempt_placed(self, placed: PodTurn) -> None:
        queued, row = placed.queued, placed.row
        if placed.refused is not None:
            changes = self._state.changes
            if placed.room is not None and not self._state.evictions_off:
                preempt(self._state, queued.pod, placed.room.node, placed.room.victims)
            # As in `_refuse`: victims that were put back into the queue have left already.
            self._refuse_placed(queued, placed.refused, placed.group, stale=self._state.changes > changes)
            return
        evaluation = self._evaluate(queued)
        fits = evaluation.stop is None and 0 <= row < len(evaluation.feasible) and evaluation.feasible[row]
        kept = self._kept_from(queued, evaluation, [row], (queued.profile.name, placed.plugin))
        if fits and not kept and not self._asked(queued.pod, evaluation):
            self._send(queued, evaluation, row, 1)
        else:
            # Not placed, or the choice is no longer feasible, or extenders choose.
            self._decide(queued)

    def _kept_from(
        self,
        queued: QueuedPodInfo,
        evaluation: ShapeEvaluation,
        rows: Sequence[int] | None = None,
        placer: Keeper | None = None,
    ) -> dict[int, Refusal]:
        """Return the feasible rows (or those of *rows*) that are kept for other pods."""
        kept = self._state.kept
        if not len(kept):
            return {}
        found = {self._state.cluster.row(node): one for node, one in kept.refusals(queued.pod.uid, placer).items()}
        return {
            row: one
            for row, one in found.items()
            if row >= 0 and evaluation.feasible[row] and (rows is None or row in rows)
        }

    def _refuse_placed(self, queued: QueuedPodInfo, status: Status, group: str, *, stale: bool) -> None:
        state = self._state
        attempt = Attempt(state.now, queued.attempts, stop=status)
        decision = explain(self._evaluate(queued), queued.pod, attempt, state.settings.detail)
        broke = status.code is Code.ERROR
        self._review_nomination(queued, broke=broke)
        state.queue.put_back(queued, frozenset([status.plugin]), broke=broke, stale=stale, alone=True, beside=group)
        state.report_unschedulable(queued.pod, decision)


def _refused_by(evaluation: ShapeEvaluation) -> frozenset[str]:
    if evaluation.stop is not None:
        return frozenset([evaluation.stop.plugin])
    return frozenset(refusal.plugin for _, refusal in groups(evaluation))
