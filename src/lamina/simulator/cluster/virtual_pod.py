"""
A pod in a virtual cluster, and what became of it when.

    pending --bind--> pulling --images there--> starting --start delay--> running --its time--> stopping --stop delay--+
       |  |              |                         |                      |  ^   |                  |                  |
       |  |              |                         |       its time, again|  |   +--told to stop-----+                  |
       |  |              |                         |                      v  |back-off              |                  |
       |  |              |                         |                   restarting                   |                  |
       |  +-refused--> rejected                    |                      |                         |                  |
       +-----------------+---------remove----------+----------------------+-------------------------+--> removed       |
                                                                               finished, failed <----------------------+

An eviction or a deadline makes it failed from wherever it is on its node. Changed by the cluster and by kubelets only;
whoever observes a run reads it.
"""

from typing import Final, Literal

from lamina.model.image import Image
from lamina.model.pod import Pod
from lamina.model.resources import Amounts
from lamina.simulator.cluster.pod_lifecycle import RUNS_FOREVER, PodLifecycle
from lamina.simulator.engine import Timer
from lamina.simulator.pulls import ImagePullRequest

Phase = Literal[
    "pending",
    "pulling",
    "starting",
    "running",
    "restarting",
    "stopping",
    "finished",
    "failed",
    "rejected",
    "removed",
]

ENDED: Final[frozenset[Phase]] = frozenset({"finished", "failed", "rejected", "removed"})


# One for all pods that never asked: in a long run that are most of them.
NO_PULLS: Final[list[ImagePullRequest]] = []


class VirtualPod:
    """One pod: what it is, how it wants to live, and its history."""

    __slots__ = (
        "accepted",
        "alarm",
        "arrived",
        "backoff",
        "bound",
        "ended",
        "grace",
        "images",
        "key",
        "life",
        "node",
        "phase",
        "pod",
        "pulls",
        "ready_images",
        "reason",
        "restarts",
        "since",
        "stage",
        "started",
        "timer",
        "wanted_bytes",
    )

    def __init__(
        self,
        pod: Pod,
        images: tuple[Image, ...],
        arrived: float,
        life: PodLifecycle = RUNS_FOREVER,
        wanted_bytes: int | None = None,
    ) -> None:
        """Take in a pod that needs *images*, in this order, and lives so; *wanted_bytes* may be known already."""
        self.pod = pod
        self.key = pod.key
        self.images = images
        self.life = life
        self.phase: Phase = "pending"
        self.node = ""
        """The node it is or was bound to."""
        self.arrived = arrived
        self.bound: float | None = None
        self.accepted: float | None = None
        """When its kubelet took it."""
        self.started: float | None = None
        """When its containers ran for the first time."""
        self.ended: float | None = None
        """When it finished, failed, was rejected or was removed."""
        self.reason = ""
        """Why it failed, was rejected or was evicted, in Kubernetes' words; empty otherwise."""
        self.pulls = NO_PULLS
        """Requests for images that were made because of it; a new list when there is one more."""
        self.restarts = 0
        self.wanted_bytes = wanted(images) if wanted_bytes is None else wanted_bytes
        """Compressed bytes of its images, each distinct layer counted once."""
        self.grace: float | None = None
        """Seconds it was given to stop; None: nobody has told it to."""
        self.ready_images = 0
        """How many of its images are there for it."""
        self.since: float | None = None
        """When its containers began to run this time; None: they do not."""
        self.backoff = 0.0
        """Seconds it will wait before it is started again."""
        self.timer: Timer | None = None
        """What it does next."""
        self.alarm: Timer | None = None
        """Its deadline."""
        self.stage: Timer | None = None
        """The next stage of its run, where somebody has to look at what it uses then."""

    @property
    def pull_began(self) -> float | None:
        """When the first pull for it began; None when everything it needed was there."""
        return self.pulls[0].began_at if self.pulls else None

    @property
    def pulled_bytes(self) -> int:
        """Bytes that were downloaded because of it, also after it was removed."""
        return sum(pull.downloaded for pull in self.pulls)

    def using(self, now: float) -> Amounts:
        """Say what it really uses of its node."""
        if self.since is None:
            return ()
        stages = self.life.stages
        if not stages:
            return self.pod.requests
        # The same sums as those by which the ends of stages are scheduled, so that a new stage counts when it begins.
        seconds = 0.0
        for stage in stages:
            seconds += stage.seconds
            if now < self.since + seconds:
                return stage.usage
        return stages[-1].usage


def wanted(images: tuple[Image, ...]) -> int:
    """Count compressed bytes of *images*, each distinct layer once."""
    return sum({layer.digest: layer.size for image in images for layer in image.layers}.values())
