"""A pod that waits, and the group it waits in."""

from collections.abc import Callable, Hashable
from typing import Final, TypeAlias

import msgspec

from lamina.model.pod import Pod, PodUid
from lamina.scheduling.contract.status import Status
from lamina.scheduling.loop.lazy_heap import LazyHeap
from lamina.scheduling.loop.queue_snapshot import Label, QueuedGroupSnapshot, QueuedPodSnapshot, ShapeNumbers
from lamina.scheduling.runtime.profile import Profile

GroupKey: TypeAlias = tuple[Hashable, Profile]
Place: TypeAlias = tuple[float, ...]
"""What a queueSort plugin answers: smaller is sooner."""
UNSIGNED: Final = -1
"""No profile has this edition."""


class QueuedPodInfo(msgspec.Struct, eq=False):
    """A pod and its history in the queue."""

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
    """The last attempt failed rather than was refused: the back-off is always waited out."""
    place: str = "active"
    group: GroupKey | None = None
    """The group it waits in, or was woken from and has not been tried since."""
    told: str = ""
    """What the owner was told last, so that the same news is not told twice."""
    edition: int = 0
    """The profile's, when the pod was signed."""
    unsorted: Status | None = None
    """Why it has no place among the others: the queueSort plugin could not say. Costs the pod the attempt."""
    gated_as: int = 0
    """While it is gated: how many groups and gated pods the queue had seen before."""

    def sign(self) -> None:
        """Work out the pod's shape, as it is now."""
        self.edition = self.profile.edition
        self.shape = self.profile.shape(self.pod)

    def snapshot(self) -> QueuedPodSnapshot:
        """Return everything that is known, as data."""
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
    """Make a pod of the queue again; *labels* knows all pods of the snapshot."""
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
    """Return what tells a group from others of its profile."""
    shape, _ = key
    return shape if isinstance(shape, int) else str(shape)


def key_of(profile: str, label: Label, labels: ShapeNumbers) -> GroupKey:
    """Return the key of a group again."""
    return (labels.number(profile, label) if isinstance(label, int) else label, labels.profiles[profile])


class QueuedGroup:
    """
    Pods of one shape that are refused for the same reasons, and which of them is tried next.

    Pods that were not tried in this very instant come first, then the queueSort order decides, then the serial.
    The order is worked out when a pod of the group is first woken, and kept up to date from then on.
    """

    __slots__ = ("_joined", "_rested", "_sorted_at", "_tried", "_tried_at", "key", "number", "pods", "refused_by")

    def __init__(self, key: GroupKey, number: int) -> None:
        """Start empty; *number* grows from group to group."""
        self.key = key
        self.number = number
        self.refused_by: frozenset[str] | None = None
        """What the last pod was refused by; holds for all, since they are alike. None before the first pod."""
        self.pods: dict[PodUid, QueuedPodInfo] = {}
        self._joined: dict[PodUid, QueuedPodInfo] = {}
        """Pods that are in neither heap yet."""
        self._rested: LazyHeap[PodUid, tuple[Place, int]] = LazyHeap()
        self._tried: LazyHeap[PodUid, tuple[Place, int]] = LazyHeap()
        """Pods that were tried at `_tried_at`."""
        self._tried_at = 0.0
        self._sorted_at = 0.0

    def snapshot(self) -> QueuedGroupSnapshot:
        """Return everything that is known, as data; the order of its pods is worked out anew when one is woken."""
        refused_by = tuple(sorted(self.refused_by or ()))
        return QueuedGroupSnapshot(self.key[1].name, label_of(self.key), self.number, refused_by, tuple(self.pods))

    @property
    def sample(self) -> QueuedPodInfo:
        """A pod of the group."""
        return next(iter(self.pods.values()))

    def add(self, queued: QueuedPodInfo) -> None:
        """Take a pod in."""
        self.pods[queued.pod.uid] = self._joined[queued.pod.uid] = queued

    def remove(self, uid: PodUid) -> None:
        """Let a pod out."""
        del self.pods[uid]
        if self._joined.pop(uid, None) is None:
            self._rested.discard(uid)
            self._tried.discard(uid)

    def first(self, now: float, place: Callable[[QueuedPodInfo], Place], *, time_ordered: bool) -> QueuedPodInfo:
        """Return the pod to try next; *place* asks the queueSort plugin, again at each time if it is *time_ordered*."""
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
            self._rested.sort_anew(order)
        for uid, queued in self._joined.items():
            (self._tried if queued.queued_at == now else self._rested).put(uid, order(uid))
        self._joined.clear()
        first = self._rested.first() or self._tried.first()
        assert first is not None, "a group has at least one pod"
        return self.pods[first[1]]
