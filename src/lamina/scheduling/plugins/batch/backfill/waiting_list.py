"""
The pods that wait for backfill, in the order in which their jobs wait.

Jobs of a higher priority come first, then those that arrived first. The list outlives the batches, so that jobs that
arrived at one time keep their order, and every batch has the jobs that wait in front.
"""

import bisect
import heapq
from collections.abc import Sequence
from typing import Final

from lamina.model.pod import Pod, PodUid

MOST_UNTRIED: Final = 1000

Turn = tuple[int, float, int]
"""Priority (negative), arrival, and order of arrival at the plugin."""


class WaitingList:
    """
    Turns of all pods that wait; the pods of a job have one turn.

    Pods that were seen and not tried yet are kept apart: after a restart, they are those that waited before.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._turns: dict[PodUid, Turn] = {}
        self._numbers: dict[PodUid, int] = {}
        self._count = 0
        self._order: list[tuple[Turn, int, PodUid]] = []
        """Turn, number and uid of each pod, sorted: the pods of a job follow each other as they came."""
        self._untried: dict[PodUid, tuple[str, Turn]] = {}
        """Scheduler name and expected turn of each."""
        self._serial = 0

    def __len__(self) -> int:
        """Return the number of pods that were tried."""
        return len(self._turns)

    def __contains__(self, uid: object) -> bool:
        """Return whether a pod was tried and waits."""
        return uid in self._turns

    def see(self, pod: Pod) -> None:
        """Note a pod that waits for a scheduler, unless it was tried or has gates."""
        if pod.uid not in self._turns and not pod.gates:
            self._untried[pod.uid] = pod.scheduler_name, (-pod.priority, pod.created_at, 0)

    def put(self, uids: Sequence[PodUid], priority: int, arrived_at: float) -> Turn:
        """Add the pods of a job that is tried, some of which may be known; return their turn."""
        known = [self._turns[uid][2] for uid in uids if uid in self._turns]
        if not known:
            self._serial += 1
        turn = (-priority, arrived_at, min(known, default=self._serial))
        for uid in uids:
            self._untried.pop(uid, None)
            before = self._turns.get(uid)
            if before == turn:
                continue
            if before is None:
                self._count += 1
                self._numbers[uid] = self._count
            else:
                self._take_out(uid, before)
            self._turns[uid] = turn
            bisect.insort(self._order, (turn, self._numbers[uid], uid))
        return turn

    def remove(self, uid: PodUid) -> bool:
        """Remove a pod that does not wait any more; return whether it was tried."""
        self._untried.pop(uid, None)
        turn = self._turns.pop(uid, None)
        if turn is None:
            return False
        self._take_out(uid, turn)
        del self._numbers[uid]
        return True

    def first(self, scheduler: str, most: int) -> list[PodUid]:
        """Return the pods of the first jobs, at most that many jobs, and pods that were not tried."""
        found: list[PodUid] = []
        before: Turn | None = None
        for turn, _, uid in self._order:
            jobs = most - (turn != before)
            if jobs < 0:
                break
            most, before = jobs, turn
            found.append(uid)
        untried = [(turn, uid) for uid, (name, turn) in self._untried.items() if name == scheduler]
        return found + [uid for _, uid in heapq.nsmallest(MOST_UNTRIED, untried)]

    def _take_out(self, uid: PodUid, turn: Turn) -> None:
        del self._order[bisect.bisect_left(self._order, (turn, self._numbers[uid], uid))]
