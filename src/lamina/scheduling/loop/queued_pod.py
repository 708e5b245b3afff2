"""Queued pods and the groups in which they wait."""

import math
from collections.abc import Callable, Hashable
from numbers import Real
from typing import Final, TypeAlias, TypeGuard

import msgspec

from lamina.model.pod import Pod, PodUid
from lamina.scheduling.contract.status import Status
from lamina.scheduling.loop.lazy_heap import LazyHeap
from lamina.scheduling.loop.queue_snapshot import Label, QueuedGroupSnapshot, QueuedPodSnapshot, ShapeNumbers
from lamina.scheduling.runtime.profile import Profile

GroupKey: TypeAlias = tuple[Hashable, Profile]
Place: TypeAlias = tuple[float, ...]
"""Result of `sort_key`; smaller keys come first."""
Turn: TypeAlias = tuple[Place, int]
"""Order of popped pods: sort key, then serial number."""
FIRST_TURN: Final[Turn] = ((), 0)
"""Before all others."""
LAST_TURN: Final[Turn] = ((math.inf,), 0)
"""The turn of pods that are popped early: after all active pods."""
# int and float first: the check against the abstract class Real would dominate the cost of a push.
NUMBERS: Final = (int, float, Real)
UNSIGNED: Final = -1
"""An edition that no profile has."""


def is_place(key: object) -> TypeGuard[tuple[float, ...]]:
    """Return whether a plugin's sort key is a tuple of numbers."""
    if not isinstance(key, tuple):
        return False
    # A loop instead of all(): every push runs it, and a generator costs more than its checks.
    for part in key:  # noqa: SIM110
        if not isinstance(part, NUMBERS):
            return False
    return True


class QueuedPodInfo(msgspec.Struct, eq=False):
    """A queued pod and its history in the queue. Times are in seconds."""

    pod: Pod
    profile: Profile
    shape: int | None
    arrived_at: float
    queued_at: float
    serial: int
    attempts: int = 0
    refused_by: frozenset[str] = frozenset()
    backoff_until: float = 0.0
    broke: bool = False
    """Whether the last attempt failed with an error instead of a refusal; the pod then waits out its back-off."""
    place: str = "active"
    group: GroupKey | None = None
    """The group it waits in, or from which it was woken for an attempt that is still due."""
    told: str = ""
    """The last reported message, so that it is not reported twice."""
    edition: int = 0
    """The profile's edition when the pod was signed."""
    unsorted: Status | None = None
    """Set if `sort_key` failed for the pod; its next attempt fails with this status."""
    gated_as: int = 0
    """Serial number that orders gated pods and groups; valid while the pod is gated."""

    def sign(self) -> None:
        """Compute the pod's shape."""
        self.edition = self.profile.edition
        self.shape = self.profile.shape(self.pod)

    def snapshot(self) -> QueuedPodSnapshot:
        """Return the content as data."""
        return QueuedPodSnapshot(
            pod=self.pod,
            profile=self.profile.name,
            shape=self.shape,
            signed=self.profile.is_shape(self.pod, self.shape, self.edition),
            arrived_at=self.arrived_at,
            queued_at=self.queued_at,
            serial=self.serial,
            attempts=self.attempts,
            refused_by=tuple(sorted(self.refused_by)),
            backoff_until=self.backoff_until,
            broke=self.broke,
            place=self.place,
            group=None if self.group is None else label_of(self.group),
            told=self.told,
            unsorted=self.unsorted,
            gated_as=self.gated_as,
        )


