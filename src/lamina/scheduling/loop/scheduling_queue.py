"""
Scheduling queue: pods that wait for a decision.

             pre_enqueue refuses
    arrives ──────────────────────> gated ──(pod or cluster changes)──┐
       │                                                              │
       └──────────> active <──────────────────────────────────────────┘
                    │    ^  ^
              popped│    │  └─(back-off over, or nothing else to do)── backoff <─┐
                    v    │                                                       │
                 decided ┴─(refused)─> unschedulable ──(a change that helps)─────┘
                    └──(error)────────────────────────────────────────> backoff (always waits it out)

The orders, the back-off (1 s, doubling to 10 s) and the flush after five minutes are kube-scheduler's. So is popping
from the back-off queue when the active queue is empty. Back-offs of refused pods end in windows of one second: a pod
stays in the back-off queue until the second in which its back-off ends is over. Within a window, the queueSort order
decides which pod is popped early. A pod whose attempt ended with an error is never popped early and waits exactly its
back-off.

Refused pods of one shape wait as a group. The queue checks a change once for the whole group and wakes one pod. If
that pod is placed, the next one is woken; if it is refused, the others would be refused too. Room for one pod thus
costs one attempt, however many pods wait. An index finds the groups that a change may help (`retry_index.py`).

A plugin that refused a pod can name a retry time (`RetryTimePlugin`); the queue then wakes one pod of its group.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from lamina.model.pod import Pod, PodUid
from lamina.scheduling.contract.status import raised
from lamina.scheduling.loop.lazy_heap import LazyHeap, take_due
from lamina.scheduling.loop.pod_backoff import WINDOW, PodBackoff, window_of
from lamina.scheduling.loop.pod_order import PodOrder, sort_key
from lamina.scheduling.loop.queue_snapshot import QueueSnapshot, ShapeNumbers
from lamina.scheduling.loop.queued_pod import (
    GroupKey,
    Moment,
    Place,
    PodHeap,
    QueuedGroup,
    QueuedPodInfo,
    key_of,
    label_of,
    restored,
)
from lamina.scheduling.loop.retry_index import RetryIndex
from lamina.scheduling.runtime.profile import Profile
from lamina.scheduling.state.cluster_changes import ClusterChange

__all__ = ["PodBackoff", "QueuedPodInfo", "SchedulingQueue"]

FLUSH_AFTER: Final = 300.0
# Minimum delay in seconds of a retry time: attempts must be apart even without a back-off.
SOONEST_RETRY: Final = 1.0


class SchedulingQueue:
    """The active, back-off and unschedulable queues, and the gated pods."""

    def __init__(self, backoff: PodBackoff) -> None:
        """Start empty, at time 0."""
        self.now = 0.0
        self._backoff_rule = backoff
        self._pods: dict[PodUid, QueuedPodInfo] = {}
        self._order = PodOrder()
        self._active: PodHeap = self._order.heap()
        self._active_sorted: Moment | None = None
        self._early_sorted: Moment | None = None
        self._resting: LazyHeap[PodUid, tuple[float, int]] = LazyHeap()
        """All pods in back-off, by the time of their next check."""
        self._early: LazyHeap[PodUid, tuple[float, Place, int]] = LazyHeap()
        """Pods in back-off that can be popped early: refused before the current time."""
        self._just_refused: dict[PodUid, None] = {}
        """Pods in back-off that were refused at the current time."""
        self._groups: dict[GroupKey, QueuedGroup] = {}
        self._index = RetryIndex()
        self._flush: LazyHeap[PodUid, tuple[float, int]] = LazyHeap()
        self._timers: LazyHeap[GroupKey | PodUid, tuple[float, int]] = LazyHeap()
        """Groups and gated pods with a retry time."""
        self._serial = 0

    def __len__(self) -> int:
        """Return the number of waiting pods."""
        return len(self._pods)

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        """Iterate over the waiting pods in order of arrival."""
        return iter(self._pods.values())

    def get(self, uid: PodUid) -> QueuedPodInfo | None:
        """Return a waiting pod, or None."""
        return self._pods.get(uid)

    def counts(self) -> dict[str, int]:
        """Return the number of pods in each queue."""
        counts = {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 0}
        for queued in self._pods.values():
            counts[queued.place] += 1
        return counts

    @property
    def trying(self) -> bool:
        """Whether a pod is active, in back-off, or has a retry time."""
        return len(self._active) + len(self._resting) + len(self._timers) > 0

    @property
    def retried_at(self) -> float | None:
        """The earliest retry time in seconds that a plugin named, or None."""
        first = self._timers.first()
        return None if first is None else first[0][0]

    # -- additions ---------------------------------------------------------------------------------------------------

    def add(self, pod: Pod, profile: Profile) -> QueuedPodInfo:
        """Add a new pod."""
        self._serial += 1
        self._learn(profile)
        queued = QueuedPodInfo(pod, profile, None, self.now, self.now, self._serial)
        queued.sign()
        self._pods[pod.uid] = queued
        self._admit(queued)
        return queued

    def update(self, pod: Pod) -> None:
        """Update a waiting pod. A refused pod is tried again, since the change may make it fit."""
        queued = self._pods[pod.uid]
        before, queued.pod = queued.pod, pod
        queued.sign()
        if queued.place == "gated":
            self._leave_gate(queued)
            self._admit(queued)
        elif queued.place == "unschedulable" and before != pod:
            self._leave_group(queued)
            self._ready(queued)
        elif queued.place == "active":
            self._push_active(queued)
        elif pod.uid in self._early:
            self._push_early(queued)

    def put_back(
        self,
        queued: QueuedPodInfo,
        refused_by: frozenset[str],
        *,
        broke: bool = False,
        stale: bool = False,
        alone: bool = False,
        beside: str = "",
    ) -> None:
        """
        Put a pod back after an attempt that did not place it.

        *broke*: the attempt ended with an error, not a refusal. *stale*: the cluster changed after the decision, so the
        pod must not wait for another change. *alone*: the result does not apply to other pods of its shape. *beside*: it
        waits with the pods that were put back with the same name.
        """
        queued.refused_by = refused_by
        queued.broke = broke
        queued.queued_at = self.now
        queued.backoff_until = self.now + self._backoff_rule.after(queued.attempts)
        self._pods[queued.pod.uid] = queued
        if broke or stale:
            self._rest(queued)
            self._wake_next(queued)
            return
        queued.place = "unschedulable"
        woken_from = queued.group
        self._join_group(queued, beside or (queued.pod.uid if alone else None))
        if woken_from is not None and woken_from != queued.group:
            # It was woken for its group but did not rejoin it (it waits alone, or changed): wake the next pod.
            self._wake(woken_from)
        self._flush.put(queued.pod.uid, (self.now + FLUSH_AFTER, queued.serial))

    def remove(self, uid: PodUid) -> QueuedPodInfo | None:
        """Remove a pod and return it, or None."""
        queued = self._pods.pop(uid, None)
        if queued is None:
            return None
        if queued.place == "unschedulable":
            self._leave_group(queued)
        elif queued.place == "gated":
            self._leave_gate(queued)
        else:
            self._active.discard(uid)
            self._stop_resting(uid)
            self._wake_next(queued)
        return queued

    def placed(self, queued: QueuedPodInfo) -> None:
        """Wake the next pod of a group after a popped pod was placed: there may be room for it too."""
        self._wake_next(queued)

    # -- removals ----------------------------------------------------------------------------------------------------

    def pop(self) -> QueuedPodInfo | None:
        """
        Remove and return the next pod for an attempt; None if no pod is ready.

        If no pod is active, a refused pod is popped before its back-off ends, since no other pod has to wait for it. No
        pod is popped twice at the same time: two pods that wake each other would otherwise keep the loop busy forever.
        """
        if not self._pods:
            return None
        self._reorder()
        uid = self._active.pop()
        if uid is None:
            uid = self._early.pop()
            if uid is None:
                return None
            self._resting.discard(uid)
        queued = self._pods.pop(uid)
        queued.attempts += 1
        return queued

    # -- time and changes --------------------------------------------------------------------------------------------

    def pass_time(self, now: float) -> None:
        """Advance the clock: end back-offs, and retry pods after five minutes in case a change was missed."""
        self.now = now
        just_refused, self._just_refused = self._just_refused, {}
        for uid in just_refused:
            self._push_early(self._pods[uid])
        rested: list[tuple[float, int, PodUid]] = []
        for uid in take_due(self._resting, now):
            queued = self._pods[uid]
            window_end = window_of(queued.backoff_until) + WINDOW
            if self._backing_off(queued):
                self._resting.put(uid, (window_end, queued.serial))
            else:
                rested.append((queued.backoff_until if queued.broke else window_end, queued.serial, uid))
        # In the order in which back-offs ended, also when time leaps over several ends at once.
        for _, _, uid in sorted(rested):
            self._early.discard(uid)
            self._push_active(self._pods[uid])
        for uid in take_due(self._flush, now):
            self.wake(self._pods[uid])
        for one in take_due(self._timers, now):
            if isinstance(one, tuple):
                self._wake(one)
            else:
                self._retry_gated(self._pods[one])

    def react(self, change: ClusterChange, held: Sequence[Pod] = ()) -> None:
        """Wake one pod of each group that *change* may help; *held* pods are nominated for the changed node."""
        self._wake_all(self._index.helped(change, held))

    def retry(self, plugin: str) -> None:
        """Wake pods that *plugin* refused, as `react` does after a change."""
        self._wake_all(self._index.refused_by(plugin))

    def wake(self, queued: QueuedPodInfo) -> None:
        """Wake a refused pod."""
        self._leave_group(queued, awake=True)
        self._ready(queued)

    def next_time(self) -> float | None:
        """Return the next time in seconds at which time alone changes the queue, or None."""
        if not self._pods:
            return None
        first = (self._resting.first(), self._flush.first(), self._timers.first())
        return min([due[0][0] for due in first if due is not None], default=None)

    def _wake_all(self, waiting: Iterable[QueuedGroup | QueuedPodInfo]) -> None:
        for one in waiting:
            if isinstance(one, QueuedGroup):
                self._wake(one.key)
            else:
                self._retry_gated(one)

    # -- gates -------------------------------------------------------------------------------------------------------

    def _admit(self, queued: QueuedPodInfo) -> None:
        for plugin in queued.profile.pre_enqueue:
            try:
                answer = plugin.pre_enqueue(queued.pod)
            except Exception as error:  # noqa: BLE001 - the pod stays gated until something changes
                answer = raised(error)
            if answer is not None and not answer.ok:
                queued.place = "gated"
                queued.refused_by = frozenset([plugin.name])
                queued.gated_as = self._next_serial()
                self._index.gate(queued, plugin.name)
                self._set_timer(queued.pod.uid, queued, self.now)
                return
        self._push_active(queued)

    def _leave_gate(self, queued: QueuedPodInfo) -> None:
        (plugin,) = queued.refused_by
        self._index.ungate(queued, plugin)
        self._timers.discard(queued.pod.uid)

    def _retry_gated(self, queued: QueuedPodInfo) -> None:
        self._leave_gate(queued)
        self._admit(queued)

    # -- active and back-off -----------------------------------------------------------------------------------------

    def _ready(self, queued: QueuedPodInfo) -> None:
        if self._backing_off(queued):
            self._rest(queued)
        else:
            self._push_active(queued)

    def _backing_off(self, queued: QueuedPodInfo) -> bool:
        """Return whether a pod is still in back-off; a refused pod is until its window ends."""
        if queued.backoff_until > self.now:
            return True
        rests = queued.backoff_until > queued.queued_at
        return rests and not queued.broke and window_of(queued.backoff_until) == window_of(self.now)

    def _push_active(self, queued: QueuedPodInfo) -> None:
        queued.place = "active"
        queued.serial = self._next_serial()
        self._active.put(queued.pod.uid, self._key(queued))

    def _push_early(self, queued: QueuedPodInfo) -> None:
        self._early.put(queued.pod.uid, self._early_key(queued))

    def _early_key(self, queued: QueuedPodInfo) -> tuple[float, Place, int]:
        return window_of(queued.backoff_until), self._key(queued), queued.serial

    def _key(self, queued: QueuedPodInfo) -> Place:
        return sort_key(queued, self.now)

    def _rest(self, queued: QueuedPodInfo) -> None:
        queued.place = "backoff"
        queued.serial = self._next_serial()
        until = queued.backoff_until
        due = until if until > self.now else window_of(until) + WINDOW
        self._resting.put(queued.pod.uid, (due, queued.serial))
        if queued.broke:
            return
        if queued.queued_at < self.now:
            self._push_early(queued)
        else:
            self._just_refused[queued.pod.uid] = None

    def _stop_resting(self, uid: PodUid) -> None:
        self._resting.discard(uid)
        self._early.discard(uid)
        self._just_refused.pop(uid, None)

    def _learn(self, profile: Profile) -> None:
        if self._order.learn(profile.queue_sort):
            self._active = self._order.heap()

    def _reorder(self) -> None:
        """Sort again if keys have changed since."""
        moment = self._order.moment(self.now)
        if moment is None:
            return
        if self._active_sorted != moment:
            self._active_sorted = moment
            self._active.reorder(lambda uid: self._key(self._pods[uid]))
        if not len(self._active) and self._early_sorted != moment:
            self._early_sorted = moment
            self._early.reorder(lambda uid: self._early_key(self._pods[uid]))

    # -- groups ------------------------------------------------------------------------------------------------------

    def _wake(self, key: GroupKey) -> None:
        """Wake one pod of a group: the first in order among those not tried at the current time."""
        group = self._groups.get(key)
        if group is None:
            return
        self.wake(group.first(self.now, self._key, self._order.moment(self.now)))

    def _wake_next(self, queued: QueuedPodInfo) -> None:
        key, queued.group = queued.group, None
        if key is not None:
            self._wake(key)

    def _join_group(self, queued: QueuedPodInfo, name: str | None) -> None:
        shape = queued.pod.uid if queued.shape is None else queued.shape
        queued.group = key = (shape if name is None else name, queued.profile)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = QueuedGroup(key, self._next_serial(), self._order.heap())
        group.add(queued)
        # Refusals of the last pod hold for all pods of the group, since they have the same shape.
        self._index.put(group, queued.refused_by)
        self._set_timer(key, queued, queued.backoff_until)

    def _set_timer(self, waiting: GroupKey | PodUid, queued: QueuedPodInfo, soonest: float) -> None:
        """Set the retry time that the refusing plugins name for a pod."""
        at = queued.profile.retry_at(queued.refused_by, queued.pod, self.now)
        if at is not None:
            at = max(at, soonest, self.now + SOONEST_RETRY)
        if at is not None and (queued.place == "gated" or at < self.now + FLUSH_AFTER):
            self._timers.put(waiting, (at, queued.serial))
        else:
            self._timers.discard(waiting)

    def _leave_group(self, queued: QueuedPodInfo, *, awake: bool = False) -> None:
        key = queued.group
        assert key is not None, "a pod that was refused waits in a group"
        group = self._groups[key]
        group.remove(queued.pod.uid)
        self._flush.discard(queued.pod.uid)
        if not group.pods:
            self._index.remove(group)
            del self._groups[key]
            self._timers.discard(key)
        if not awake:
            queued.group = None

    # -- snapshots ---------------------------------------------------------------------------------------------------

    def snapshot(self) -> QueueSnapshot:
        """Return the complete content as data."""
        timers = self._timers.snapshot()
        return QueueSnapshot(
            now=self.now,
            serial=self._serial,
            time_ordered=self._order.time_ordered,
            pods=tuple(queued.snapshot() for queued in self._pods.values()),
            groups=tuple(group.snapshot() for group in self._groups.values()),
            active=self._active.snapshot(),
            resting=self._resting.snapshot(),
            early=self._early.snapshot(),
            just_refused=tuple(self._just_refused),
            flush=self._flush.snapshot(),
            gate_timers=tuple((one, due) for one, due in timers if not isinstance(one, tuple)),
            group_timers=tuple((one[1].name, label_of(one), due) for one, due in timers if isinstance(one, tuple)),
        )

    def restore(self, snapshot: QueueSnapshot, labels: ShapeNumbers) -> None:
        """Restore a snapshot into an empty queue."""
        self.now = snapshot.now
        if snapshot.time_ordered:
            for profile in labels.profiles.values():
                self._learn(profile)
        self._pods = {one.pod.uid: restored(one, labels) for one in snapshot.pods}
        for saved in snapshot.groups:
            group = QueuedGroup(key_of(saved.profile, saved.label, labels), saved.number, self._order.heap())
            for uid in saved.pods:
                group.add(self._pods[uid])
            self._groups[group.key] = group
            self._index.put(group, frozenset(saved.refused_by))
        for queued in sorted(self._pods.values(), key=lambda one: one.gated_as):
            if queued.place == "gated":
                (plugin,) = queued.refused_by
                self._index.gate(queued, plugin)
        self._just_refused = dict.fromkeys(snapshot.just_refused)
        for uid, place in snapshot.active:
            self._active.put(uid, place)
        for uid, order in snapshot.early:
            self._early.put(uid, order)
        for heap, times in ((self._resting, snapshot.resting), (self._flush, snapshot.flush)):
            for uid, due in times:
                heap.put(uid, due)
        for uid, due in snapshot.gate_timers:
            self._timers.put(uid, due)
        for name, label, due in snapshot.group_timers:
            self._timers.put(key_of(name, label, labels), due)
        self._serial = snapshot.serial

    def _next_serial(self) -> int:
        self._serial += 1
        return self._serial
