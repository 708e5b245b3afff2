"""Pods held by `permit`, with the plugins they wait for and the deadlines."""

from collections.abc import Iterable, Iterator

import msgspec

from lamina.model.pod import Pod, PodUid


class WaitingPod(msgspec.Struct):
    """A pod that has a node and waits for permit plugins."""

    pod: Pod
    node: str
    deadlines: dict[str, float]
    """Deadline in seconds, for each plugin that has not allowed the pod yet."""
    since: float = 0.0

    @property
    def deadline(self) -> float:
        """The earliest deadline."""
        return min(self.deadlines.values())


class WaitingPods:
    """
    All pods held by `permit`, as a permit plugin sees them.

    `allow` and `refuse` take effect after the plugin's call returns: the loop then collects them with `answered`.
    """

    __slots__ = ("_allowed", "_pods", "_refused")

    def __init__(self) -> None:
        """Start without pods."""
        self._pods: dict[PodUid, WaitingPod] = {}
        self._allowed: list[PodUid] = []
        self._refused: list[tuple[PodUid, str, str]] = []

    def __iter__(self) -> Iterator[WaitingPod]:
        """Iterate over the pods, longest waiting first."""
        return iter(tuple(self._pods.values()))

    def __len__(self) -> int:
        """Return the number of pods."""
        return len(self._pods)

    def get(self, uid: PodUid) -> WaitingPod | None:
        """Return the waiting pod, or None."""
        return self._pods.get(uid)

    def hold(self, waiting: WaitingPod) -> None:
        """Add a pod. Only the loop calls it."""
        self._pods[waiting.pod.uid] = waiting

    def release(self, uid: PodUid) -> None:
        """Remove a pod. Only the loop calls it."""
        self._pods.pop(uid, None)

    def allow(self, uid: PodUid, plugin: str) -> None:
        """Allow the pod for *plugin*; it continues to binding when no other plugin holds it."""
        waiting = self._pods.get(uid)
        if waiting is None or waiting.deadlines.pop(plugin, None) is None:
            return
        if not waiting.deadlines:
            self._allowed.append(uid)

    def refuse(self, uid: PodUid, plugin: str, reason: str) -> None:
        """Refuse the pod for *plugin*; the loop then releases its node."""
        if uid in self._pods:
            self._refused.append((uid, plugin, reason))

    def overdue(self, now: float) -> list[tuple[PodUid, str]]:
        """List pods past their deadline, each with the plugin whose deadline passed first."""
        return [
            (uid, min(waiting.deadlines, key=lambda plugin: (waiting.deadlines[plugin], plugin)))
            for uid, waiting in self._pods.items()
            if waiting.deadlines and waiting.deadline <= now
        ]

    def answered(self) -> tuple[list[PodUid], list[tuple[PodUid, str, str]]]:
        """Return what plugins allowed and refused since the last call, and clear it."""
        answer = (self._allowed, self._refused)
        self._allowed, self._refused = [], []
        return answer

    def restore(self, waiting: Iterable[WaitingPod]) -> None:
        """Replace all pods by those of a snapshot, longest waiting first. Only the loop calls it."""
        self._pods = {one.pod.uid: one for one in waiting}

    def next_deadline(self) -> float | None:
        """Return the earliest deadline of all pods in seconds, or None."""
        if not self._pods:
            return None
        return min((waiting.deadline for waiting in self._pods.values() if waiting.deadlines), default=None)

    def last_deadline(self) -> float | None:
        """Return the latest of the pods' deadlines in seconds, or None."""
        return max((waiting.deadline for waiting in self._pods.values() if waiting.deadlines), default=None)
