"""
The scheduling queue as data, for recordings.

Numbers of shapes mean something within one process only. A snapshot keeps them as labels: restoring signs each pod again
and gives the label the number that the signature has now. A label that no signature has any more gets a number of its own.
"""

from collections.abc import Mapping

import msgspec

from lamina.model.pod import Pod, PodUid
from lamina.scheduling.contract.status import Status
from lamina.scheduling.runtime.profile import Profile

Times = tuple[tuple[PodUid, tuple[float, int]], ...]
"""Pods by a time and a serial number, in the order in which a heap was given them."""
Label = int | str
"""What tells a group from others of its profile: the number of a shape, or the pod that is alone in it."""


class QueuedPodSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One pod and its history in the queue."""

    pod: Pod
    profile: str
    shape: int | None
    signed: bool
    """Whether *shape* is what the pod's signature leads to at the time of the snapshot."""
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
    """Pods that wait together."""

    profile: str
    label: Label
    number: int
    refused_by: tuple[str, ...]
    pods: tuple[PodUid, ...]


class QueueSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The whole queue."""

    now: float
    serial: int
    sorted_at: float
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
    """Profile and label of groups that a plugin wants tried at a time."""


class ShapeNumbers:
    """Translates the numbers of shapes in a snapshot into those of this process."""

    def __init__(self, profiles: Mapping[str, Profile]) -> None:
        """Nothing is translated yet."""
        self.profiles = profiles
        self._numbers: dict[tuple[str, int], int] = {}

    def learn(self, queued: QueuedPodSnapshot) -> None:
        """Sign a pod whose label still was that of its signature."""
        if queued.shape is not None and queued.signed:
            number = self.profiles[queued.profile].shape(queued.pod)
            if number is not None:
                self._numbers[queued.profile, queued.shape] = number

    def number(self, profile: str, label: int) -> int:
        """Return the number that a label stands for."""
        key = (profile, label)
        if key not in self._numbers:
            self._numbers[key] = self.profiles[profile].new_shape()
        return self._numbers[key]
