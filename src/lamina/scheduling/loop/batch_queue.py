"""
The scheduling queue as place plugins need it: it hands out batches and groups, and says whose turn is next.

Pods that a batch does not need keep their places.
"""

from lamina.model.pod import PodUid
from lamina.scheduling.loop.queued_pod import LAST_TURN, QueuedPodInfo, Turn
from lamina.scheduling.loop.scheduling_queue import SchedulingQueue
from lamina.scheduling.runtime.profile import Profile


class BatchQueue(SchedulingQueue):
    """A scheduling queue that pops several pods at once."""

    def pop_more(self, profile: Profile, most: int) -> list[tuple[Turn, QueuedPodInfo]]:
        """
        Remove and return the next pods of a profile, with their turns; other pods keep their places.

        Looks past as many pods of other profiles. As in `pop`, pods in back-off follow only if no pod is active.
        """

        def wanted(uid: PodUid) -> bool:
            queued = self._pods[uid]
            return queued.profile is profile and queued.unsorted is None

        popped: list[tuple[Turn, QueuedPodInfo]] = []
        for uid, place in self._active.take(wanted, most, most):
            popped.append(((place, self._pods[uid].serial), self._pods.pop(uid)))
        if not len(self._active):
            self._reorder()
            for uid, _ in self._early.take(wanted, most - len(popped), most):
                self._resting.discard(uid)
                popped.append((LAST_TURN, self._pods.pop(uid)))
        for _, queued in popped:
            queued.attempts += 1
        return popped

    def take(self, uid: PodUid) -> QueuedPodInfo | None:
        """Remove and return a pod for an attempt, whatever it waits for; None while a gate or an error holds it."""
        queued = self._pods.get(uid)
        if queued is not None and queued.place == "gated":
            self._retry_gated(queued)
        if queued is None or queued.place == "gated" or queued.unsorted is not None:
            return None
        if queued.place == "backoff" and queued.broke:
            return None
        if queued.place == "unschedulable":
            self._leave_group(queued)
        else:
            self._active.discard(uid)
            self._stop_resting(uid)
        queued.attempts += 1
        return self._pods.pop(uid)

    def next_active(self) -> tuple[Turn, Profile] | None:
        """Return the turn and the profile of the active pod that `pop` would return; None if no pod is active."""
        self._reorder()
        first = self._active.first()
        if first is None:
            return None
        queued = self._pods[first[1]]
        return (first[0], queued.serial), queued.profile
