"""
Snapshot of the scheduling queue, for recordings.

Shape numbers are valid within one process only. A snapshot stores them as labels. Restoring signs each pod again and
maps its label to the current number of the signature. A label without a signature gets a new number.
"""

from collections.abc import Mapping

import msgspec

from lamina.model.pod import Pod, PodUid
from lamina.scheduling.contract.status import Status
from lamina.scheduling.runtime.profile import Profile

Times = tuple[tuple[PodUid, tuple[float, int]], ...]
"""Pods with a time and a serial number, in the order of insertion into a heap."""
Label = int | str
"""Identifies a group within its profile: the number of a shape, or the uid of a pod that is alone in its group."""


class QueuedPodSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A queued pod and its history in the queue."""

    pod: Pod
    profile: str
    shape: int | None
    signed: bool
    """Whether *shape* was the current shape of the pod's signature when the snapshot was taken."""
    arrived_at: float
    queued_at: float
    serial: int
    attempts: int
    refused_by: tuple[str, ...]
    backoff_until: float
    broke: bool
    place: str
    group: Label | None
    told: str
    unsorted: Status | None
    gated_as: int


class QueuedGroupSnapshot(msgspec.Struct, frozen=True):
    """A group of pods that wait together."""

    profile: str
    label: Label
    number: int
    refused_by: tuple[str, ...]
    pods: tuple[PodUid, ...]


class QueueSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The complete queue."""

    now: float
    serial: int
    time_ordered: bool
    pods: tuple[QueuedPodSnapshot, ...]
    groups: tuple[QueuedGroupSnapshot, ...]
    active: tuple[tuple[PodUid, tuple[float, ...]], ...]
    resting: Times
    early: tuple[tuple[PodUid, tuple[float, tuple[float, ...], int]], ...]
    just_refused: tuple[PodUid, ...]
    flush: Times
    gate_timers: Times
    group_timers: tuple[tuple[str, Label, tuple[float, int]], ...]
    """Profile and label of groups with a retry time, with that time."""


class ShapeNumbers:
    """Maps shape numbers of a snapshot to those of this process."""

    def __init__(self, profiles: Mapping[str, Profile]) -> None:
        """Start without mappings."""
        self.profiles = profiles
        self._numbers: dict[tuple[str, int], int] = {}

    def learn(self, queued: QueuedPodSnapshot) -> None:
        """Map the label of a pod whose shape was current."""
        if queued.shape is not None and queued.signed:
            number = self.profiles[queued.profile].shape(queued.pod)
            if number is not None:
                self._numbers[queued.profile, queued.shape] = number

    def number(self, profile: str, label: int) -> int:
        """Return the number for a label."""
        key = (profile, label)
        if key not in self._numbers:
            self._numbers[key] = self.profiles[profile].new_shape()
        return self._numbers[key]
