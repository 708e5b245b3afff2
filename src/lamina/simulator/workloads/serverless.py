"""
Serverless autoscaling from zero: derives pods and their durations from a stream of requests.

    request --> a pod of its function has a free slot --> that pod works longer
            --> no pod has one                        --> a new pod

    a pod is kept while it has work and for *idle* seconds afterwards; a request goes to the pod that was used last,
    so that the others become idle and end

The pods are calculated from the requests alone, before the run, as if each pod started at once. The real start depends
on the scheduler. If it influenced later pods, schedulers would be compared on different work. So a pod has the same
duration under every scheduler, counted from its start; slow starts appear as waiting time, not as more pods. After an
update of a function, its old pods get no more requests.
"""

from collections.abc import Hashable
from heapq import heappop, heappush


class NeededPod:
    """A pod that requests need, and when its work ends."""

    __slots__ = ("_ends", "at", "last")

    def __init__(self, at: float) -> None:
        """Start at *at* without work."""
        self.at = at
        self.last = at
        """When the last of its requests so far ends."""
        self._ends: list[float] = []

    def has_room(self, at: float, concurrency: int) -> bool:
        """Return whether it can serve one more request at that time."""
        while self._ends and self._ends[0] <= at:
            heappop(self._ends)
        return len(self._ends) < concurrency

    def work(self, at: float, seconds: float) -> None:
        """Serve a request."""
        heappush(self._ends, at + seconds)
        self.last = max(self.last, at + seconds)


class ServerlessAutoscaler:
    """Assigns requests to pods, function by function."""

    def __init__(self, idle: float, concurrency: int) -> None:
        """Start without pods; a pod is kept for *idle* seconds and serves *concurrency* requests at once."""
        self._idle = idle
        self._concurrency = concurrency
        self._kept: dict[Hashable, list[NeededPod]] = {}

    def serve(self, function: Hashable, at: float, seconds: float, *, may_grow: bool = True) -> NeededPod | None:
        """
        Assign a request to a pod; call it in order of time.

        Returns the pod if it is new, None otherwise. Without *may_grow*, a request that finds no free slot is lost.
        """
        # The pod that was used last is at the end.
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
        """Return how long a pod is kept, in seconds; call it after the last request."""
        return pod.last + self._idle - pod.at

    def retire(self, function: Hashable) -> None:
        """Assign no more requests to the present pods of a function."""
        self._kept.pop(function, None)
