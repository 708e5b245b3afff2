"""
Pods that wait for the answer of extenders.

    evaluated ─> (asked) ─> answered ─> evaluated again, with the refusals and scores of the extenders
                    └──> overdue, deleted, or bound by another component: the wait ends

The question is about nodes on which the pod fits, or, if there are none, about pods to evict (`making_room`). A waiting
pod is in no queue and reserves no resources. So other pods are decided meanwhile, and the answer is combined with the
state of the cluster at the time when it is used. Their number is limited: beyond it, the loop decides only pods whose
answers have arrived.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from lamina.model.decision import Refusal
from lamina.model.extender_answer import ExtenderAnswer, ExtenderRefusal
from lamina.model.pod import Pod, PodUid
from lamina.scheduling.contract.extender_chain import NAME
from lamina.scheduling.loop.queue_snapshot import QueuedPodSnapshot, ShapeNumbers
from lamina.scheduling.loop.queued_pod import QueuedPodInfo, restored

MOST_WAITS: Final = 32
"""Most pods that wait for extenders at the same time."""
LEFT_OUT: Final = Refusal(NAME, ())
"""For nodes that the extenders were not asked about: they became feasible later."""


class ExtenderWait(msgspec.Struct, eq=False):
    """A pod about which extenders are asked."""

    queued: QueuedPodInfo
    number: int
    nodes: tuple[str, ...]
    """The nodes that the extenders are asked about."""
    deadline: float
    """In seconds; the wait ends then, with or without an answer."""
    answer: ExtenderAnswer | None = None
    latest: Pod | None = None
    """The pod's newest version if it changed since; the answer is then of no use."""
    plugin: str = ""
    """For a question about victims, the plugin that proposed them."""
    refused: tuple[ExtenderRefusal, ...] = ()
    """For a question about victims, the nodes that the extenders had refused before."""

    def refusals(self, rows: Mapping[str, int]) -> dict[int, Refusal]:
        """Return the nodes that the extenders refused, by row; *rows* are the nodes of the cluster."""
        assert self.answer is not None, "only answered pods are decided"
        found: dict[int, Refusal] = {}
        for one in (*self.refused, *self.answer.refusals):
            refusal = Refusal(NAME, one.reasons, one.final)
            found.update((rows[node], refusal) for node in one.nodes if node in rows)
        return found


class ExtenderWaitSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A wait as data."""

    queued: QueuedPodSnapshot
    number: int
    nodes: tuple[str, ...]
    deadline: float
    answer: ExtenderAnswer | None
    latest: Pod | None
    plugin: str = ""
    refused: tuple[ExtenderRefusal, ...] = ()


class ExtenderWaits:
    """All waits, oldest first."""

    def __init__(self) -> None:
        """Start empty."""
        self._waits: dict[PodUid, ExtenderWait] = {}
        self._answered: dict[PodUid, None] = {}
        self.number = 0
        """The number of the last wait."""

    def __len__(self) -> int:
        """Return the number of waiting pods."""
        return len(self._waits)

    def __iter__(self) -> Iterator[ExtenderWait]:
        """Iterate over the waits, oldest first."""
        return iter(tuple(self._waits.values()))

    @property
    def full(self) -> bool:
        """Whether no further pod may wait."""
        return len(self._waits) >= MOST_WAITS

    @property
    def answered(self) -> bool:
        """Whether an answer has arrived that is not used yet."""
        return len(self._answered) > 0

    def get(self, uid: PodUid) -> ExtenderWait | None:
        """Return a pod's wait, or None."""
        return self._waits.get(uid)

    def next_number(self) -> int:
        """Return a new number, which the answer to a question must have."""
        self.number += 1
        return self.number

    def start(self, wait: ExtenderWait) -> None:
        """Let a pod wait."""
        self._waits[wait.queued.pod.uid] = wait

    def answer(self, uid: PodUid, number: int, answer: ExtenderAnswer) -> None:
        """Store an answer; ignore one for an earlier wait, and a second one."""
        wait = self._waits.get(uid)
        if wait is not None and wait.number == number and wait.answer is None:
            wait.answer = answer
            self._answered[uid] = None

    def take(self) -> ExtenderWait | None:
        """Remove and return the pod that was answered first; None if there is none."""
        uid = next(iter(self._answered), None)
        return None if uid is None else self.drop(uid)

    def drop(self, uid: PodUid) -> ExtenderWait | None:
        """Remove and return a pod's wait, or None."""
        self._answered.pop(uid, None)
        return self._waits.pop(uid, None)

    def overdue(self, now: float) -> list[ExtenderWait]:
        """Remove and return the waits whose deadline has passed."""
        found = [wait for wait in self._waits.values() if wait.deadline <= now]
        for wait in found:
            self.drop(wait.queued.pod.uid)
        return found

    def next_deadline(self) -> float | None:
        """Return the earliest deadline in seconds, or None."""
        return min((wait.deadline for wait in self._waits.values()), default=None)

    # -- snapshots ---------------------------------------------------------------------------------------------------

    def snapshot(self) -> tuple[ExtenderWaitSnapshot, ...]:
        """Return the waits as data: first those that were answered, in the order of the answers, then the others."""
        order = [*self._answered, *(uid for uid in self._waits if uid not in self._answered)]
        return tuple(
            ExtenderWaitSnapshot(
                queued=wait.queued.snapshot(),
                number=wait.number,
                nodes=wait.nodes,
                deadline=wait.deadline,
                answer=wait.answer,
                latest=wait.latest,
                plugin=wait.plugin,
                refused=wait.refused,
            )
            for wait in map(self._waits.__getitem__, order)
        )

    def restore(self, number: int, saved: tuple[ExtenderWaitSnapshot, ...], labels: ShapeNumbers) -> None:
        """Restore waits; *number* is that of the last one."""
        self.number = number
        waits = [
            ExtenderWait(
                restored(one.queued, labels),
                one.number,
                one.nodes,
                one.deadline,
                one.answer,
                one.latest,
                one.plugin,
                one.refused,
            )
            for one in saved
        ]
        self._answered = {wait.queued.pod.uid: None for wait in waits if wait.answer is not None}
        self._waits = {wait.queued.pod.uid: wait for wait in sorted(waits, key=lambda one: one.number)}
