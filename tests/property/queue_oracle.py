"""
The scheduling queue as plainly as it can be written: one dictionary, and a walk over it for every question.

No heaps, no index: every change asks about every group and every gated pod, and every choice is a `min` over all pods.
"""

import math
from collections.abc import Iterator, Sequence

from lamina.model.pod import Pod, PodUid
from lamina.model.resources import PODS
from lamina.scheduling.loop.scheduling_queue import FLUSH_AFTER, SOONEST_RETRY, PodBackoff, QueuedPodInfo
from lamina.scheduling.runtime.profile import Profile
from lamina.scheduling.state.cluster_changes import ClusterChange


class PlainQueue:
    """Takes the place of `SchedulingQueue`."""

    def __init__(self, backoff: PodBackoff) -> None:
        self.now = 0.0
        self.backoff = backoff
        self.pods: dict[PodUid, QueuedPodInfo] = {}
        self.groups: dict[object, list[QueuedPodInfo]] = {}
        """Groups of refused pods, and each gated pod as one of its own, in the order in which they began to wait."""
        self.told: dict[object, frozenset[str]] = {}
        self.timers: dict[object, tuple[float, int]] = {}
        self.serial = 0

    def __len__(self) -> int:
        return len(self.pods)

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        return iter(self.pods.values())

    def get(self, uid: PodUid) -> QueuedPodInfo | None:
        return self.pods.get(uid)

    def at(self, place: str) -> list[QueuedPodInfo]:
        return [queued for queued in self.pods.values() if queued.place == place]

    def counts(self) -> dict[str, int]:
        return {place: len(self.at(place)) for place in ("active", "backoff", "unschedulable", "gated")}

    # -- in and out --------------------------------------------------------------------------------------------------

    def add(self, pod: Pod, profile: Profile) -> QueuedPodInfo:
        queued = self.pods[pod.uid] = QueuedPodInfo(pod, profile, None, self.now, self.now, self.tick())
        queued.sign()
        self.admit(queued)
        return queued

    def update(self, pod: Pod) -> None:
        queued = self.pods[pod.uid]
        before, queued.pod = queued.pod, pod
        queued.sign()
        if queued.place == "gated":
            self.leave(("gate", pod.uid), queued)
            self.admit(queued)
        elif queued.place == "unschedulable" and before != pod:
            self.leave(queued.group, queued)
            queued.group = None
            self.ready(queued)
        elif queued.place == "active":
            self.go("active", queued)

    def put_back(
        self,
        queued: QueuedPodInfo,
        refused_by: frozenset[str],
        *,
        broke: bool = False,
        stale: bool = False,
        alone: bool = False,
    ) -> None:
        queued.refused_by, queued.broke, queued.queued_at = refused_by, broke, self.now
        queued.backoff_until = self.now + self.backoff.after(queued.attempts)
        self.pods[queued.pod.uid] = queued
        if broke or stale:
            self.go("backoff", queued)
            self.wake_next(queued)
            return
        queued.place = "unschedulable"
        before = queued.group
        queued.group = (queued.pod.uid if alone or queued.shape is None else queued.shape, queued.profile)
        self.join(queued.group, queued, queued.backoff_until)
        if before is not None and before != queued.group:
            self.wake(before)

    def remove(self, uid: PodUid) -> QueuedPodInfo | None:
        queued = self.pods.pop(uid, None)
        if queued is None:
            return None
        if queued.place in ("unschedulable", "gated"):
            self.leave(("gate", uid) if queued.place == "gated" else queued.group, queued)
        else:
            self.wake_next(queued)
        return queued

    def placed(self, queued: QueuedPodInfo) -> None:
        self.wake_next(queued)

    def pop(self) -> QueuedPodInfo | None:
        active = self.at("active")
        early = [one for one in self.at("backoff") if not one.broke and one.queued_at < self.now]
        if active:
            queued = min(active, key=lambda one: (self.place(one), one.serial))
        elif early:
            queued = min(early, key=lambda one: (math.floor(one.backoff_until), self.place(one), one.serial))
        else:
            return None
        queued.attempts += 1
        return self.pods.pop(queued.pod.uid)

    # -- meanwhile ---------------------------------------------------------------------------------------------------

    def pass_time(self, now: float) -> None:
        resting = sorted(self.at("backoff"), key=lambda one: (self.due(one), one.serial))
        self.now = now
        for queued in resting:
            if not self.backing_off(queued):
                self.go("active", queued)
        overdue = [one for one in self.at("unschedulable") if one.queued_at + FLUSH_AFTER <= now]
        for queued in sorted(overdue, key=lambda one: (one.queued_at, one.serial)):
            self.leave(queued.group, queued)
            self.ready(queued)
        for key in sorted(self.timers, key=self.timers.__getitem__):
            if self.timers[key][0] <= now:
                del self.timers[key]
                self.wake(key)

    def react(self, change: ClusterChange, held: Sequence[Pod] = ()) -> None:
        for key, pods in list(self.groups.items()):
            told, profile, pod = self.told[key], pods[0].profile, pods[0].pod
            ahead = [one for one in held if one.priority >= pod.priority and one.uid != pod.uid and len(pods) == 1]
            helping = [
                plugin for plugin in told if not has_room_for_others_only(profile, plugin, change.row, pod, ahead)
            ]
            if not told or any(profile.worth_retrying(plugin, pod, change) for plugin in helping):
                self.wake(key)

    def next_time(self) -> float | None:
        times = [self.due(one) for one in self.at("backoff")]
        times += [one.queued_at + FLUSH_AFTER for one in self.at("unschedulable")]
        return min([*times, *(at for at, _ in self.timers.values())], default=None)

    # -- inside ------------------------------------------------------------------------------------------------------

    def admit(self, queued: QueuedPodInfo) -> None:
        for plugin in queued.profile.pre_enqueue:
            answer = plugin.pre_enqueue(queued.pod)
            if answer is not None and not answer.ok:
                queued.place, queued.refused_by = "gated", frozenset([plugin.name])
                self.join(("gate", queued.pod.uid), queued, self.now)
                return
        self.go("active", queued)

    def ready(self, queued: QueuedPodInfo) -> None:
        self.go("backoff" if self.backing_off(queued) else "active", queued)

    def backing_off(self, queued: QueuedPodInfo) -> bool:
        rests = not queued.broke and queued.backoff_until > queued.queued_at
        same = math.floor(queued.backoff_until) == math.floor(self.now)
        return queued.backoff_until > self.now or (rests and same)

    def due(self, queued: QueuedPodInfo) -> float:
        until = queued.backoff_until
        return until if until > self.now or queued.broke else float(math.floor(until) + 1)

    def go(self, place: str, queued: QueuedPodInfo) -> None:
        queued.place, queued.serial = place, self.tick()

    def place(self, queued: QueuedPodInfo) -> tuple[float, ...]:
        return queued.profile.queue_sort.sort_key(queued, self.now)

    def join(self, key: object, queued: QueuedPodInfo, soonest: float) -> None:
        self.groups.setdefault(key, []).append(queued)
        self.told[key] = queued.refused_by
        self.timers.pop(key, None)
        at = queued.profile.retry_at(queued.refused_by, queued.pod, self.now)
        if at is not None:
            at = max(at, soonest, self.now + SOONEST_RETRY)
            if at < self.now + FLUSH_AFTER or queued.place == "gated":
                self.timers[key] = (at, queued.serial)

    def leave(self, key: object, queued: QueuedPodInfo) -> None:
        self.groups[key].remove(queued)
        if not self.groups[key]:
            del self.groups[key], self.told[key]
            self.timers.pop(key, None)

    def wake(self, key: object) -> None:
        if key in self.groups:
            first = min(self.groups[key], key=lambda one: (one.queued_at == self.now, self.place(one), one.serial))
            self.leave(key, first)
            if first.place == "gated":
                self.admit(first)
            else:
                self.ready(first)

    def wake_next(self, queued: QueuedPodInfo) -> None:
        key, queued.group = queued.group, None
        if key is not None:
            self.wake(key)

    def tick(self) -> int:
        self.serial += 1
        return self.serial


def has_room_for_others_only(profile: Profile, plugin: str, row: int, pod: Pod, ahead: Sequence[Pod]) -> bool:
    """Say whether a node's free amounts are not enough for a pod and for those that go first."""
    if plugin != "NodeResourcesFit" or not ahead or row < 0:
        return False
    wanted = dict.fromkeys({name for one in (pod, *ahead) for name, _ in one.requests}, 0)
    for one in (pod, *ahead):
        for name, amount in one.requests:
            wanted[name] += amount
    wanted[PODS] = 1 + len(ahead)
    own = {PODS, *(name for name, amount in pod.requests if amount)}
    offered = profile.offers(plugin, row) or {}
    return any(wanted[name] > offered.get(name, 0) for name in own)
