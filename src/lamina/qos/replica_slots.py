"""
The replicas of a controller as numbered slots, each held by one pod after another.

A new pod takes the first free slot; if all are held, there is one more. So scaling up, a surge of a rolling update and
failed pods that still exist never lack a slot. When a slot below the wanted number becomes free while a pod holds a
slot beyond it, that pod moves down, and its slot's history is added to the one that it takes over. Free slots beyond
the wanted number are dropped with their history. So slots do not accumulate.
"""

import heapq
from collections.abc import Iterator

from lamina.model.pod import PodUid
from lamina.qos.time_sums import TimeSums


class ReplicaSlot:
    """One slot; only independent replicas have sums of their own."""

    __slots__ = ("dropped", "holder", "incarnations", "index", "members", "row", "sums")

    def __init__(self, index: int, sums: TimeSums | None) -> None:
        """Start free."""
        self.index = index
        self.holder: PodUid | None = None
        self.sums = sums
        self.incarnations = 0
        self.members: set[PodUid] = set()
        """Existing pods whose times the sums contain: the holder, and earlier holders."""
        self.row = -1
        """Row in the order table; -1: none."""
        self.dropped = False


class ReplicaSlots:
    """The slots of one controller."""

    def __init__(self) -> None:
        """Start without slots."""
        self._slots: list[ReplicaSlot] = []
        self._free: list[int] = []
        """Heap of indices that may be free; outdated entries are skipped."""

    def __len__(self) -> int:
        """Return the number of slots, free ones included."""
        return len(self._slots)

    def __iter__(self) -> Iterator[ReplicaSlot]:
        """Return all slots in order."""
        return iter(self._slots)

    def __getitem__(self, index: int) -> ReplicaSlot:
        """Return a slot."""
        return self._slots[index]

    def first_free(self) -> ReplicaSlot | None:
        """Return the free slot with the lowest index, or None."""
        while self._free:
            index = self._free[0]
            if index < len(self._slots) and self._slots[index].holder is None:
                return self._slots[index]
            heapq.heappop(self._free)
        return None

    def add(self, sums: TimeSums | None) -> ReplicaSlot:
        """Add a free slot at the end."""
        slot = ReplicaSlot(len(self._slots), sums)
        self._slots.append(slot)
        heapq.heappush(self._free, slot.index)
        return slot

    def release(self, slot: ReplicaSlot, wanted: int | None) -> tuple[list[ReplicaSlot], ReplicaSlot | None]:
        """
        Free a slot, and drop slots that are not needed; *wanted* is the number of replicas, None if unknown.

        Return the dropped slots, and the slot that took the place of the freed one, if any.
        """
        slot.holder = None
        if wanted is not None and slot.index < wanted < len(self._slots):
            last = next((one for one in reversed(self._slots[wanted:]) if one.holder is not None), None)
            if last is not None:
                return self._replace(slot, last, wanted), last
        heapq.heappush(self._free, slot.index)
        return self.trim(wanted), None

    def trim(self, wanted: int | None) -> list[ReplicaSlot]:
        """Drop free slots at the end, beyond the wanted number; return them."""
        dropped = []
        while wanted is not None and len(self._slots) > wanted and self._slots[-1].holder is None:
            dropped.append(self._slots.pop())
            dropped[-1].dropped = True
        return dropped

    def _replace(self, freed: ReplicaSlot, mover: ReplicaSlot, wanted: int) -> list[ReplicaSlot]:
        """Let *mover* take the index, the history and the members of a freed slot."""
        self._slots[mover.index] = ReplicaSlot(mover.index, None)
        heapq.heappush(self._free, mover.index)
        mover.index = freed.index
        self._slots[freed.index] = mover
        mover.incarnations += freed.incarnations
        mover.members |= freed.members
        if mover.sums is not None and freed.sums is not None:
            mover.sums.merge(freed.sums)
        freed.dropped = True
        return [freed, *self.trim(wanted)]

    def restore(self, slots: list[ReplicaSlot]) -> None:
        """Put slots into an empty object."""
        self._slots = slots
        self._free = [slot.index for slot in slots if slot.holder is None]
