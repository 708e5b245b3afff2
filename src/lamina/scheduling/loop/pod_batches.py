"""
Batches: pods of one profile that its place plugins decide at once.

    popped ──place──> placed | refused | left out ──at the pod's turn──> bound, back in the queue, or the ordinary cycle

The loop calls the plugins at the turn of the first pod. A pod of the batch is bound or refused at its own turn in queue
order: pods of other profiles that come before it are decided before it.
"""

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Final

import msgspec
import numpy as np

from lamina.model.pod import Pod, PodUid
from lamina.scheduling.contract.placement import GroupingPlugin, Placement, PlacePlugin
from lamina.scheduling.contract.points import PostFilterResult
from lamina.scheduling.contract.status import Status, raised
from lamina.scheduling.loop.kept_nodes import Keeper
from lamina.scheduling.loop.loop_state import LoopState
from lamina.scheduling.loop.queued_pod import FIRST_TURN, QueuedPodInfo, Turn
from lamina.scheduling.runtime.explanation import resolvable_rows
from lamina.scheduling.runtime.shape_evaluation import ShapeEvaluation
from lamina.scheduling.state.columns import Bools, Ints
from lamina.scheduling.state.nominations import by_priority
from lamina.scheduling.state.view import everything

KEPT_BYTES: Final = 64 * 1024 * 1024
"""Memory limit of the evaluations of one call of `place`; beyond it, an evaluation is computed again when it is read."""

Evaluate = Callable[[QueuedPodInfo], ShapeEvaluation]


class PodTurn(msgspec.Struct, frozen=True):
    """A popped pod and what the place plugins decided."""

    queued: QueuedPodInfo
    turn: Turn
    plugin: str = ""
    row: int = -1
    """-1 if no plugin chose a node."""
    refused: Status | None = None
    room: PostFilterResult | None = None
    """Evictions in its favour."""
    group: str = ""
    """The group that it is decided with and waits with."""


