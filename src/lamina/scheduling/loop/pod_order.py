"""
The order of waiting pods: their sort keys, and how long these hold.

Keys that change with time hold at one *moment*: a time, and an edition of the facts behind the keys. The queue
sorts pods again before it takes the first one at another moment, and not before: pods that come and go in between cost
nothing. If pods come in groups with a common key, only one key of each group is computed.
"""

import math
from numbers import Real
from typing import Final, TypeGuard

from lamina.scheduling.contract.grouped_sort import GroupedSortPlugin
from lamina.scheduling.contract.points import QueueSortPlugin
from lamina.scheduling.contract.status import failed, raised
from lamina.scheduling.loop.grouped_heap import GroupedHeap
from lamina.scheduling.loop.lazy_heap import LazyHeap
from lamina.scheduling.loop.queued_pod import Moment, Place, PodHeap, QueuedPodInfo

FIRST: Final[Place] = (-math.inf,)
"""Sorts before all other keys."""
# int and float first: the check against the abstract class Real would dominate the cost of a push.
NUMBERS: Final = (int, float, Real)


class PodOrder:
    """Sort keys by the queueSort plugin. All profiles have the same one."""

    def __init__(self) -> None:
        """Start without a plugin; then no key changes with time."""
        self.time_ordered = False
        self._groups: GroupedSortPlugin | None = None

    def learn(self, sort: QueueSortPlugin) -> bool:
        """Take the plugin of a profile; return whether it orders groups and was not known yet."""
        self.time_ordered = self.time_ordered or sort.changes_with_time
        if self._groups is not None or not isinstance(sort, GroupedSortPlugin):
            return False
        self._groups = sort
        return True

    def moment(self, now: float) -> Moment | None:
        """Return the moment at which keys hold; None if they always do."""
        if not self.time_ordered:
            return None
        return (now, 0 if self._groups is None else self._groups.order_edition)

    def heap(self) -> PodHeap:
        """Return an empty heap of pods by their keys."""
        sort = self._groups
        return LazyHeap() if sort is None else GroupedHeap(sort.sort_group, sort.group_parts)


def sort_key(queued: QueuedPodInfo, now: float) -> Place:
    """
    Return a pod's sort key.

    If `sort_key` fails, the pod comes first, so that its attempt fails without delaying others.
    """
    sort = queued.profile.queue_sort
    queued.unsorted = None
    try:
        key: object = sort.sort_key(queued, now)
        if _is_place(key):
            return key
        queued.unsorted = failed(f"sort_key returned {type(key).__name__}, not a tuple of numbers").of(sort.name)
    except Exception as error:  # noqa: BLE001 - the pod's event reports whatever a plugin raises
        queued.unsorted = raised(error).of(sort.name)
    return FIRST


def _is_place(key: object) -> TypeGuard[tuple[float, ...]]:
    if not isinstance(key, tuple):
        return False
    # A loop instead of all(): every push runs it, and a generator costs more than its checks.
    for part in key:  # noqa: SIM110
        if not isinstance(part, NUMBERS):
            return False
    return True
