"""
Placed pods as arrays: row, priority, start and kind of every pod, in the order in which preemption compares them.

Preemption compares all pods of thousands of nodes. A pod is therefore read when it is placed, into one slot of a table.
The sorted arrays are made from the table on request; afterwards only pods on changed rows are sorted again.

    pod ──(placed)──> slot of the table ──(on request)──> entries: row after row, the most important pod first

Pods that count alike have one *kind*: the same requests, labels, owner and so on (`kind_of`). What a budget, a selector or
an amount says about a pod is computed once for its kind. The pod cache writes, if a plugin asked for the arrays.
"""

import math
from collections.abc import Hashable
from typing import Final

import msgspec
import numpy as np

from lamina.model.pod import Pod
from lamina.model.pod_volumes import exclusive_disks
from lamina.model.resources import PODS
from lamina.rows.growable import grown
from lamina.scheduling.state.columns import LARGEST, LINES, WELL_KNOWN, Bools, Ints

ROW, PRIORITY, START, KIND, SERIAL = range(5)
"""Lines of the table."""
NOWHERE: Final = -1
"""Row of a free slot, and of a pod whose node is not known."""
FIRST_SLOTS: Final = 64
UNKNOWN_START: Final = 2**62
"""Start of a pod that has not started: later than all others."""
PARTS: Final = 1_000_000
"""Starts are counted in microseconds."""

Labels = tuple[str, tuple[tuple[str, str], ...]]
"""Namespace and labels of a pod."""


def started(pod: Pod) -> float:
    """
    Return when a pod started, in seconds; infinity if that is unknown.

    The time of its binding stands for the start of a pod that still pulls its images.
    """
    return pod.started_at or pod.bound_at or math.inf


def importance(pod: Pod) -> tuple[float, float]:
    """Return upstream's sort key of victims: more important pods have smaller keys."""
    return -pod.priority, started(pod)


def labels_of(pod: Pod) -> Labels:
    """Return what budgets read of a pod."""
    return pod.namespace, tuple(sorted(pod.labels.items()))


def kind_of(pod: Pod) -> Hashable:
    """Return the properties that the pods of one kind share."""
    return (
        pod.namespace,
        pod.requests,
        tuple(pod.labels.items()),
        pod.owner,
        pod.deleting,
        pod.repels,
        pod.host_ports,
        exclusive_disks(pod.volumes),
    )


class PlacedArrays(msgspec.Struct, frozen=True):
    """Pods, one entry each: row after row, and within a row the most important first."""

    row: Ints
    slot: Ints
    """For `PlacedPods.pod`."""
    priority: Ints
    start: Ints
    kind: Ints

    def only(self, flags: Bools) -> "PlacedArrays":
        """Return the entries where a flag is set."""
        places = np.flatnonzero(flags)
        return PlacedArrays(*[getattr(self, name).take(places) for name in self.__struct_fields__])


class PodKinds:
    """Numbers of the kinds of pods. A number is used again when its last pod has left."""

    def __init__(self) -> None:
        """Start without kinds."""
        self.pods: list[Pod] = []
        """By number: a pod of that kind."""
        self.labels: list[Labels] = []
        self._amounts: Ints = np.zeros((len(WELL_KNOWN), FIRST_SLOTS), dtype=np.int64)
        self._numbers: dict[Hashable, int] = {}
        self._uses: list[int] = []
        self._spare: list[int] = []

    def take(self, pod: Pod) -> int:
        """Return the number of a pod's kind, which then has one more pod."""
        key = kind_of(pod)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = self._new(pod)
        self._uses[number] += 1
        return number

    def leave(self, number: int) -> None:
        """Count one pod less of a kind."""
        self._uses[number] -= 1
        if not self._uses[number]:
            del self._numbers[kind_of(self.pods[number])]
            self._spare.append(number)

    def amounts(self, resource: str) -> Ints:
        """Return the amount of a resource that a pod requests, by number."""
        line = LINES.get(resource)
        if line is not None:
            return self._amounts[line, : len(self.pods)]
        return np.array([min(dict(pod.requests).get(resource, 0), LARGEST) for pod in self.pods], dtype=np.int64)

    def _new(self, pod: Pod) -> int:
        if self._spare:
            number = self._spare.pop()
            self.pods[number], self.labels[number] = pod, labels_of(pod)
        else:
            number = len(self.pods)
            self.pods.append(pod)
            self.labels.append(labels_of(pod))
            self._uses.append(0)
            self._amounts = grown(self._amounts, number + 1)
        asked = dict(pod.requests)
        self._amounts[:, number] = [min(asked.get(name, 0), LARGEST) for name in WELL_KNOWN]
        self._amounts[LINES[PODS], number] = 1
        return number


