"""
ReplicaSet controller: keeps a number of pods of one template.

Its Deployment sets the number. As upstream, pods that ended or are being removed do not count. Surplus pods that do not
run yet are removed first, and of these the youngest.
"""

import math

from lamina.model.pod import Pod, PodUid
from lamina.simulator.cluster import VirtualPod
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.controllers.pod_factory import OwnedPodFactory
from lamina.simulator.controllers.replacement_backoff import ReplacementBackoff


class ReplicaSetController:
    """Pods of one version of a Deployment."""

    __slots__ = (
        "_factory",
        "_life",
        "_min_ready",
        "_settling",
        "backoff",
        "name",
        "ready",
        "replicas",
        "template",
        "waiting",
    )

    def __init__(
        self, name: str, template: Pod, life: PodLifecycle, factory: OwnedPodFactory, min_ready: float = 0.0
    ) -> None:
        """Start with 0 replicas; a pod is ready when it has run for *min_ready* seconds."""
        self.name = name
        self.template = template
        self._life = life
        self._factory = factory
        self.replicas = 0
        self.waiting: dict[PodUid, None] = {}
        """Pods that are not ready yet, oldest first."""
        self.ready: dict[PodUid, None] = {}
        """Ready pods, in the order in which they became ready."""
        self._min_ready = min_ready
        self._settling: dict[PodUid, float] = {}
        self.backoff = ReplacementBackoff()

    @property
    def size(self) -> int:
        """Number of pods."""
        return len(self.waiting) + len(self.ready)

    def started(self, uid: PodUid, now: float) -> None:
        """Make a pod ready after *min_ready* seconds, unless it is being removed by then."""
        self._settling[uid] = now + self._min_ready

    def settle(self, now: float) -> float:
        """Mark pods as ready whose time has come; return when the next one will be, or infinity."""
        # Pods become ready in the order of their starts.
        while self._settling:
            uid, ready_at = next(iter(self._settling.items()))
            if ready_at > now:
                return ready_at
            del self._settling[uid]
            if uid in self.waiting:
                del self.waiting[uid]
                self.ready[uid] = None
        return math.inf

    def ended(self, pod: VirtualPod, now: float) -> None:
        """Drop an ended pod."""
        uid = pod.pod.uid
        self.waiting.pop(uid, None)
        self.ready.pop(uid, None)
        self._settling.pop(uid, None)
        self.backoff.ended(pod, now)

    def sync(self, now: float) -> float:
        """Create missing pods and remove surplus ones; return the time of the next sync, or infinity."""
        for _ in range(self.size - self.replicas):
            uid, _ = self.waiting.popitem() if self.waiting else self.ready.popitem()
            self._factory.remove(uid)
        missing = self.replicas - self.size
        if missing > 0 and self.backoff.ready_at > now:
            return self.backoff.ready_at
        for _ in range(missing):
            self.waiting[self._factory.make(self.template, self._life)] = None
        return math.inf
