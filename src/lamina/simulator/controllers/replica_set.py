"""
A ReplicaSet: so many pods of one template, whatever becomes of each of them.

Its Deployment says how many. Pods that ended or are being removed do not count, as upstream; when there are too many,
those go first that do not run yet, and of equal ones the youngest.
"""

import math

from lamina.model.pod import Pod, PodUid
from lamina.simulator.cluster import VirtualPod
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.controllers.pod_factory import OwnedPodFactory
from lamina.simulator.controllers.replacement_backoff import ReplacementBackoff


class ReplicaSetController:
    """Pods of one generation of a Deployment."""

    __slots__ = (
        "_life",
        "_maker",
        "_min_ready",
        "_settling",
        "name",
        "patience",
        "ready",
        "template",
        "waiting",
        "wanted",
    )

    def __init__(
        self, name: str, template: Pod, life: PodLifecycle, maker: OwnedPodFactory, min_ready: float = 0.0
    ) -> None:
        """Start without pods, wanting none; a pod is ready when it has run for *min_ready* seconds."""
        self.name = name
        self.template = template
        self._life = life
        self._maker = maker
        self.wanted = 0
        self.waiting: dict[PodUid, None] = {}
        """Made and not ready, oldest first."""
        self.ready: dict[PodUid, None] = {}
        """In the order they became it."""
        self._min_ready = min_ready
        self._settling: dict[PodUid, float] = {}
        self.patience = ReplacementBackoff()

    @property
    def size(self) -> int:
        """How many pods there are."""
        return len(self.waiting) + len(self.ready)

    def started(self, uid: PodUid, now: float) -> None:
        """Count a pod as ready from some time on, unless it is on its way out by then."""
        self._settling[uid] = now + self._min_ready

    def settle(self, now: float) -> float:
        """Count pods as ready that are by now; return when the next one will be, infinity: none has started."""
        # Who started first is ready first.
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
        """Forget a pod."""
        uid = pod.pod.uid
        self.waiting.pop(uid, None)
        self.ready.pop(uid, None)
        self._settling.pop(uid, None)
        self.patience.ended(pod, now)

    def sync(self, now: float) -> float:
        """Make what is lacking and remove what is too much; return when to look again, infinity: when told."""
        for _ in range(self.size - self.wanted):
            uid, _ = self.waiting.popitem() if self.waiting else self.ready.popitem()
            self._maker.remove(uid)
        lacking = self.wanted - self.size
        if lacking > 0 and self.patience.ready_at > now:
            return self.patience.ready_at
        for _ in range(lacking):
            self.waiting[self._maker.make(self.template, self._life)] = None
        return math.inf
