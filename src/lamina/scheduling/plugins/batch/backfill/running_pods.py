"""
Node fact of Backfill: the placed pods that have a walltime, and when they will have ended.

Pods without a walltime never end as far as a plan is concerned, so they are not kept. A pod whose start is not known
yet started when the plugin placed it, or else starts now.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
import numpy as np

from lamina.model.node import Node
from lamina.model.pod import Pod, PodUid
from lamina.model.resources import PODS, Amounts
from lamina.model.walltime import walltime_of
from lamina.rows.growable import grown
from lamina.scheduling.state.columns import LARGEST, Floats, Ints
from lamina.scheduling.state.node_facts import Placements
from lamina.scheduling.state.placed_pods import started

FREE: Final = -1
"""Row of a slot without a pod."""
FIRST_SLOTS: Final = 64
DECIMALS: Final = 6
"""Ends are planned in microseconds, so that ends of one time are one however they were computed."""


class PodEnds(msgspec.Struct, frozen=True):
    """Ends of running pods by their walltimes, in order of time and after now. Pods that are overdue end next."""

    at: Floats
    rows: Ints
    amounts: Ints
    """What each pod frees: a line for each resource, a column for each pod."""


class ClusterRoom(msgspec.Struct, frozen=True):
    """What is free now, and what running pods will free."""

    now: float
    room: Ints
    """Free amounts: a line for each resource, a column for each node. A decision takes from it what it uses."""
    ends: PodEnds


class RunningPodEnds:
    """Placed pods with a walltime, by slot."""

    __slots__ = ("_begun", "_kinds", "_numbers", "_slots", "_spare", "_table", "_times")

    def __init__(self) -> None:
        """Start without pods."""
        self._slots: dict[PodUid, int] = {}
        self._spare: list[int] = []
        self._table: Ints = np.full((2, FIRST_SLOTS), FREE, dtype=np.int64)
        """Row and kind of each pod."""
        self._times: Floats = np.zeros((2, FIRST_SLOTS))
        """Start (infinity: unknown) and walltime of each pod."""
        self._begun: dict[PodUid, float] = {}
        """When pods were placed whose start is not known yet."""
        self._kinds: list[Amounts] = []
        self._numbers: dict[Amounts, int] = {}

    @property
    def name(self) -> str:
        """Identifies the fact."""
        return "running-pods"

    def counts(self, pod: Pod) -> tuple[float, float] | None:
        """Return walltime and start of a pod that has a walltime."""
        walltime = walltime_of(pod)
        return None if walltime == np.inf else (walltime, started(pod))

    def put(self, row: int, node: Node | None) -> bool:
        """Return False: only pods matter."""
        return False

    def add(self, row: int, pod: Pod) -> bool:
        """Count a pod on a row."""
        slot = self._spare.pop() if self._spare else len(self._slots)
        if slot >= self._table.shape[1]:
            self._table = grown(self._table, slot + 1, FREE)
            self._times = grown(self._times, slot + 1)
        self._slots[pod.uid] = slot
        self._table[:, slot] = row, self._kind(pod.requests)
        start = started(pod)
        if start < np.inf:
            self._begun.pop(pod.uid, None)
        else:
            start = self._begun.get(pod.uid, start)
        self._times[:, slot] = start, walltime_of(pod)
        return True

    def begin(self, uids: Iterable[PodUid], now: float) -> None:
        """Note that pods are placed now."""
        known = {uid: at for uid, at in self._begun.items() if uid in self._slots}
        self._begun = known | dict.fromkeys(uids, now)

    def remove(self, row: int, pod: Pod) -> bool:
        """Stop counting a pod."""
        slot = self._slots.pop(pod.uid)
        self._table[0, slot] = FREE
        self._spare.append(slot)
        if not self._slots:
            self._spare, self._kinds, self._numbers = [], [], {}
            self._table[0] = FREE
        return True

    def as_if(self, gone: Placements, there: Placements) -> "RunningPodEnds":
        """Return the fact unchanged: no filter reads it."""
        return self

    def ends(self, resources: Sequence[str], now: float) -> PodEnds:
        """Return the ends of all pods, and what they free of these resources."""
        slots = np.flatnonzero(self._table[0] != FREE)
        rows, kinds = self._table.take(slots, axis=1)
        starts, walltimes = self._times.take(slots, axis=1)
        at = np.round(np.where(np.isfinite(starts), starts, now) + walltimes, DECIMALS)
        # The next number after *now*, because what is free now does not include these pods.
        at = np.maximum(at, np.nextafter(now, np.inf))
        order = np.lexsort((slots, at))
        asked = [dict(kind) for kind in self._kinds]
        amounts = np.array(
            [[1 if name == PODS else min(kind.get(name, 0), LARGEST) for kind in asked] for name in resources],
            dtype=np.int64,
        ).reshape(len(resources), len(asked))
        return PodEnds(at[order], rows[order], amounts.take(kinds[order], axis=1))

    def _kind(self, requests: Amounts) -> int:
        number = self._numbers.setdefault(requests, len(self._kinds))
        if number == len(self._kinds):
            self._kinds.append(requests)
            if number > 2 * len(self._slots) + FIRST_SLOTS:
                return self._renumber(requests)
        return number

    def _renumber(self, requests: Amounts) -> int:
        """Forget kinds of pods that have left; return the number of *requests*."""
        slots = np.flatnonzero(self._table[0] != FREE)
        used, numbers = np.unique(self._table[1, slots], return_inverse=True)
        self._table[1, slots] = numbers
        self._kinds = [*(self._kinds[kind] for kind in used.tolist()), requests]
        self._numbers = {kind: number for number, kind in enumerate(self._kinds)}
        return len(self._kinds) - 1


def add_amounts(room: Ints, rows: Ints, amounts: Ints) -> None:
    """Add to the room on *rows*, which may repeat: *amounts* has a column for each of them, or one for all."""
    for line, more in zip(room, amounts, strict=True):
        np.add.at(line, rows, more)
