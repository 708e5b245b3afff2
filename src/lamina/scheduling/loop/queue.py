"""
Pods that wait for a decision.

             pre_enqueue says no
    arrives ──────────────────────> gated ──(pod or cluster changes)──┐
       │                                                              │
       └──────────> active <──────────────────────────────────────────┘
                    │    ^  ^
              popped│    │  └─(back-off over, or nothing else to do)── backoff <─┐
                    v    │                                                       │
                 decided ┴─(refused)─> unschedulable ──(a change that helps)─────┘
                    └──(something broke)──────────────────────────────> backoff (always waits it out)

Orders, back-off (1 s doubling to 10 s) and the five-minute flush are kube-scheduler's; so is popping from the back-off
queue when the active one is empty. Pods of one shape that fit nowhere wait as a group: a change is weighed once for all
of them and wakes one; if that one finds a place the next is woken, and if it does not, neither would the others. So
room for one pod costs one attempt, however many wait for it.
"""

import heapq
from collections.abc import Hashable, Iterator
from numbers import Real
from typing import Final, TypeGuard

import msgspec

from lamina.model.pod import Pod, PodUid
from lamina.scheduling.framework.changes import Changed
from lamina.scheduling.framework.profile import Profile
from lamina.scheduling.framework.status import Status, failed, raised

FIRST_BACKOFF: Final = 1.0
LONGEST_BACKOFF: Final = 10.0
FLUSH_AFTER: Final = 300.0
FIRST: Final[tuple[float, ...]] = ()
"""The place before all others."""
# The usual ones first: asking an abstract class takes longer than everything else about a push.
NUMBERS: Final = (int, float, Real)


class Queued(msgspec.Struct, eq=False):
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
    group: "GroupKey | None" = None
    """The group it waits in, or was woken from and has not been tried since."""
    told: str = ""
    """What the owner was told last, so that the same news is not told twice."""
    edition: int = 0
    """The profile's, when the pod was signed."""
    unsorted: Status | None = None
    """Why it has no place among the others: the queueSort plugin could not say. Costs the pod the attempt."""

    def sign(self) -> None:
        """Work out the pod's shape, as it is now."""
        self.edition = self.profile.edition
        self.shape = self.profile.shape(self.pod)


GroupKey = tuple[Hashable, Profile]


class Group(msgspec.Struct, eq=False):
    """Pods that are refused for the same reasons."""

    refused_by: frozenset[str]
    pods: dict[PodUid, Queued]


class Backoff(msgspec.Struct, frozen=True):
    """How long a pod rests after an attempt."""

    first: float = FIRST_BACKOFF
    longest: float = LONGEST_BACKOFF

    def after(self, attempts: int) -> float:
        """Return the rest after so many attempts."""
        # Past 2**32 the cap has long been reached; a larger exponent would only make floats overflow.
        return min(self.longest, self.first * float(2 ** min(max(attempts, 1) - 1, 32)))


