"""
Scale from zero by demand: which pods a stream of requests needs, and for how long.

    request --> a pod of its function has a free place --> that pod works longer
            --> none has                               --> a new pod

    a pod is kept while it has work and for *idle* seconds afterwards; a request takes the pod that was given work last,
    so that the others get the chance to go

Worked out from the requests alone, before the run: as if a pod worked from the moment it is needed. How long it really
takes until a pod runs depends on the policy; if that decided about later pods, policies would be compared on different
work. So a pod lives as long under every policy, counted from its start, and slow starts show in its waiting time, not in
more pods. After an update of a function its old pods get no more requests.
"""

from collections.abc import Hashable
from heapq import heappop, heappush


class NeededPod:
    """A pod and its work."""

    __slots__ = ("_ends", "at", "last")

    def __init__(self, at: float) -> None:
        """Be needed from *at* on."""
        self.at = at
        self.last = at
        """When its last work ends, as far as is known."""
        self._ends: list[float] = []

    def has_room(self, at: float, concurrency: int) -> bool:
        """Whether it can take one more request then."""
        while self._ends and self._ends[0] <= at:
            heappop(self._ends)
        return len(self._ends) < concurrency

    def work(self, at: float, seconds: float) -> None:
        """Take a request."""
        heappush(self._ends, at + seconds)
        self.last = max(self.last, at + seconds)


class ServerlessAutoscaler:
    """The pods that are kept, function by function."""

    def __init__(self, idle: float, concurrency: int) -> None:
        """Start with none."""
        self._idle = idle
        self._concurrency = concurrency
        self._kept: dict[Hashable, list[NeededPod]] = {}

    def serve(self, function: Hashable, at: float, seconds: float, *, may_grow: bool = True) -> NeededPod | None:
        """
        Give a request to a pod; requests come in the order of their times.

        Returns the pod when it is a new one, None otherwise. What finds no room where nothing *may_grow* is lost.
        """
        # Whoever was given work last is at the end.
        kept = [pod for pod in self._kept.get(function, ()) if at < pod.last + self._idle]
        self._kept[function] = kept
        for index in range(len(kept) - 1, -1, -1):
            if kept[index].has_room(at, self._concurrency):
                pod = kept.pop(index)
                pod.work(at, seconds)
                kept.append(pod)
                return None
        if not may_grow:
            return None
        pod = NeededPod(at)
        pod.work(at, seconds)
        kept.append(pod)
        return pod

    def seconds(self, pod: NeededPod) -> float:
        """Return how long a pod is kept, once all requests are served."""
        return pod.last + self._idle - pod.at

    def retire(self, function: Hashable) -> None:
        """Give no more requests to the pods a function has."""
        self._kept.pop(function, None)
