"""Pods held by `permit`: who waits for whose word, and until when."""

from collections.abc import Iterable, Iterator

import msgspec

from lamina.model.pod import Pod, PodUid


class WaitingPod(msgspec.Struct):
    """One pod that was placed and is held back."""

    pod: Pod
    node: str
    deadlines: dict[str, float]
    """For each plugin that still has to say yes: when its patience ends."""
    since: float = 0.0

    @property
    def deadline(self) -> float:
        """When the first patience ends."""
        return min(self.deadlines.values())


class WaitingPods:
    """
    All pods held back, as a permit plugin sees them.

    `allow` and `refuse` take effect after the call in which they were made; the loop picks them up with `answered`.
    """

    __slots__ = ("_allowed", "_pods", "_refused")

    def __init__(self) -> None:
        """Start with nobody waiting."""
        self._pods: dict[PodUid, WaitingPod] = {}
        self._allowed: list[PodUid] = []
        self._refused: list[tuple[PodUid, str, str]] = []

    def __iter__(self) -> Iterator[WaitingPod]:
        """Go through them, longest waiting first."""
        return iter(tuple(self._pods.values()))

    def __len__(self) -> int:
        """Count them."""
        return len(self._pods)

    def get(self, uid: PodUid) -> WaitingPod | None:
        """Return the pod if it waits."""
        return self._pods.get(uid)

    def hold(self, waiting: WaitingPod) -> None:
        """Keep a pod waiting (the loop's call)."""
        self._pods[waiting.pod.uid] = waiting

    def release(self, uid: PodUid) -> None:
        """Forget a pod (the loop's call)."""
        self._pods.pop(uid, None)

    def allow(self, uid: PodUid, plugin: str) -> None:
        """Say yes for *plugin*; the pod goes on when nobody else holds it."""
        waiting = self._pods.get(uid)
        if waiting is None or waiting.deadlines.pop(plugin, None) is None:
            return
        if not waiting.deadlines:
            self._allowed.append(uid)

    def refuse(self, uid: PodUid, plugin: str, reason: str) -> None:
        """Say no for *plugin*; the pod gives up its node."""
        if uid in self._pods:
            self._refused.append((uid, plugin, reason))

    def overdue(self, now: float) -> list[tuple[PodUid, str]]:
        """List pods whose time is over, with the plugin that held them."""
        return [
            (uid, min(waiting.deadlines, key=lambda plugin: (waiting.deadlines[plugin], plugin)))
            for uid, waiting in self._pods.items()
            if waiting.deadlines and waiting.deadline <= now
        ]

    def answered(self) -> tuple[list[PodUid], list[tuple[PodUid, str, str]]]:
        """Hand over what was allowed and refused since the last call."""
        answer = (self._allowed, self._refused)
        self._allowed, self._refused = [], []
        return answer

    def restore(self, waiting: Iterable[WaitingPod]) -> None:
        """Hold pods as they were held, longest waiting first (the loop's call)."""
        self._pods = {one.pod.uid: one for one in waiting}

    def next_deadline(self) -> float | None:
        """When somebody's patience ends next."""
        if not self._pods:
            return None
        return min((waiting.deadline for waiting in self._pods.values() if waiting.deadlines), default=None)

    def last_deadline(self) -> float | None:
        """When the last of the waits ends that go on now."""
        return max((waiting.deadline for waiting in self._pods.values() if waiting.deadlines), default=None)