class PlacedPods:
    """The table, and the sorted arrays."""

    def __init__(self) -> None:
        """Start without pods."""
        self.kinds = PodKinds()
        self._pods: list[Pod | None] = []
        """By slot; None if it is free."""
        self._table: Ints = np.full((5, FIRST_SLOTS), NOWHERE, dtype=np.int64)
        self._spare: list[int] = []
        self._serial = 0
        self._entries = PlacedArrays(*[np.zeros(0, dtype=np.int64)] * 5)
        self._changed: set[int] = set()
        """Rows whose entries are outdated."""

    def pod(self, slot: int) -> Pod:
        """Return the pod of a slot in its last seen state."""
        found = self._pods[slot]
        assert found is not None, "entries are of pods that are there"
        return found

    def add(self, pod: Pod, row: int) -> int:
        """
        Add a pod on a row, which is `NOWHERE` if its node is not known; return its slot.

        Equally important pods of a row are in the order in which they were added.
        """
        if self._spare:
            slot = self._spare.pop()
        else:
            slot = len(self._pods)
            self._pods.append(None)
            self._table = grown(self._table, slot + 1, NOWHERE)
        self._serial += 1
        self._table[SERIAL, slot] = self._serial
        self._table[ROW, slot] = row
        self.change(slot, pod)
        return slot

    def change(self, slot: int, pod: Pod) -> None:
        """Read the pod of a slot again."""
        table, known = self._table, self._pods[slot]
        self._pods[slot] = pod
        if known is not None and _alike(known, pod):
            return
        before = table.item(KIND, slot)
        # The API allows 32 bits; a number that does not fit into the table must not stop the loop.
        table[PRIORITY, slot] = min(max(pod.priority, -LARGEST), LARGEST)
        table[START, slot] = microseconds(started(pod))
        table[KIND, slot] = self.kinds.take(pod)
        if known is not None:
            self.kinds.leave(before)
        self._changed.add(table.item(ROW, slot))

    def move(self, slot: int, row: int) -> None:
        """Set the row of a pod whose node arrived (or left: `NOWHERE`)."""
        self._changed.update((self._table.item(ROW, slot), row))
        self._table[ROW, slot] = row

    def remove(self, slot: int) -> None:
        """Remove the pod of a slot."""
        self.kinds.leave(self._table.item(KIND, slot))
        self.move(slot, NOWHERE)
        self._pods[slot] = None
        self._spare.append(slot)

    def entries(self) -> PlacedArrays:
        """Return all pods that are on a row."""
        self._changed.discard(NOWHERE)
        if self._changed:
            self._entries = self._sorted()
            self._changed.clear()
        return self._entries

    def _sorted(self) -> PlacedArrays:
        rows = self._table[ROW]
        # The last element stands for NOWHERE, and stays False.
        changed = np.zeros(max(self._changed) + 2, dtype=np.bool_)
        changed = grown(changed, int(rows.max()) + 2)
        changed[list(self._changed)] = True
        slots = np.flatnonzero(changed[rows])
        _, priority, start, _, serial = self._table.take(slots, axis=1)
        slots = slots[np.lexsort((serial, start, -priority))]
        kept = self._entries.slot[~changed[self._entries.row]]
        # Two parts, one sorted by row and one by importance: a stable sort by row keeps the order within rows.
        order = np.concatenate([kept, slots])
        order = order[np.argsort(rows[order], kind="stable")]
        row, priority, start, kind, _ = self._table.take(order, axis=1)
        return PlacedArrays(row, order, priority, start, kind)


def microseconds(at: float) -> int:
    """Return a start as the arrays have it."""
    return UNKNOWN_START if at == math.inf else int(at * PARTS)


def _alike(before: Pod, pod: Pod) -> bool:
    """Return whether both versions of a pod have the same entry."""
    return importance(before) == importance(pod) and kind_of(before) == kind_of(pod)