def restored(saved: QueuedPodSnapshot, labels: ShapeNumbers) -> QueuedPodInfo:
    """Restore a queued pod; *labels* must have learned all pods of the snapshot."""
    profile = labels.profiles[saved.profile]
    return QueuedPodInfo(
        pod=saved.pod,
        profile=profile,
        shape=None if saved.shape is None else labels.number(profile.name, saved.shape),
        arrived_at=saved.arrived_at,
        queued_at=saved.queued_at,
        serial=saved.serial,
        attempts=saved.attempts,
        refused_by=frozenset(saved.refused_by),
        backoff_until=saved.backoff_until,
        broke=saved.broke,
        place=saved.place,
        group=None if saved.group is None else key_of(profile.name, saved.group, labels),
        told=saved.told,
        edition=profile.edition if saved.signed else UNSIGNED,
        unsorted=saved.unsorted,
        gated_as=saved.gated_as,
    )


def label_of(key: GroupKey) -> Label:
    """Return the label of a group within its profile."""
    shape, _ = key
    return shape if isinstance(shape, int) else str(shape)


def key_of(profile: str, label: Label, labels: ShapeNumbers) -> GroupKey:
    """Return the key of a group from its label."""
    return (labels.number(profile, label) if isinstance(label, int) else label, labels.profiles[profile])


class QueuedGroup:
    """
    Pods of one shape that were refused for the same reasons; determines which of them is tried next.

    Pods that were not tried at the current time come first, ordered by queueSort and then by serial number. The order
    is computed when a pod of the group is first woken, and updated from then on.
    """

    __slots__ = ("_joined", "_rested", "_sorted_at", "_tried", "_tried_at", "key", "number", "pods", "refused_by")

    def __init__(self, key: GroupKey, number: int) -> None:
        """Start empty; *number* increases from group to group."""
        self.key = key
        self.number = number
        self.refused_by: frozenset[str] | None = None
        """
        Plugins that refused the last pod; valid for all, since they have the same shape.

        None before the first pod.
        """
        self.pods: dict[PodUid, QueuedPodInfo] = {}
        self._joined: dict[PodUid, QueuedPodInfo] = {}
        """Pods that are in neither heap yet."""
        self._rested: LazyHeap[PodUid, tuple[Place, int]] = LazyHeap()
        self._tried: LazyHeap[PodUid, tuple[Place, int]] = LazyHeap()
        """Pods that were tried at `_tried_at`."""
        self._tried_at = 0.0
        self._sorted_at = 0.0

    def snapshot(self) -> QueuedGroupSnapshot:
        """Return the content as data. The order of pods is not included; it is computed again."""
        refused_by = tuple(sorted(self.refused_by or ()))
        return QueuedGroupSnapshot(self.key[1].name, label_of(self.key), self.number, refused_by, tuple(self.pods))

    @property
    def sample(self) -> QueuedPodInfo:
        """Any pod of the group."""
        return next(iter(self.pods.values()))

    def add(self, queued: QueuedPodInfo) -> None:
        """Add a pod."""
        self.pods[queued.pod.uid] = self._joined[queued.pod.uid] = queued

    def remove(self, uid: PodUid) -> None:
        """Remove a pod."""
        del self.pods[uid]
        if self._joined.pop(uid, None) is None:
            self._rested.discard(uid)
            self._tried.discard(uid)

    def first(self, now: float, place: Callable[[QueuedPodInfo], Place], *, time_ordered: bool) -> QueuedPodInfo:
        """
        Return the pod to try next.

        *place* returns a pod's sort key; if *time_ordered*, it is called again whenever time has passed.
        """
        if len(self.pods) == 1:
            return self.sample

        def order(uid: PodUid) -> tuple[Place, int]:
            queued = self.pods[uid]
            return place(queued), queued.serial

        if self._tried_at != now:
            self._tried_at = now
            for uid in tuple(self._tried):
                self._tried.discard(uid)
                self._rested.put(uid, order(uid))
        if time_ordered and self._sorted_at != now:
            self._sorted_at = now
            self._rested.reorder(order)
        for uid, queued in self._joined.items():
            (self._tried if queued.queued_at == now else self._rested).put(uid, order(uid))
        self._joined.clear()
        first = self._rested.first() or self._tried.first()
        assert first is not None, "a group has at least one pod"
        return self.pods[first[1]]