class SchedulingQueue:
    """The active, back-off and unschedulable queues, and the gated pods."""

    def __init__(self, backoff: Backoff) -> None:
        """Start empty, at time 0."""
        self.now = 0.0
        self._backoff_rule = backoff
        self._pods: dict[PodUid, Queued] = {}
        self._active: list[tuple[tuple[float, ...], int, PodUid]] = []
        self._sorted_at = 0.0
        self._time_ordered = False
        self._resting: list[tuple[float, int, PodUid]] = []
        self._early: list[tuple[float, int, PodUid]] = []
        """Of the resting pods, those that may be tried early: refused at an earlier time than now."""
        self._just_refused: list[tuple[float, int, PodUid]] = []
        self._groups: dict[GroupKey, Group] = {}
        self._flush: list[tuple[float, int, PodUid]] = []
        self._serial = 0

    def __len__(self) -> int:
        """Count the pods that wait."""
        return len(self._pods)

    def __iter__(self) -> Iterator[Queued]:
        """Go through the pods that wait, in order of arrival."""
        return iter(self._pods.values())

    def get(self, uid: PodUid) -> Queued | None:
        """Return a pod if it waits."""
        return self._pods.get(uid)

    def counts(self) -> dict[str, int]:
        """Count the pods in each queue."""
        counts = {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 0}
        for queued in self._pods.values():
            counts[queued.place] += 1
        return counts

    # -- in ----------------------------------------------------------------------------------------------------------

    def add(self, pod: Pod, profile: Profile) -> Queued:
        """Take a new pod in."""
        self._serial += 1
        self._time_ordered = self._time_ordered or profile.queue_sort.changes_with_time
        queued = Queued(pod, profile, None, self.now, self.now, self._serial)
        queued.sign()
        self._pods[pod.uid] = queued
        self._admit(queued)
        return queued

    def update(self, pod: Pod) -> None:
        """Take over how a waiting pod is now; a refused one is tried again, since it may have been changed to fit."""
        queued = self._pods[pod.uid]
        before, queued.pod = queued.pod, pod
        queued.sign()
        if queued.place == "gated":
            self._leave_group(queued)
            self._admit(queued)
        elif queued.place == "unschedulable" and before != pod:
            self._leave_group(queued)
            self._ready(queued)
        elif queued.place == "active":
            self._push_active(queued)

    def put_back(
        self,
        queued: Queued,
        refused_by: frozenset[str],
        *,
        broke: bool = False,
        stale: bool = False,
        alone: bool = False,
    ) -> None:
        """
        Take a pod back after an attempt that did not place it.

        *broke*: it was not refused, something failed. *stale*: the cluster changed after the decision it failed on, so
        waiting for another change would be wrong. *alone*: what happened says nothing about other pods of its shape.
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
        self._join_group(queued, alone=alone)
        if woken_from is not None and woken_from != queued.group:
            # It was woken for its group and did not answer for it: alone, or changed since.
            self._wake(woken_from)
        self._serial += 1
        heapq.heappush(self._flush, (self.now + FLUSH_AFTER, self._serial, queued.pod.uid))

    def remove(self, uid: PodUid) -> Queued | None:
        """Take a pod out."""
        queued = self._pods.pop(uid, None)
        if queued is None:
            return None
        if queued.place in ("unschedulable", "gated"):
            self._leave_group(queued)
        else:
            self._wake_next(queued)
        return queued

    def placed(self, queued: Queued) -> None:
        """Hear that a pod that was popped found a node: there may be room for another of its group."""
        self._wake_next(queued)

    # -- out ---------------------------------------------------------------------------------------------------------

    def pop(self) -> Queued | None:
        """
        Take the next pod out for an attempt; None when nobody is ready.

        With nothing active, a refused pod need not sit its back-off out: nobody is held up by trying it. But no pod is
        tried twice in one instant, or two that wake each other would keep the loop busy for ever.
        """
        self._reorder()
        while self._active:
            _, serial, uid = heapq.heappop(self._active)
            queued = self._pods.get(uid)
            if queued is not None and queued.place == "active" and queued.serial == serial:
                del self._pods[uid]
                queued.attempts += 1
                return queued
        while self._early:
            queued = self._resting_pod(heapq.heappop(self._early))
            if queued is not None:
                del self._pods[queued.pod.uid]
                queued.attempts += 1
                return queued
        return None

    # -- what happens meanwhile --------------------------------------------------------------------------------------

    def pass_time(self, now: float) -> None:
        """Move on in time: back-offs end; pods that waited very long are tried again, in case a change was missed."""
        self.now = now
        for entry in self._just_refused:
            heapq.heappush(self._early, entry)
        self._just_refused.clear()
        while self._resting and self._resting[0][0] <= now:
            queued = self._resting_pod(heapq.heappop(self._resting))
            if queued is not None:
                self._push_active(queued)
        while self._flush and self._flush[0][0] <= now:
            _, _, uid = heapq.heappop(self._flush)
            waiting = self._pods.get(uid)
            if waiting is not None and waiting.place == "unschedulable" and waiting.queued_at + FLUSH_AFTER <= now:
                self._leave_group(waiting, awake=True)
                self._ready(waiting)

    def react(self, change: Changed) -> None:
        """Wake those that *change* may help: one of each group, who makes room for the next if it finds a place."""
        for key, group in list(self._groups.items()):
            sample = next(iter(group.pods.values()))
            # Refused by nobody in particular (there were no nodes): any change may help.
            if not group.refused_by or any(
                sample.profile.worth_retrying(plugin, sample.pod, change) for plugin in sorted(group.refused_by)
            ):
                self._wake(key)

    def retry(self, plugin: str) -> None:
        """Wake pods that *plugin* refused, one of each group, as `react` does."""
        for key, group in list(self._groups.items()):
            if plugin in group.refused_by:
                self._wake(key)

    def next_time(self) -> float | None:
        """When time alone will change something."""
        if self._resting and self._flush:
            return min(self._resting[0][0], self._flush[0][0])
        first = self._resting or self._flush
        return first[0][0] if first else None

    # -- inside ------------------------------------------------------------------------------------------------------

    def _admit(self, queued: Queued) -> None:
        for plugin in queued.profile.pre_enqueue:
            try:
                answer = plugin.pre_enqueue(queued.pod)
            except Exception as error:  # noqa: BLE001 - a gate that breaks stays shut until something changes
                answer = raised(error)
            if answer is not None and not answer.ok:
                queued.place = "gated"
                queued.refused_by = frozenset([plugin.name])
                self._join_group(queued, alone=True)
                return
        self._push_active(queued)

    def _ready(self, queued: Queued) -> None:
        if queued.backoff_until > self.now:
            self._rest(queued)
        else:
            self._push_active(queued)

    def _push_active(self, queued: Queued) -> None:
        queued.place = "active"
        queued.serial = self._next_serial()
        self._reorder()
        heapq.heappush(self._active, (self._key(queued), queued.serial, queued.pod.uid))

    def _key(self, queued: Queued) -> tuple[float, ...]:
        """Ask for a pod's place; one that cannot be told comes first, so that its attempt fails and no other waits for it."""
        sort = queued.profile.queue_sort
        queued.unsorted = None
        try:
            key: object = sort.sort_key(queued, self.now)
            if _is_place(key):
                return key
            queued.unsorted = failed(f"sort_key returned {type(key).__name__}, not a tuple of numbers").of(sort.name)
        except Exception as error:  # noqa: BLE001 - whatever a plugin raises is told to the pod's owner
            queued.unsorted = raised(error).of(sort.name)
        return FIRST

    def _rest(self, queued: Queued) -> None:
        queued.place = "backoff"
        queued.serial = self._next_serial()
        entry = (queued.backoff_until, queued.serial, queued.pod.uid)
        heapq.heappush(self._resting, entry)
        if queued.broke:
            return
        if queued.queued_at < self.now:
            heapq.heappush(self._early, entry)
        else:
            self._just_refused.append(entry)

    def _resting_pod(self, entry: tuple[float, int, PodUid]) -> Queued | None:
        queued = self._pods.get(entry[2])
        if queued is None or queued.place != "backoff" or queued.serial != entry[1]:
            return None
        return queued

    def _reorder(self) -> None:
        """Sort anew if the order depends on time and time has passed since."""
        if not self._time_ordered or self._sorted_at == self.now:
            return
        self._sorted_at = self.now
        waiting = [
            queued
            for _, serial, uid in self._active
            if (queued := self._pods.get(uid)) is not None and queued.serial == serial
        ]
        self._active = [(self._key(queued), queued.serial, queued.pod.uid) for queued in waiting]
        heapq.heapify(self._active)

    def _wake(self, key: GroupKey) -> None:
        """Let one pod of a group be tried: the first in order of those that were not tried in this very instant."""
        group = self._groups.get(key)
        if group is None:
            return
        first = min(group.pods.values(), key=lambda one: (one.queued_at == self.now, self._key(one), one.serial))
        self._leave_group(first, awake=True)
        if first.place == "gated":
            self._admit(first)
        else:
            self._ready(first)

    def _wake_next(self, queued: Queued) -> None:
        key, queued.group = queued.group, None
        if key is not None:
            self._wake(key)

    def _join_group(self, queued: Queued, *, alone: bool = False) -> None:
        shape = queued.pod.uid if alone or queued.shape is None else queued.shape
        queued.group = (shape, queued.profile)
        group = self._groups.setdefault(queued.group, Group(queued.refused_by, {}))
        # What the last of them was told holds for all: they are alike.
        group.refused_by = queued.refused_by
        group.pods[queued.pod.uid] = queued

    def _leave_group(self, queued: Queued, *, awake: bool = False) -> None:
        assert queued.group is not None, "whoever waits does so in a group"
        group = self._groups[queued.group]
        del group.pods[queued.pod.uid]
        if not group.pods:
            del self._groups[queued.group]
        if not awake:
            queued.group = None

    def _next_serial(self) -> int:
        self._serial += 1
        return self._serial


def _is_place(key: object) -> TypeGuard[tuple[float, ...]]:
    if not isinstance(key, tuple):
        return False
    # Not all(): every push comes by, and a generator costs more than what it asks.
    for part in key:  # noqa: SIM110
        if not isinstance(part, NUMBERS):
            return False
    return True