class BatchEvaluations:
    """Evaluations during one call of `place`, by key."""

    def __init__(self, state: LoopState, evaluate: Evaluate, plugin: str) -> None:
        """Evaluate with *evaluate* on behalf of *plugin*."""
        self._state = state
        self._evaluate = evaluate
        self._plugin = plugin
        self._most = max(1, KEPT_BYTES // (9 * max(1, state.cluster.columns.size)))
        self._kept: dict[Hashable, tuple[Bools, Ints]] = {}
        self._possible: dict[Hashable, Bools] = {}

    def key(self, queued: QueuedPodInfo) -> Hashable:
        """Return the key of a pod's evaluation."""
        if queued.edition != queued.profile.edition:
            queued.sign()
        if queued.shape is None:
            return queued.pod.uid
        nominations = self._state.cluster.nominations
        nominated = nominations.nodes
        if nominated:
            if nominations.goes_first is not by_priority:
                # The rule of a plugin may tell two pods of one shape and priority apart.
                return queued.shape, queued.pod.uid
            own = queued.pod.uid if queued.pod.uid in nominated else ""
            return queued.shape, queued.pod.priority, own
        return queued.shape

    def of(self, queued: QueuedPodInfo, key: Hashable) -> tuple[Bools, Ints]:
        """Return which nodes are feasible for a pod, and their scores."""
        kept = self._kept.get(key)
        if kept is None:
            kept = self._computed(queued)
            if len(self._kept) < self._most:
                self._kept[key] = kept
        return kept

    def possible(self, queued: QueuedPodInfo, key: Hashable) -> Bools:
        """Return which nodes could run a pod once others have left."""
        possible = self._possible.get(key)
        if possible is None:
            try:
                possible = resolvable_rows(self._evaluate(queued))
            except Exception:  # noqa: BLE001 - as in `_computed`
                possible = np.zeros(self._state.cluster.columns.size, dtype=np.bool_)
            possible.flags.writeable = False
            if len(self._possible) < self._most:
                self._possible[key] = possible
        return possible

    def _computed(self, queued: QueuedPodInfo) -> tuple[Bools, Ints]:
        columns = self._state.cluster.columns
        try:
            evaluation = self._evaluate(queued)
        except Exception:  # noqa: BLE001 - the pod's own attempt raises again and reports it
            return np.zeros(columns.size, dtype=np.bool_), np.zeros(columns.size, dtype=np.int64)
        feasible = evaluation.feasible.copy()
        placer = (queued.profile.name, self._plugin)
        for node in self._state.kept.refusals(queued.pod.uid, placer) if len(self._state.kept) else ():
            row = self._state.cluster.row(node)
            if row >= 0:
                feasible[row] = False
        scores = np.where(feasible, evaluation.totals, 0).astype(np.int64)
        feasible.flags.writeable = scores.flags.writeable = False
        return feasible, scores


class BatchCandidate:
    """A pod of a batch, as a place plugin sees it."""

    __slots__ = ("_evaluations", "_queued", "arrived_at", "attempts", "key", "pod", "queued_at")

    def __init__(self, queued: QueuedPodInfo, evaluations: BatchEvaluations) -> None:
        """Show *queued*; its evaluation is computed when it is read."""
        self._queued = queued
        self._evaluations = evaluations
        self.pod: Pod = queued.pod
        self.arrived_at = queued.arrived_at
        self.queued_at = queued.queued_at
        self.attempts = queued.attempts
        self.key: Hashable = evaluations.key(queued)

    @property
    def feasible(self) -> Bools:
        """Which nodes pass all filters."""
        return self._evaluations.of(self._queued, self.key)[0]

    @property
    def possible(self) -> Bools:
        """Which nodes could run the pod once others have left."""
        return self._evaluations.possible(self._queued, self.key)

    @property
    def scores(self) -> Ints:
        """Weighted totals; 0 where a node is not feasible."""
        return self._evaluations.of(self._queued, self.key)[1]


class PodBatches:
    """Pods of batches whose turn has not come."""

    def __init__(self, state: LoopState, evaluate: Evaluate, follow: Callable[[PodTurn], int]) -> None:
        """Evaluate pods with *evaluate*; *follow* carries out a decision."""
        self._state = state
        self._evaluate = evaluate
        self._follow = follow
        self._pending: deque[PodTurn] = deque()

    def next(self, *, last: bool = False) -> PodTurn | None:
        """Return the pod whose turn it is; None if a pod of the queue comes first, unless this is the *last* chance."""
        pending = self._pending
        if not pending:
            return None
        first = None if last else self._state.queue.next_active()
        if first is not None:
            turn, profile = first
            # Pods of a pending batch's profile that became active meanwhile are in its next batch.
            if turn < pending[0].turn and all(profile is not placed.queued.profile for placed in pending):
                return None
        return pending.popleft()

    def place(self, first: QueuedPodInfo) -> int:
        """
        Pop the batch of *first* and call its place plugins; return how many pods were decided at once.

        The pods that remain are pending until their turn.
        """
        plugins = first.profile.place
        most = min(plugin.batch for plugin in plugins)
        left = self._with_groups([(FIRST_TURN, first), *self._state.queue.pop_more(first.profile, most - 1)])
        done = 0
        for plugin in plugins[:-1]:
            placed = self._asked(plugin, left)
            left = [(one.turn, one.queued) for one in placed if not one.plugin]
            for one in placed:
                if one.plugin:
                    done += self._follow(one)
            if not left:
                return done
        placed = self._asked(plugins[-1], left)
        self._pending = deque(sorted([*self._pending, *placed], key=lambda one: one.turn))
        return done

    def _with_groups(self, popped: list[tuple[Turn, QueuedPodInfo]]) -> list[tuple[Turn, QueuedPodInfo]]:
        """Add the pods that are decided with those popped; they get the turn of the first one of their group."""
        plugins = popped[0][1].profile.place
        if not any(isinstance(plugin, GroupingPlugin) for plugin in plugins):
            return popped
        turns: dict[str, Turn] = {}
        found: list[tuple[Turn, QueuedPodInfo]] = []
        for turn, queued in popped:
            group, plugin = _group_of(queued.pod, plugins)
            if plugin is None or group in turns:
                found.append((turns.get(group, turn), queued))
                continue
            turns[group] = turn
            found.append((turn, queued))
            for uid in _members(queued.pod, plugin):
                waiting = self._state.queue.get(uid)
                if waiting is None or waiting.profile is not queued.profile:
                    continue
                taken = self._state.queue.take(uid)
                if taken is not None:
                    found.append((turn, taken))
        return sorted(found, key=lambda one: one[0])

    def _asked(self, plugin: PlacePlugin, pods: Sequence[tuple[Turn, QueuedPodInfo]]) -> list[PodTurn]:
        """Call a plugin, and return the pods with what it decided."""
        evaluations = BatchEvaluations(self._state, self._evaluate, plugin.name)
        columns = self._state.cluster.columns
        try:
            candidates = [BatchCandidate(queued, evaluations) for _, queued in pods]
            placement = plugin.place(candidates, everything(columns), self._state.now)
            self._keep((pods[0][1].profile.name, plugin.name), placement.kept)
        except Exception as error:  # noqa: BLE001 - the pods' events report whatever a plugin raises
            placement = Placement({}, {queued.pod.uid: raised(error) for _, queued in pods})
        decided: list[PodTurn] = []
        for turn, queued in pods:
            refused, row = placement.refused.get(queued.pod.uid), placement.nodes.get(queued.pod.uid, -1)
            if refused is not None:
                group, _ = _group_of(queued.pod, [plugin])
                decided.append(
                    PodTurn(
                        queued,
                        turn,
                        plugin.name,
                        -1,
                        refused.of(plugin.name),
                        placement.room.get(queued.pod.uid),
                        group,
                    )
                )
            else:
                decided.append(PodTurn(queued, turn, "" if row < 0 else plugin.name, row))
        return decided

    def _keep(self, keeper: Keeper, kept: dict[PodUid, tuple[int, ...]]) -> None:
        nodes: dict[str, frozenset[PodUid]] = {}
        for uid, rows in kept.items():
            for row in rows:
                node = self._state.cluster.columns.nodes[row]
                if node is not None:
                    nodes[node.name] = nodes.get(node.name, frozenset()) | {uid}
        if self._state.kept.keep(keeper, nodes):
            self._state.queue.retry(keeper[1])


def _group_of(pod: Pod, plugins: Sequence[PlacePlugin]) -> tuple[str, GroupingPlugin | None]:
    """Return the group that the first of *plugins* names for a pod, and the plugin; an empty name without one."""
    for plugin in plugins:
        if isinstance(plugin, GroupingPlugin):
            try:
                group = plugin.group(pod)
            except Exception:  # noqa: BLE001, S112 - the pod is decided alone, and `place` raises again
                continue
            if group:
                return f"{plugin.name} {group}", plugin
    return "", None


def _members(pod: Pod, plugin: GroupingPlugin) -> Sequence[PodUid]:
    try:
        return tuple(plugin.members(plugin.group(pod)))
    except Exception:  # noqa: BLE001 - as above
        return ()
